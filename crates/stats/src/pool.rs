//! Weighted means and the variance between values.

/// Maximum number of rounds of Newton's method. Each round at least doubles the variance, or is
/// nearly the last round.
const ROUNDS_MAX: u32 = 300;

/// Values that are weighted by their variances and by further weights.
pub(crate) struct Pool<'a> {
    values: &'a [f64],
    errors: &'a [f64],
    weights: &'a [f64],
}

/// The weighted mean at one variance.
pub(crate) struct Centre {
    pub mean: f64,
    /// Sum of the weights.
    pub weight: f64,
    /// Weighted sum of squares about the mean.
    sum: f64,
    /// How fast `sum` falls as the variance grows.
    slope: f64,
}

impl<'a> Pool<'a> {
    pub fn new(values: &'a [f64], errors: &'a [f64], weights: &'a [f64]) -> Self {
        Self {
            values,
            errors,
            weights,
        }
    }

    pub fn at(&self, between: f64) -> Centre {
        let weighted = self.values.iter().zip(self.errors).zip(self.weights);
        let weighted = weighted.map(|((value, error), own)| {
            let by_variance = 1.0 / (error * error + between);
            (*value, by_variance, own * by_variance)
        });
        let weight: f64 = weighted.clone().map(|(_, _, weight)| weight).sum();
        let values = weighted.clone().map(|(value, _, weight)| weight * value);
        let mean = values.sum::<f64>() / weight;
        let (mut sum, mut slope) = (0.0, 0.0);
        for (value, by_variance, weight) in weighted {
            let square = weight * (value - mean).powi(2);
            sum += square;
            slope += by_variance * square;
        }
        Centre {
            mean,
            weight,
            sum,
            slope,
        }
    }

    /// Returns the variance with which the sum of squares equals `sum`; 0 if the sum of squares is
    /// no larger even without a variance. Newton's method starts from 0. The sum is convex in the
    /// variance, so the method never goes too far (`DerSimonian` and Kacker, "Random-effects model
    /// for meta-analysis of clinical trials: an update", Contemporary Clinical Trials 28 (2007)).
    pub fn between_variance(&self, sum: f64) -> f64 {
        let mut between = 0.0;
        for _ in 0..ROUNDS_MAX {
            let centre = self.at(between);
            if centre.sum <= sum * (1.0 + 1e-10) {
                break;
            }
            between += (centre.sum - sum) / centre.slope;
        }
        between
    }
}
