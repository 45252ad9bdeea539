//! State of a claim that no interval decides, and what would decide it.

use toll_stats::{Decision, Interval, Region, decide, median, normal_quantile};

use super::ALPHA;
use super::model::{NoVerdict, Outcome};

/// A claim is open if it needs up to this multiple of the blocks made. Beyond that, its value lies
/// at the border.
const OPEN_MAX: f64 = 10.0;
/// Normal quantile of 80 %, the power of the forecast of blocks.
const POWER_QUANTILE: f64 = 0.84;
/// Scales the median absolute deviation to the standard deviation of normal values.
const MAD_SCALE: f64 = 1.48;
/// Stands for the logarithm of 0 in differences. It is below the logarithm of any positive number.
const LOG_OF_NOTHING: f64 = -1e3;
/// Blocks that a rank test needs for each block of a t-test (its efficiency is 3/π for
/// normal values).
const RANKS: f64 = 1.05;

/// A claim without a verdict.
pub(super) struct State<'a> {
    pub region: Region,
    /// Values of the blocks on a logarithmic scale; empty if there are none.
    pub logs: &'a [f64],
    pub blocks: usize,
    /// The interval at the level that would decide the claim.
    pub interval: Interval,
    pub level: f64,
    /// The claim's own p-value.
    pub p: f64,
    /// The smallest p-value that this number of blocks can attain.
    pub least_p: f64,
    /// Minimum number of blocks that reach the level.
    pub fewest: usize,
    /// Half-width at which sampling stops.
    pub target: f64,
    /// Seconds that a block takes.
    pub block_s: f64,
}

impl State<'_> {
    pub fn describe(&self) -> NoVerdict {
        if self.least_p > self.level {
            return NoVerdict::TooFewBlocks {
                decide: self.fewest.max(self.blocks + 1),
                made: self.blocks,
            };
        }
        let needed = self.needed();
        // A forecast of fewer blocks than were made was too optimistic.
        let more = (needed - self.blocks as f64)
            .max(self.blocks as f64 / 4.0)
            .ceil();
        let (blocks_more, seconds_more) = (more as usize, more * self.block_s);
        if let Some(to) = self.leaning() {
            let on_side = self.logs.iter().filter(|log| self.outcome_of(**log) == to);
            return NoVerdict::Leans {
                to,
                on_side: (!self.logs.is_empty()).then(|| on_side.count()),
                made: self.blocks,
                blocks_more,
                seconds_more,
            };
        }
        let is_narrow = self.interval.half_width() <= self.target;
        if is_narrow || needed > OPEN_MAX * self.blocks as f64 {
            NoVerdict::AtBorder
        } else {
            NoVerdict::Open {
                blocks_more,
                seconds_more,
            }
        }
    }

    /// Returns the side to which a claim leans: the verdict at 5 % that it would have alone.
    fn leaning(&self) -> Option<Outcome> {
        (self.p <= ALPHA).then(|| self.outcome_of(self.interval.estimate))
    }

    fn outcome_of(&self, log: f64) -> Outcome {
        let point = Interval {
            estimate: log,
            low: log,
            high: log,
            confidence: 1.0,
        };
        match decide(&point, self.region) {
            Decision::Supported => Outcome::Supported,
            _ => Outcome::Refuted,
        }
    }

    /// Returns the number of blocks that decide the claim with a power of 80 % if estimate and
    /// noise stay the same. It is the number for a one-sided test of a mean (Lehr, "Sixteen
    /// s-squared over d-squared", Statistics in Medicine 11 (1992), with the quantiles in place of
    /// its 16). Without values, the width of the interval determines the number.
    fn needed(&self) -> f64 {
        let borders = match self.region {
            Region::Below(border) | Region::Above(border) => [border; 2],
            Region::Within(low, high) => [low, high],
        };
        let distances = borders.map(|border| (self.interval.estimate - border).abs());
        let distance = distances[0].min(distances[1]);
        if self.logs.is_empty() {
            return self.blocks as f64 * (self.interval.half_width() / distance).powi(2);
        }
        let logs: Vec<f64> = self
            .logs
            .iter()
            .map(|log| log.max(LOG_OF_NOTHING))
            .collect();
        let centre = median(&logs);
        let deviations: Vec<f64> = logs.iter().map(|log| (log - centre).abs()).collect();
        let deviation = MAD_SCALE * median(&deviations);
        let quantile = -normal_quantile(self.level / self.region.sides() as f64);
        ((quantile + POWER_QUANTILE) * deviation / distance).powi(2) * RANKS
    }
}

