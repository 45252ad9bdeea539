//! What a ratio of two sides shows: which side is better, and whether it is a regression.

use toll_stats::{Decision, Interval, Region, decide};

use super::model::{Analysis, Better, Comparison, Estimate, Relation, RunComparison, RunRatio};

/// A ratio of two sides, to be held against margins and limits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct JudgedRatio {
    pub ratio: Estimate,
    pub better: Better,
    /// Whether the interval may decide: it has enough values, and no time is emulated.
    pub may_decide: bool,
    /// How far apart equal sides may be, as a share. No smaller regression counts.
    pub noise: f64,
}

impl JudgedRatio {
    /// Takes the interval of the ratio's logarithm, which decides if it reaches the confidence.
    pub fn of_logs(logs: &Interval, confidence: f64, better: Better) -> Self {
        Self {
            ratio: Estimate::from(&logs.map(f64::exp)),
            better,
            may_decide: logs.reaches(confidence),
            noise: 0.0,
        }
    }

    /// Judges which side is better by more than a margin (a share).
    pub fn relation(&self, margin: f64) -> Relation {
        let interval = Interval::from(self.ratio);
        let holds = |region| self.may_decide && decide(&interval, region) == Decision::Supported;
        let (least, most) = (1.0 / (1.0 + margin), 1.0 + margin);
        if holds(Region::Within(least, most)) {
            return Relation::Same;
        }
        let (less, more) = (holds(Region::Below(least)), holds(Region::Above(most)));
        match (less, more, self.better) {
            (false, false, _) => Relation::Undecided,
            (_, _, Better::Neither) => Relation::Different,
            (true, _, Better::Lower) | (_, true, Better::Higher) => Relation::Better,
            _ => Relation::Worse,
        }
    }

    /// Judges whether the ratio is a regression by more than `limit` (a share) and by more than
    /// noise. At 0.05, a duration must be more than 1.05 times as long as the earlier one, and a
    /// throughput less than 1/1.05 of it. A ratio below the limit is none, whatever the noise.
    pub fn regression(&self, limit: f64) -> Decision {
        if !self.may_decide {
            return Decision::Inconclusive;
        }
        let ratio = Interval::from(self.ratio);
        let worse = match self.better {
            Better::Lower => ratio,
            Better::Higher => Interval {
                estimate: 1.0 / ratio.estimate,
                low: 1.0 / ratio.high,
                high: 1.0 / ratio.low,
                ..ratio
            },
            Better::Neither => return Decision::Refuted,
        };
        match decide(&worse, Region::Above(1.0 + limit)) {
            Decision::Supported if worse.low <= 1.0 + self.noise => Decision::Inconclusive,
            decision => decision,
        }
    }
}

impl Comparison {
    /// Returns the ratio, whose noise is the difference between the reference and its twin.
    pub fn judged(&self, analysis: &Analysis) -> JudgedRatio {
        JudgedRatio {
            ratio: self.ratio,
            better: analysis.metrics[&self.metric].better,
            may_decide: self.may_decide,
            noise: self.noise(analysis).unwrap_or_default(),
        }
    }
}

impl RunComparison {
    /// Returns the ratio of a treatment, if there is one. A ratio that is undecided at the margin
    /// is no proof that there is no regression: its interval may not include what changes between
    /// runs.
    pub fn judged(&self, one: &RunRatio) -> Option<JudgedRatio> {
        Some(JudgedRatio {
            ratio: one.ratio?,
            better: self.described.better,
            may_decide: one.relation != Relation::Undecided,
            // Equal work may differ by the margin between runs: an interval of trials does not
            // include shifts between sessions, but the margin does. So what the comparison calls
            // the same is no regression, even past a smaller limit.
            noise: self.margin,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::model::{Metric, Replicates, Sessions};

    fn check(low: f64, high: f64, better: Better, expected: Decision) {
        let judged = |noise: f64| JudgedRatio {
            ratio: Estimate {
                value: low.midpoint(high),
                low,
                high,
                confidence: 0.95,
            },
            better,
            may_decide: true,
            noise,
        };
        let found = judged(0.03).regression(0.05);
        assert_eq!(found, expected, "[{low}, {high}], {better:?} is better");
        let noisy = judged(0.3).regression(0.05);
        let expected_noisy = match expected {
            Decision::Supported => Decision::Inconclusive,
            other => other,
        };
        assert_eq!(noisy, expected_noisy, "[{low}, {high}] with noise");
    }

    #[test]
    fn sides_that_are_the_same_between_runs_are_no_regression() {
        let comparison = |margin: f64, relation: Relation, [low, high]: [f64; 2]| {
            let ratio = Estimate {
                value: low.midpoint(high),
                low,
                high,
                confidence: 0.95,
            };
            let ratios = vec![RunRatio {
                label: String::new(),
                counts: [20, 20],
                ratio: Some(ratio),
                relation,
                reason: None,
            }];
            let comparison = RunComparison {
                new_runs: vec![2],
                old_runs: vec![1],
                metric: "duration_ns".into(),
                described: Metric {
                    unit: "ns".into(),
                    better: Better::Lower,
                },
                is_judged: true,
                replicates: Replicates::Trials,
                margin,
                sessions: Sessions {
                    runs: 1,
                    shift: None,
                },
                ratios,
                only_new: Vec::new(),
                only_old: Vec::new(),
            };
            let judged = comparison.judged(&comparison.ratios[0]);
            judged.unwrap().regression(0.005)
        };
        let same = comparison(0.01, Relation::Same, [1.006, 1.009]);
        assert_eq!(same, Decision::Inconclusive);
        let worse = comparison(0.01, Relation::Worse, [1.011, 1.02]);
        assert_eq!(worse, Decision::Supported);
    }

    #[test]
    fn an_interval_decides_if_it_lies_on_one_side_of_the_limit() {
        use Decision::{Inconclusive, Refuted, Supported};
        check(1.051, 1.2, Better::Lower, Supported);
        check(1.05, 1.2, Better::Lower, Inconclusive);
        check(1.01, 1.2, Better::Lower, Inconclusive);
        check(1.01, 1.049, Better::Lower, Refuted);
        check(0.5, 0.6, Better::Lower, Refuted);
        check(0.9, 0.952, Better::Higher, Supported);
        check(0.9, 0.953, Better::Higher, Inconclusive);
        check(0.953, 1.1, Better::Higher, Refuted);
        check(1.2, 1.3, Better::Higher, Refuted);
        check(1.2, 1.3, Better::Neither, Refuted);
    }
}
