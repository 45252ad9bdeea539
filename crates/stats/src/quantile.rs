//! Quantiles, moments and Tukey's fences.
//!
//! Quantiles are of type 7 of Hyndman and Fan, "Sample quantiles in statistical packages", The
//! American Statistician 50 (1996). Type 7 is the default of R and `NumPy`, so readers who
//! recompute a figure get the same result. Fences follow Tukey, "Exploratory data analysis"
//! (1977), with these quartiles instead of his hinges.
//!
//! All functions panic if there are no values or one is NaN.

/// Returns the middle value, or the mean of the two middle ones.
pub fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// Returns the type-7 quantile at `p`, from 0 (minimum) to 1 (maximum).
///
/// Infinite values mean "beyond the range" and are not interpolated: the nearer neighbour is
/// taken.
pub fn quantile(values: &[f64], p: f64) -> f64 {
    quantile_sorted(&sorted(values), p)
}

/// Returns the arithmetic mean.
pub fn mean(values: &[f64]) -> f64 {
    assert_usable(values);
    values.iter().sum::<f64>() / values.len() as f64
}

/// Returns the sample standard deviation, with divisor n - 1; NaN for a single value, which shows
/// no spread.
pub fn standard_deviation(values: &[f64]) -> f64 {
    // Two passes: the one-pass formula suffers from cancellation if the spread is small compared
    // with the mean, as for durations in nanoseconds.
    let centre = mean(values);
    let squares: f64 = values.iter().map(|x| (x - centre).powi(2)).sum();
    (squares / (values.len() as f64 - 1.0)).sqrt()
}

/// Returns the indices, ascending, of the values that are more than 1.5 interquartile ranges
/// outside of the quartiles: Tukey's inner fences.
pub fn outliers(values: &[f64]) -> Vec<usize> {
    let sorted = sorted(values);
    let (first, third) = (
        quantile_sorted(&sorted, 0.25),
        quantile_sorted(&sorted, 0.75),
    );
    let reach = 1.5 * (third - first);
    (0..values.len())
        .filter(|&i| values[i] < first - reach || values[i] > third + reach)
        .collect()
}

/// Returns the values in ascending order.
pub(crate) fn sorted(values: &[f64]) -> Vec<f64> {
    assert_usable(values);
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

/// Returns the type-7 quantile of values that are already ascending.
pub(crate) fn quantile_sorted(sorted: &[f64], p: f64) -> f64 {
    assert!((0.0..=1.0).contains(&p), "quantile {p} is outside 0 to 1");
    let position = p * (sorted.len() - 1) as f64;
    let below = position.floor();
    let fraction = position - below;
    let lower = sorted[below as usize];
    let upper = sorted[position.ceil() as usize];
    if lower == upper || fraction == 0.0 {
        lower
    } else if lower.is_finite() && upper.is_finite() {
        lower + fraction * (upper - lower)
    } else if fraction < 0.5 {
        lower
    } else {
        upper
    }
}

fn assert_usable(values: &[f64]) {
    assert!(!values.is_empty(), "no values");
    assert!(!values.iter().any(|x| x.is_nan()), "a value is NaN");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_of_an_even_number_is_the_mean_of_the_middle_two() {
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), 2.5);
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[7.0]), 7.0);
    }

    #[test]
    fn quantiles_interpolate_between_neighbours() {
        let values = [10.0, 20.0, 30.0, 40.0, 50.0];
        assert_eq!(quantile(&values, 0.0), 10.0);
        assert_eq!(quantile(&values, 0.1), 14.0);
        assert_eq!(quantile(&values, 0.25), 20.0);
        assert_eq!(quantile(&values, 1.0), 50.0);
    }

    #[test]
    fn an_infinite_neighbour_is_taken_or_left_but_never_averaged() {
        let values = [1.0, f64::INFINITY];
        assert_eq!(quantile(&values, 0.4), 1.0);
        assert_eq!(quantile(&values, 0.6), f64::INFINITY);
        let both = [f64::NEG_INFINITY, f64::INFINITY];
        assert_eq!(quantile(&both, 0.1), f64::NEG_INFINITY);
        assert_eq!(quantile(&[f64::INFINITY; 2], 0.3), f64::INFINITY);
    }

    #[test]
    fn a_small_spread_on_a_large_mean_is_not_cancelled() {
        let values = [1e9 + 4.0, 1e9 + 7.0, 1e9 + 13.0, 1e9 + 16.0];
        assert!((standard_deviation(&values) - 30f64.sqrt()).abs() < 1e-12);
        assert!(standard_deviation(&[1.0]).is_nan());
    }

    #[test]
    fn outliers_lie_beyond_the_fences() {
        assert_eq!(outliers(&[2.0, 99.0, 1.0, 3.0, 2.5, -99.0]), [1, 5]);
        // A value on the fence, 8.5, is not an outlier.
        assert_eq!(outliers(&[1.0, 2.0, 3.0, 4.0, 5.0, 8.5]), [0usize; 0]);
        assert_eq!(outliers(&[7.0]), [0usize; 0]);
        assert_eq!(outliers(&[7.0, 7.0, 7.0, 8.0]), [3]);
        // Squares about the mean of 2.125: 1/64 + 81/64 + 49/64 + 9/64, over 3.
        let deviation = standard_deviation(&[2.0, 1.0, 3.0, 2.5]);
        assert!((deviation - (140.0_f64 / 64.0 / 3.0).sqrt()).abs() < 1e-15);
    }

    #[test]
    #[should_panic(expected = "no values")]
    fn no_values_have_no_median() {
        let _ = median(&[]);
    }

    #[test]
    #[should_panic(expected = "NaN")]
    fn nan_has_no_place_in_a_median() {
        let _ = median(&[1.0, f64::NAN]);
    }
}