/// Describes what is known of a claim without a verdict, in addition to the state itself.
pub(super) fn detail(state: &NoVerdict) -> String {
    let more = |blocks: &usize, seconds: &f64| match blocks {
        1 => format!("about 1 more block{}", time(*seconds)),
        blocks => format!("about {blocks} more blocks{}", time(*seconds)),
    };
    match state {
        NoVerdict::Leans {
            on_side: Some(on_side),
            made,
            blocks_more,
            seconds_more,
            ..
        } => format!(
            "{on_side} of {made} blocks, {}",
            more(blocks_more, seconds_more)
        ),
        NoVerdict::Leans {
            blocks_more,
            seconds_more,
            ..
        }
        | NoVerdict::Open {
            blocks_more,
            seconds_more,
        } => more(blocks_more, seconds_more),
        NoVerdict::AtBorder => "more blocks are unlikely to decide it".into(),
        NoVerdict::TooFewBlocks { decide, made } => format!("{decide} blocks needed, {made} made"),
        NoVerdict::LeftTo { .. } => "this profile leaves out the claim's levels".into(),
        NoVerdict::NotMeasured => "the run was interrupted before its trials".into(),
    }
}

/// Formats minutes and seconds as ` (1:40)`; empty if the time of a block is unknown.
fn time(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match whole {
        0 => String::new(),
        _ => format!(" ({}:{:02})", whole / 60, whole % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// State of a claim of less than 1, given logarithms of ratios, among `claims` claims.
    fn state(logs: &[f64], claims: f64) -> NoVerdict {
        let level = ALPHA / claims;
        let region = Region::Below(0.0);
        let least_p = 0.5_f64.powf(logs.len() as f64);
        State {
            region,
            logs,
            blocks: logs.len(),
            interval: toll_stats::hodges_lehmann(logs, 1.0 - 2.0 * level),
            level,
            p: toll_stats::decision_p(logs, region) / 2.0,
            least_p,
            fewest: 9,
            target: 0.0,
            block_s: 4.0,
        }
        .describe()
    }

    #[test]
    fn a_claim_that_would_be_decided_alone_leans_to_that_side() {
        let mut logs: Vec<f64> = (1..=26).map(|at| -0.01 * f64::from(at)).collect();
        logs.extend([0.15, 0.17, 0.19, 0.21]);
        let found = state(&logs, 1000.0);
        let NoVerdict::Leans {
            to, on_side, made, ..
        } = found
        else {
            panic!("{found:?}");
        };
        assert_eq!((to, on_side, made), (Outcome::Supported, Some(26), 30));
        let detail = detail(&found);
        assert!(detail.starts_with("26 of 30 blocks, about "), "{detail}");
    }

    #[test]
    fn the_nearer_the_border_the_more_blocks_until_no_number_decides() {
        let logs = |centre: f64| -> Vec<f64> {
            (-10..=10).map(|at| centre + 0.01 * f64::from(at)).collect()
        };
        let open = state(&logs(-0.02), 1.0);
        assert!(
            matches!(
                open,
                NoVerdict::Open {
                    blocks_more: 60..75,
                    ..
                }
            ),
            "{open:?}"
        );
        assert_eq!(state(&logs(-0.0001), 1.0), NoVerdict::AtBorder);
    }

    #[test]
    fn counts_of_nothing_in_most_blocks_are_no_obstacle() {
        let mut logs = vec![f64::NEG_INFINITY; 6];
        logs.extend([0.5; 4]);
        let found = State {
            region: Region::Below(0.0),
            logs: &logs,
            blocks: logs.len(),
            interval: Interval {
                estimate: f64::NEG_INFINITY,
                low: f64::NEG_INFINITY,
                high: 0.5,
                confidence: 0.9,
            },
            level: ALPHA,
            p: 0.4,
            least_p: 0.001,
            fewest: 5,
            target: 0.0,
            block_s: 4.0,
        }
        .describe();
        assert!(matches!(found, NoVerdict::Open { .. }), "{found:?}");
    }

    #[test]
    fn so_few_blocks_that_none_decide_say_how_many_do() {
        let found = state(&[-0.5; 8], 13.0);
        assert_eq!(found, NoVerdict::TooFewBlocks { decide: 9, made: 8 });
        assert_eq!(detail(&found), "9 blocks needed, 8 made");
    }

    #[test]
    fn a_value_of_nothing_in_every_block_leans_below_any_bound() {
        let nothing = Interval {
            estimate: f64::NEG_INFINITY,
            low: f64::NEG_INFINITY,
            high: f64::NEG_INFINITY,
            confidence: 0.99,
        };
        let found = State {
            region: Region::Below(0.0),
            logs: &[f64::NEG_INFINITY; 7],
            blocks: 7,
            interval: nothing,
            level: 0.01,
            p: 0.02,
            least_p: 0.005,
            fewest: 7,
            target: 0.0,
            block_s: 4.0,
        };
        let NoVerdict::Leans { to, on_side, .. } = found.describe() else {
            panic!("{:?}", found.describe());
        };
        assert_eq!((to, on_side), (Outcome::Supported, Some(7)));
    }

    #[test]
    fn blocks_to_come_have_their_time() {
        let open = |blocks_more, seconds_more| {
            detail(&NoVerdict::Open {
                blocks_more,
                seconds_more,
            })
        };
        assert_eq!(open(25, 100.2), "about 25 more blocks (1:40)");
        assert_eq!(open(1, 0.0), "about 1 more block");
    }
}
