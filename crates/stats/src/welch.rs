//! The difference of two means whose samples vary differently.

use crate::quantile::{mean, standard_deviation};
use crate::student::{student_p, student_quantile};
use crate::{Interval, interval::assert_confidence};

/// The distance of the mean of one sample from that of another sample (Welch, "The generalization
/// of 'Student's' problem when several different population variances are involved", Biometrika 34
/// (1947)).
///
/// The values must be independent and approximately normal, such as the logarithms of the medians
/// of whole runs. With [`Welch::of_few`], the method is valid from 3 values per sample, where no
/// interval by ranks reaches 95 %.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Welch {
    /// Mean of the new sample minus that of the old one.
    pub difference: f64,
    /// Standard error of the difference; 0 if neither sample varies.
    error: f64,
    freedom: f64,
}

/// Relative error, 16 units in the last place, that the mean of equal values may have.
const ROUNDING: f64 = 16.0 * f64::EPSILON;

impl Welch {
    /// Compares two samples in the same unit.
    ///
    /// # Panics
    /// If a sample has fewer than 2 values, since the mean of one value has no standard error.
    pub fn new(old: &[f64], new: &[f64]) -> Self {
        assert!(old.len() > 1 && new.len() > 1, "a mean needs two values");
        let variance_of_mean =
            |values: &[f64]| standard_deviation(values).powi(2) / values.len() as f64;
        let (a, b) = (variance_of_mean(old), variance_of_mean(new));
        let share = |part: f64, count: usize| part.powi(2) / (count as f64 - 1.0);
        let shares = share(a, old.len()) + share(b, new.len());
        let means = [old, new].map(mean);
        let error = (a + b).sqrt();
        // Equal values differ from their mean by its rounding.
        let rounding = ROUNDING * means[0].abs().max(means[1].abs());
        Self {
            difference: means[1] - means[0],
            error: if error > rounding { error } else { 0.0 },
            freedom: if shares > 0.0 {
                (a + b).powi(2) / shares
            } else {
                (old.len() + new.len() - 2) as f64
            },
        }
    }

    /// Like [`Welch::new`], for few values: with no more degrees of freedom than if both samples
    /// were as small as the smaller one. Otherwise a sample of 3 compared with one of 10 would err
    /// twice as often as stated at the level 0.01, since its variance sets the degrees of freedom.
    ///
    /// # Panics
    /// If a sample has fewer than 2 values.
    pub fn of_few(old: &[f64], new: &[f64]) -> Self {
        let welch = Self::new(old, new);
        let smaller = old.len().min(new.len());
        Self {
            freedom: welch.freedom.min(2.0 * (smaller as f64 - 1.0)),
            ..welch
        }
    }

    /// Returns the difference with its confidence interval.
    ///
    /// # Panics
    /// If `confidence` is not strictly between 0 and 1.
    pub fn interval(&self, confidence: f64) -> Interval {
        assert_confidence(confidence);
        let half = if self.error > 0.0 {
            student_quantile(confidence, self.freedom) * self.error
        } else {
            0.0
        };
        Interval {
            estimate: self.difference,
            low: self.difference - half,
            high: self.difference + half,
            confidence,
        }
    }

    /// Returns the smallest level at which the interval of confidence 1 - level does not reach
    /// `border`; 1 if it always does.
    pub fn p(&self, border: f64) -> f64 {
        let distance = (self.difference - border).abs();
        if self.error > 0.0 {
            student_p(distance / self.error, self.freedom)
        } else if distance == 0.0 {
            1.0
        } else {
            0.0
        }
    }

    /// Returns the smallest level at which the interval is entirely within a margin around 0, or
    /// entirely outside on one side of it.
    pub fn decision_p(&self, margin: f64) -> f64 {
        // The interval stops reaching the nearer border last.
        self.p(margin.copysign(self.difference))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;

    #[test]
    fn unequal_variances_give_welchs_degrees_of_freedom() {
        // By hand: means 3 and 6, variances of the mean 0.5 and 0.4; t² = 10,
        // freedom 0.81 / (0.25 / 4 + 0.16 / 4) = 7.902.
        let old = [1.0, 2.0, 3.0, 4.0, 5.0];
        let new = [4.0, 6.0, 6.0, 6.0, 8.0];
        let welch = Welch::new(&old, &new);
        assert_eq!(welch.difference, 3.0);
        assert!((welch.freedom - 0.81 / 0.1025).abs() < 1e-9, "{welch:?}");
        assert!((welch.p(0.0) - student_p(10.0_f64.sqrt(), welch.freedom)).abs() < 1e-12);
        assert_eq!(welch.p(0.0), Welch::new(&new, &old).p(0.0));
    }

    #[test]
    fn an_interval_ends_at_a_border_at_the_level_that_is_its_p() {
        let welch = Welch::new(&[1.0, 2.0, 4.0], &[3.0, 3.5, 5.0, 4.0]);
        for border in [-1.0, 0.0, 1.0, 3.0] {
            let interval = welch.interval(1.0 - welch.p(border));
            let end = if border < welch.difference {
                interval.low
            } else {
                interval.high
            };
            assert!((end - border).abs() < 1e-6, "{border}: {interval:?}");
        }
        assert_eq!(welch.decision_p(1.0), welch.p(1.0));
        assert_eq!(welch.decision_p(9.0), welch.p(9.0));
        let back = Welch::new(&[3.0, 3.5, 5.0, 4.0], &[1.0, 2.0, 4.0]);
        assert_eq!(back.decision_p(1.0), back.p(-1.0));
    }

    #[test]
    fn samples_that_do_not_vary_are_the_same_or_not() {
        let same = Welch::new(&[1.0, 1.0], &[1.0, 1.0]);
        assert_eq!((same.p(0.0), same.decision_p(0.1)), (1.0, 0.0));
        assert_eq!(same.interval(0.95).half_width(), 0.0);
        assert_eq!(Welch::new(&[1.0, 1.0], &[2.0, 2.0]).p(0.0), 0.0);
        // The mean of three such values is rounded.
        let logs = [0.7_f64.ln(); 3];
        assert_eq!(Welch::of_few(&logs, &logs).interval(0.95).half_width(), 0.0);
    }

    #[test]
    fn identical_systems_differ_at_most_as_often_as_the_level_says_from_3_values_on() {
        // Sizes of both samples, and how many times as widely the new one varies.
        for (olds, news, spread) in [
            (3, 3, 1.0),
            (3, 4, 1.0),
            (3, 10, 1.0),
            (5, 10, 1.0),
            (10, 15, 1.0),
            (3, 3, 3.0),
            (5, 5, 2.0),
        ] {
            let mut rng = Rng::new(3);
            let mut draw = |count: usize, spread: f64| {
                let values = (0..count).map(|_| spread * rng.normal());
                values.collect::<Vec<f64>>()
            };
            let drawn = (0..20_000).map(|_| (draw(olds, 1.0), draw(news, spread)));
            let p: Vec<f64> = drawn
                .map(|(old, new)| Welch::of_few(&old, &new).p(0.0))
                .collect();
            for level in [0.05, 0.01, 0.004] {
                let wrong = p.iter().filter(|p| **p < level).count() as f64 / 20_000.0;
                let error = (level / 20_000.0).sqrt();
                assert!(
                    wrong < level + 3.0 * error,
                    "{olds}, {news}, {spread}: {wrong} at {level}"
                );
            }
        }
    }
}
