//! From raw times to ratios and verdicts.

use std::fmt;

use toll_stats::{Interval, hodges_lehmann, median};

use crate::case::Case;
use crate::document::CellRecord;
use crate::program::{GNU_CAT, MEOW, TWIN};

/// Confidence of every interval.
pub const CONFIDENCE: f64 = 0.95;
/// A ratio up to which `meow` counts as level with the best peer.
const LEVEL_RATIO_MAX: f64 = 1.03;
/// The claimed ratio of GNU `cat` to `meow` into a pipe.
const CLAIMED_RATIO: f64 = 3.0;

/// How `meow` stands against the best peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The interval of meow / best peer lies below 1.
    Fastest,
    /// It does not lie below 1, but ends at 1.03 at most.
    Level,
    /// It lies above 1.03.
    Slower,
    /// Anything else, or too few blocks for the confidence.
    Undecided,
}

impl Verdict {
    fn of(ratio: &Interval) -> Verdict {
        if !ratio.reaches(CONFIDENCE) {
            Verdict::Undecided
        } else if ratio.high < 1.0 {
            Verdict::Fastest
        } else if ratio.high <= LEVEL_RATIO_MAX {
            Verdict::Level
        } else if ratio.low > LEVEL_RATIO_MAX {
            Verdict::Slower
        } else {
            Verdict::Undecided
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Fastest => "fastest",
            Verdict::Level => "within 3 %",
            Verdict::Slower => "slower",
            Verdict::Undecided => "undecided",
        })
    }
}

/// Whether GNU `cat` takes at least three times as long as `meow`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Claim {
    /// GNU / meow.
    pub ratio: Interval,
    /// `None` if the interval does not decide.
    pub holds: Option<bool>,
}

impl Claim {
    fn of(ratio: Interval) -> Claim {
        let holds = match ratio {
            _ if !ratio.reaches(CONFIDENCE) => None,
            _ if ratio.low >= CLAIMED_RATIO => Some(true),
            _ if ratio.high < CLAIMED_RATIO => Some(false),
            _ => None,
        };
        Claim { ratio, holds }
    }
}

/// A program in a case.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    /// The program.
    pub name: String,
    /// Median duration in nanoseconds.
    pub median_ns: f64,
    /// meow / this program; `None` for `meow` itself.
    pub ratio: Option<Interval>,
}

impl Standing {
    /// What programs are ranked by, less for a faster one: the time in units of
    /// `meow`'s, block by block. Where other processes delay some trials by a
    /// time slice, medians jump between two modes and this does not. Without
    /// `meow`, no program has a ratio, and medians must do.
    fn rank(&self) -> f64 {
        match &self.ratio {
            Some(ratio) => 1.0 / ratio.estimate,
            None if self.name == MEOW => 1.0,
            None => self.median_ns,
        }
    }
}

/// What a case and size say.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// The case.
    pub case: Case,
    /// Bytes copied in one trial.
    pub size_bytes: u64,
    /// Blocks.
    pub blocks: usize,
    /// Programs without the twin, the fastest first.
    pub ranking: Vec<Standing>,
    /// twin / meow.
    pub twin: Option<Interval>,
}

impl Summary {
    /// Summarises a cell; `None` if nothing was run.
    pub fn of(cell: &CellRecord) -> Option<Summary> {
        let meow = cell.durations_ns(MEOW);
        let mut ranking: Vec<Standing> = cell
            .programs
            .iter()
            .filter(|name| *name != TWIN)
            .filter_map(|name| {
                let durations = cell.durations_ns(name)?;
                let meow = meow.as_ref().filter(|_| name != MEOW);
                Some(Standing {
                    name: name.clone(),
                    median_ns: median(&durations),
                    ratio: meow.map(|meow| ratio(meow, &durations)),
                })
            })
            .collect();
        ranking.sort_by(|a, b| a.rank().total_cmp(&b.rank()));
        let twin = cell.durations_ns(TWIN).zip(meow);
        (!ranking.is_empty()).then(|| Summary {
            case: cell.case,
            size_bytes: cell.size_bytes,
            blocks: cell.blocks.len(),
            ranking,
            twin: twin.map(|(twin, meow)| ratio(&twin, &meow)),
        })
    }

    /// `meow`, unless it failed.
    pub fn meow(&self) -> Option<&Standing> {
        self.ranking.iter().find(|standing| standing.name == MEOW)
    }

    /// The fastest peer: the one against which `meow` stands worst.
    pub fn best_peer(&self) -> Option<&Standing> {
        self.ranking.iter().find(|standing| standing.name != MEOW)
    }

    /// How `meow` stands; `None` if it failed or has no peer.
    pub fn verdict(&self) -> Option<Verdict> {
        self.best_peer()?.ratio.as_ref().map(Verdict::of)
    }

    /// The claim on GNU `cat`, which is made for the large file into a pipe.
    pub fn claim(&self) -> Option<Claim> {
        let gnu = self.ranking.iter().find(|peer| peer.name == GNU_CAT)?;
        let meow_to_gnu = gnu.ratio.filter(|_| self.case == Case::PipeRead)?;
        Some(Claim::of(Interval {
            estimate: 1.0 / meow_to_gnu.estimate,
            // Inverting changes the ends' places.
            low: 1.0 / meow_to_gnu.high,
            high: 1.0 / meow_to_gnu.low,
            confidence: meow_to_gnu.confidence,
        }))
    }
}

