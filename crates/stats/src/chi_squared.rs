//! The chi-squared distribution.

use crate::interval::assert_confidence;
use crate::student::ln_gamma;

/// Number of bisections of a range. After these, a double does not change any more.
const HALVINGS: u32 = 60;

/// Returns the value below which chi-squared stays with a probability. The degrees of freedom need
/// not be a whole number.
pub(crate) fn chi_squared_quantile(probability: f64, freedom: f64) -> f64 {
    assert_confidence(probability);
    let (mut low, mut high) = (0.0, freedom.max(1.0));
    while chi_squared_cdf(high, freedom) < probability {
        (low, high) = (high, 2.0 * high);
    }
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if chi_squared_cdf(middle, freedom) < probability {
            low = middle
        } else {
            high = middle
        }
    }
    high
}

/// Computes the regularised lower incomplete gamma function at half of `x`, by its series and its
/// continued fraction (Press, Teukolsky, Vetterling and Flannery, "Numerical recipes", 3rd edition
/// (2007), section 6.2).
fn chi_squared_cdf(x: f64, freedom: f64) -> f64 {
    assert!(
        freedom > 0.0,
        "the chi-squared distribution needs positive degrees of freedom"
    );
    if x <= 0.0 {
        return 0.0;
    }
    let (shape, x) = (freedom / 2.0, x / 2.0);
    let front = (shape * x.ln() - x - ln_gamma(shape)).exp();
    // The series converges fast below the mean, the continued fraction above it.
    if x < shape + 1.0 {
        front * series(shape, x)
    } else {
        1.0 - front * fraction(shape, x)
    }
}

fn series(shape: f64, x: f64) -> f64 {
    let mut term = 1.0 / shape;
    let mut sum = term;
    let mut divisor = shape;
    while term > sum * f64::EPSILON {
        divisor += 1.0;
        term *= x / divisor;
        sum += term;
    }
    sum
}

/// Evaluates the continued fraction by Lentz's method.
fn fraction(shape: f64, x: f64) -> f64 {
    const TERMS_MAX: u32 = 10_000;
    let mut b = x + 1.0 - shape;
    let mut c = 1e300;
    let mut d = 1.0 / b;
    let mut value = d;
    for term in 1..TERMS_MAX {
        let i = f64::from(term);
        let a = -i * (i - shape);
        b += 2.0;
        d = 1.0 / (a * d + b);
        c = b + a / c;
        value *= c * d;
        if (c * d - 1.0).abs() < 1e-14 {
            break;
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_published_table() {
        for (freedom, lower_5, upper_5) in [
            (1.0, 0.003_932_14, 3.841_459),
            (2.0, 0.102_586_6, 5.991_465),
            (4.0, 0.710_723, 9.487_729),
            (10.0, 3.940_299, 18.307_038),
            (100.0, 77.929_465, 124.342_113),
        ] {
            for (probability, expected) in [(0.05, lower_5), (0.95, upper_5)] {
                let quantile = chi_squared_quantile(probability, freedom);
                assert!(
                    (quantile / expected - 1.0).abs() < 1e-5,
                    "{freedom}: {quantile}"
                );
            }
        }
        // With 2 degrees of freedom the distribution is exponential.
        let median = chi_squared_quantile(0.5, 2.0);
        assert!((median - 2.0 * 2.0_f64.ln()).abs() < 1e-12);
    }
}
