//! Whether a ratio is a regression by more than a limit.

use super::model::{Better, Estimate, Relation};

/// Whether an interval lies wholly beyond a limit on the worse side.
///
/// `limit` is a share: at 0.05 a duration must be more than 1.05 times as long,
/// a throughput less than 1/1.05 of what it was. The relation has been drawn
/// before, so that noise, an interval of too few blocks and emulated times
/// count here as they do there: what is not [`Relation::Worse`] is none.
pub fn is_regression(ratio: &Estimate, relation: Relation, better: Better, limit: f64) -> bool {
    let beyond = match better {
        Better::Lower => ratio.low > 1.0 + limit,
        Better::Higher => ratio.high < 1.0 / (1.0 + limit),
        Better::Neither => false,
    };
    beyond && relation == Relation::Worse
}

/// Whether an interval lies on one side of a limit: wholly below it on the worse side,
/// or wholly past it and past what twins may lie apart (`noise`, a share).
pub fn is_decided(ratio: &Estimate, better: Better, limit: f64, noise: f64) -> bool {
    let is_below = match better {
        Better::Lower => ratio.high < 1.0 + limit,
        Better::Higher => ratio.low > 1.0 / (1.0 + limit),
        Better::Neither => true,
    };
    is_below || is_regression(ratio, Relation::Worse, better, limit.max(noise))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(low: f64, high: f64, better: Better, expected: bool) {
        let ratio = Estimate {
            value: low.midpoint(high),
            low,
            high,
            confidence: 0.95,
        };
        let found = is_regression(&ratio, Relation::Worse, better, 0.05);
        assert_eq!(found, expected, "[{low}, {high}], {better:?} is better");
        for other in [Relation::Undecided, Relation::Same, Relation::Better] {
            assert!(!is_regression(&ratio, other, better, 0.05), "{other:?}");
        }
    }

    #[test]
    fn only_an_interval_wholly_past_the_limit_on_the_worse_side_counts() {
        check(1.051, 1.2, Better::Lower, true);
        check(1.05, 1.2, Better::Lower, false);
        check(1.01, 1.2, Better::Lower, false);
        check(0.5, 0.6, Better::Lower, false);
        check(0.9, 0.952, Better::Higher, true);
        check(0.9, 0.953, Better::Higher, false);
        check(1.2, 1.3, Better::Higher, false);
        check(1.2, 1.3, Better::Neither, false);
    }
}
