//! When enough blocks are in.

/// Stops by the width of the intervals, never by what they say.
///
/// A rule that stops as soon as a test is significant finds a difference in
/// the end even where there is none (Armitage, McPherson and Rowe, "Repeated
/// significance tests on accumulating data", JRSS A 132 (1969)). A rule that
/// looks at widths alone keeps the coverage in the limit (Anscombe, "Sequential
/// estimation", JRSS B 15 (1953); Chow and Robbins, "On the asymptotic theory
/// of fixed-width sequential confidence intervals for the mean", Annals of
/// Mathematical Statistics 36 (1965)); the least number of blocks keeps it
/// from stopping on a spread underestimated by chance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoppingRule {
    /// Blocks before the first look.
    pub min_blocks: usize,
    /// Blocks after which it ends whatever the widths.
    pub max_blocks: usize,
    /// Blocks from one look to the next; at least 1.
    pub look_every: usize,
}

/// What a look concluded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Run more blocks.
    Continue,
    /// Every interval is as narrow as was asked for.
    WidthReached,
    /// The most blocks allowed are in, and an interval is still too wide.
    CapReached,
}

impl StoppingRule {
    /// Whether the rule looks after this many blocks: at the least number, at
    /// every `look_every` after it, and from the cap on.
    pub fn is_look(&self, blocks: usize) -> bool {
        assert!(self.look_every > 0, "looks must be at least a block apart");
        blocks >= self.max_blocks
            || (blocks >= self.min_blocks
                && (blocks - self.min_blocks).is_multiple_of(self.look_every))
    }

    /// Whether to stop after `blocks` blocks, given the half-width reached and
    /// the half-width asked for of each interval. With no interval asked for,
    /// the least number of blocks is enough. Between looks, always
    /// [`Stop::Continue`].
    pub fn decide(&self, blocks: usize, half_widths: &[(f64, f64)]) -> Stop {
        if !self.is_look(blocks) {
            return Stop::Continue;
        }
        // A half-width of NaN is not narrow enough.
        let narrow = half_widths.iter().all(|(width, target)| width <= target);
        if narrow && blocks >= self.min_blocks {
            Stop::WidthReached
        } else if blocks >= self.max_blocks {
            Stop::CapReached
        } else {
            Stop::Continue
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: StoppingRule = StoppingRule {
        min_blocks: 10,
        max_blocks: 32,
        look_every: 5,
    };

    #[test]
    fn looks_come_at_the_least_number_then_regularly_and_at_the_cap() {
        let looks: Vec<usize> = (0..35).filter(|&b| RULE.is_look(b)).collect();
        assert_eq!(looks, [10, 15, 20, 25, 30, 32, 33, 34]);
    }

    #[test]
    fn every_interval_must_be_narrow_enough() {
        assert_eq!(
            RULE.decide(10, &[(0.01, 0.02), (0.03, 0.02)]),
            Stop::Continue
        );
        let narrow = [(0.01, 0.02), (0.02, 0.02)];
        assert_eq!(RULE.decide(10, &narrow), Stop::WidthReached);
    }

    #[test]
    fn nothing_stops_before_the_least_number_or_between_looks() {
        assert_eq!(RULE.decide(9, &[(0.0, 1.0)]), Stop::Continue);
        assert_eq!(RULE.decide(12, &[(0.0, 1.0)]), Stop::Continue);
        assert_eq!(RULE.decide(5, &[]), Stop::Continue);
    }

    #[test]
    fn the_cap_stops_a_wide_interval_but_is_not_blamed_for_a_narrow_one() {
        assert_eq!(RULE.decide(32, &[(1.0, 0.1)]), Stop::CapReached);
        assert_eq!(RULE.decide(32, &[(f64::NAN, 0.1)]), Stop::CapReached);
        assert_eq!(RULE.decide(32, &[(0.1, 0.1)]), Stop::WidthReached);
        assert_eq!(RULE.decide(31, &[(1.0, 0.1)]), Stop::Continue);
    }

    #[test]
    fn with_no_interval_asked_for_the_least_number_is_enough() {
        assert_eq!(RULE.decide(10, &[]), Stop::WidthReached);
    }

    #[test]
    fn a_cap_below_the_least_number_is_still_the_cap() {
        let rule = StoppingRule {
            max_blocks: 3,
            ..RULE
        };
        assert_eq!(rule.decide(2, &[(0.0, 1.0)]), Stop::Continue);
        assert_eq!(rule.decide(3, &[(0.0, 1.0)]), Stop::CapReached);
    }
}