/// The ratio of two programs' durations: the pseudo-median of the blocks'
/// log-ratios with its signed-rank interval.
fn ratio(numerator_ns: &[f64], denominator_ns: &[f64]) -> Interval {
    assert_eq!(
        numerator_ns.len(),
        denominator_ns.len(),
        "a block has a duration of each"
    );
    let logarithms: Vec<f64> = numerator_ns
        .iter()
        .zip(denominator_ns)
        .map(|(numerator, denominator)| (numerator / denominator).ln())
        .collect();
    hodges_lehmann(&logarithms, CONFIDENCE).map(f64::exp)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::document::BlockRecord;

    fn interval(low: f64, high: f64) -> Interval {
        Interval {
            estimate: (low + high) / 2.0,
            low,
            high,
            confidence: CONFIDENCE,
        }
    }

    /// A cell of blocks that scale all programs alike.
    fn cell(case: Case, blocks: u64, programs: &[(&str, Option<u64>)]) -> CellRecord {
        CellRecord {
            case,
            size_bytes: 1 << 30,
            programs: programs.iter().map(|(name, _)| (*name).into()).collect(),
            blocks: (1..=blocks)
                .map(|block| BlockRecord {
                    order: (0..programs.len()).collect(),
                    durations_ns: programs
                        .iter()
                        .map(|(_, duration_ns)| duration_ns.map(|ns| ns * block))
                        .collect(),
                })
                .collect(),
            excluded: BTreeMap::new(),
        }
    }

    #[test]
    fn the_verdict_follows_the_interval() {
        let verdict = |low, high| Verdict::of(&interval(low, high)).to_string();
        assert_eq!(verdict(0.90, 0.99), "fastest");
        assert_eq!(verdict(0.90, 1.00), "within 3 %");
        assert_eq!(verdict(1.01, 1.03), "within 3 %");
        assert_eq!(verdict(0.90, 1.04), "undecided");
        assert_eq!(verdict(1.03, 1.20), "undecided");
        assert_eq!(verdict(1.04, 1.20), "slower");
    }

    #[test]
    fn too_few_blocks_decide_nothing() {
        let few = Interval {
            confidence: 0.9375,
            ..interval(0.5, 0.6)
        };
        assert_eq!(Verdict::of(&few), Verdict::Undecided);
        assert_eq!(Claim::of(few.map(|ratio| ratio * 10.0)).holds, None);
    }

    #[test]
    fn the_claim_takes_the_whole_interval() {
        assert_eq!(Claim::of(interval(3.0, 4.0)).holds, Some(true));
        assert_eq!(Claim::of(interval(2.9, 4.0)).holds, None);
        assert_eq!(Claim::of(interval(2.0, 2.9)).holds, Some(false));
    }

    #[test]
    fn programs_are_ranked_by_time_and_the_twin_is_none_of_them() {
        let cell = cell(
            Case::PipeRead,
            8,
            &[
                (MEOW, Some(200)),
                (TWIN, Some(100)),
                (GNU_CAT, Some(800)),
                ("pv", Some(250)),
            ],
        );
        let summary = Summary::of(&cell).expect("it has blocks");
        let names: Vec<&str> = summary.ranking.iter().map(|s| s.name.as_str()).collect();
        assert_eq!(names, [MEOW, "pv", GNU_CAT]);
        assert_eq!(summary.verdict(), Some(Verdict::Fastest));
        let best = summary.best_peer().and_then(|peer| peer.ratio);
        assert!((best.expect("pv ran").estimate - 0.8).abs() < 1e-12);
        assert!((summary.twin.expect("it ran").estimate - 0.5).abs() < 1e-12);
        let claim = summary.claim().expect("GNU cat ran");
        assert!((claim.ratio.estimate - 4.0).abs() < 1e-12);
        assert_eq!(claim.holds, Some(true));
    }

    #[test]
    fn programs_are_ranked_block_by_block() {
        let mut cell = cell(
            Case::Ext4,
            9,
            &[(MEOW, Some(100)), ("pv", Some(90)), ("dd", Some(95))],
        );
        // Of a program that the scheduler met in most of its blocks the median
        // says nothing.
        for (index, block) in cell.blocks.iter_mut().enumerate() {
            block.durations_ns = match index {
                0..5 => vec![Some(1000), Some(900), Some(800)],
                _ => vec![Some(100), Some(90), Some(99)],
            };
        }
        cell.blocks[0].durations_ns[1] = Some(90);
        let summary = Summary::of(&cell).expect("it has blocks");
        let estimates: Vec<f64> = summary
            .ranking
            .iter()
            .map(|standing| standing.ratio.map_or(1.0, |ratio| ratio.estimate))
            .collect();
        assert!(estimates.is_sorted_by(|a, b| a >= b), "{estimates:?}");
        assert_eq!(summary.best_peer(), summary.ranking.first());
    }

    #[test]
    fn a_program_that_failed_once_is_out_of_the_ranking() {
        let mut cell = cell(
            Case::Null,
            8,
            &[(MEOW, Some(200)), ("pv", None), ("dd", Some(9))],
        );
        cell.excluded
            .insert("dd".into(), "delivered 0 bytes".into());
        let summary = Summary::of(&cell).expect("meow ran");
        assert_eq!(summary.ranking.len(), 1);
        assert_eq!((summary.verdict(), summary.claim()), (None, None));
    }

    #[test]
    fn without_meow_there_are_medians_and_no_verdict() {
        let cell = cell(Case::Null, 8, &[(MEOW, None), ("pv", Some(100))]);
        let summary = Summary::of(&cell).expect("pv ran");
        assert_eq!(summary.meow(), None);
        assert_eq!(summary.verdict(), None);
        assert_eq!(summary.best_peer().map(|peer| peer.median_ns), Some(450.0));
    }

    #[test]
    fn nothing_run_is_no_summary() {
        assert_eq!(Summary::of(&cell(Case::Null, 0, &[(MEOW, Some(1))])), None);
    }
}
