//! Weights that exclude outlying values from a weighted mean, by Tukey's biweight.
//!
//! The weight falls from 1 in the centre to 0 at [`REACH`] standard deviations (Beaton and
//! Tukey, "The fitting of power series, meaning polynomials, illustrated on
//! band-spectroscopic data", Technometrics 16 (1974)).

use crate::pool::Pool;
use crate::quantile::median;

/// Distance from the centre, in standard deviations, from which a value has no weight. With this
/// reach, the mean is 95 % as efficient as the plain mean if no value is outlying.
const REACH: f64 = 4.685;
/// Expected weight of a normal value: E w(z).
const WEIGHT: f64 = 0.915_107_6;
/// Expected weighted square of a normal value: E w(z) z².
const SQUARE: f64 = 0.757_775_9;
/// Variance of the weighted mean times its sum of weights: E w(z)² z² · E w(z) / (E (w(z) z)')².
const VARIANCE: f64 = 0.963_273_9;
/// Minimum number of values among which an outlier can be recognised. Fewer values all have
/// weight 1.
pub(crate) const VALUES_MIN: usize = 10;
/// A value with a weight below this is outlying. It is at least 3.9 standard deviations from the
/// centre, like one normal value in 10,000.
const OUTLYING: f64 = 0.1;
/// The median of the absolute value of a standard normal value.
const NORMAL_MEDIAN: f64 = 0.674_489_750_196_081_7;
/// Number of rounds, spent first on the centre alone, then on centre and variance. A further round
/// changes the centre by less than 1 % of its error.
const CENTRE_ROUNDS: u32 = 15;
const VARIANCE_ROUNDS: u32 = 5;
/// Number of bisections of the range of a variance, to one part in a million.
const HALVINGS: u32 = 40;

/// A weight for each value, in addition to the weight by its variance, and the corrections that
/// these weights require.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Biweights {
    pub weights: Vec<f64>,
    /// Expected weighted sum of squares per degree of freedom.
    pub square: f64,
    /// Variance of the weighted mean, times the sum of weights.
    pub variance: f64,
    /// Effective number of values.
    pub count: f64,
}

impl Biweights {
    /// Returns weights of 1 for all values.
    fn equal(count: usize) -> Self {
        Self {
            weights: vec![1.0; count],
            square: 1.0,
            variance: 1.0,
            count: count as f64,
        }
    }

    /// Weights values by their distance from a common centre. `errors` holds the standard error
    /// of each value.
    ///
    /// # Panics
    /// If there are no values.
    pub fn new(values: &[f64], errors: &[f64]) -> Self {
        if values.len() < VALUES_MIN {
            return Self::equal(values.len());
        }
        let mut centre = median(values);
        let mut between = between_by_median(values, errors, centre);
        let mut biweights = Self::at(values, errors, centre, between);
        for round in 0..CENTRE_ROUNDS + VARIANCE_ROUNDS {
            let pool = Pool::new(values, errors, &biweights.weights);
            if round >= CENTRE_ROUNDS {
                let freedom = (biweights.count - 1.0).max(1.0);
                between = pool.between_variance(biweights.square * freedom);
            }
            centre = pool.at(between).mean;
            biweights = Self::at(values, errors, centre, between);
        }
        biweights
    }

    fn at(values: &[f64], errors: &[f64], centre: f64, between: f64) -> Self {
        let weight = |(value, error): (&f64, &f64)| {
            let variance = error * error + between;
            let share = (value - centre).powi(2) / variance / REACH.powi(2);
            (1.0 - share).max(0.0).powi(2)
        };
        let weights: Vec<f64> = values.iter().zip(errors).map(weight).collect();
        Self {
            count: weights.iter().sum::<f64>() / WEIGHT,
            weights,
            square: SQUARE,
            variance: VARIANCE,
        }
    }

    /// Returns the indices of the outlying values, ascending.
    pub fn outlying(&self) -> Vec<usize> {
        let weights = self.weights.iter().enumerate();
        let outlying = weights.filter(|(_, weight)| **weight < OUTLYING);
        outlying.map(|(index, _)| index).collect()
    }
}

/// Returns the variance between values at which the median distance from the centre, in standard
/// deviations, is the same as for normal values. 0 if this distance is smaller even without a
/// variance.
fn between_by_median(values: &[f64], errors: &[f64], centre: f64) -> f64 {
    let is_too_small = |between: f64| {
        let distance = |(value, error): (&f64, &f64)| {
            (value - centre).abs() / (error * error + between).sqrt()
        };
        let distances: Vec<f64> = values.iter().zip(errors).map(distance).collect();
        median(&distances) > NORMAL_MEDIAN
    };
    if !is_too_small(0.0) {
        return 0.0;
    }
    let largest = errors.iter().fold(0.0_f64, |largest, e| largest.max(*e));
    let (mut low, mut high) = (0.0, largest * largest);
    while is_too_small(high) {
        (low, high) = (high, 2.0 * high);
    }
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if is_too_small(middle) {
            low = middle
        } else {
            high = middle
        }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;

    #[test]
    fn the_constants_are_those_of_the_normal_distribution() {
        const STEPS: u32 = 100_000;
        let step = 2.0 * REACH / f64::from(STEPS);
        let expected = |of: &dyn Fn(f64, f64) -> f64| {
            let at = |index: u32| {
                let z = (f64::from(index) + 0.5) * step - REACH;
                let density = (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
                of(z, z * z / REACH / REACH) * density * step
            };
            (0..STEPS).map(at).sum::<f64>()
        };
        let weight = expected(&|_, share| (1.0 - share).powi(2));
        let square = expected(&|z, share| (1.0 - share).powi(2) * z * z);
        let psi = expected(&|z, share| (1.0 - share).powi(4) * z * z);
        let slope = expected(&|_, share| (1.0 - share) * (1.0 - 5.0 * share));
        let variance = psi * weight / slope.powi(2);
        for (constant, integral) in [(WEIGHT, weight), (SQUARE, square), (VARIANCE, variance)] {
            assert!((constant - integral).abs() < 1e-6, "{constant}: {integral}");
        }
        // The reach is chosen for an efficiency of 95 %.
        assert!((slope.powi(2) / psi - 0.95).abs() < 1e-4);
    }

    #[test]
    fn values_that_lie_far_from_the_others_are_outlying_and_have_no_weight() {
        let mut rng = Rng::new(1);
        let mut values: Vec<f64> = (0..20).map(|_| rng.normal()).collect();
        (values[3], values[11]) = (9.0, -12.0);
        let biweights = Biweights::new(&values, &[0.1; 20]);
        assert_eq!(biweights.outlying(), [3, 11]);
        assert_eq!(biweights.weights[3], 0.0);
    }

    #[test]
    fn one_of_few_values_is_never_outlying() {
        let biweights = Biweights::new(&[0.0, 0.1, 0.2, 0.1, 90.0], &[0.1; 5]);
        assert_eq!(biweights, Biweights::equal(5));
    }
}
