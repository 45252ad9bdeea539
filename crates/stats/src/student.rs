//! Student's distribution.

use crate::interval::assert_confidence;

/// Number of bisections of a range. After these, a double does not change any more.
const HALVINGS: u32 = 60;

/// Returns the value below which the absolute value of Student's t stays with a probability. The
/// degrees of freedom need not be a whole number.
///
/// # Panics
/// If `probability` is not strictly between 0 and 1, or `freedom` is not positive.
pub fn student_quantile(probability: f64, freedom: f64) -> f64 {
    assert_confidence(probability);
    let error = 1.0 - probability;
    let (mut low, mut high) = (0.0, 1.0);
    while student_p(high, freedom) > error {
        (low, high) = (high, 2.0 * high);
    }
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if student_p(middle, freedom) > error {
            low = middle
        } else {
            high = middle
        }
    }
    high
}

/// Returns the probability that Student's t is at least as far from 0 as `t`: the two-sided
/// p-value.
///
/// # Panics
/// If `freedom` is not positive.
pub fn student_p(t: f64, freedom: f64) -> f64 {
    assert!(
        freedom > 0.0,
        "Student's distribution needs positive degrees of freedom"
    );
    incomplete_beta(freedom / (freedom + t * t), freedom / 2.0, 0.5)
}

/// Computes the regularised incomplete beta function, by its continued fraction (Press, Teukolsky,
/// Vetterling and Flannery, "Numerical recipes", 3rd edition (2007), section 6.4).
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (-x).ln_1p()).exp();
    // The fraction converges fast only on this side of the mean.
    if x < (a + 1.0) / (a + b + 2.0) {
        front * fraction(x, a, b) / a
    } else {
        1.0 - front * fraction(1.0 - x, b, a) / b
    }
}

/// Evaluates the continued fraction by Lentz's method.
fn fraction(x: f64, a: f64, b: f64) -> f64 {
    const TERMS_MAX: u32 = 10_000;
    let away_from_zero = |value: f64| if value.abs() < 1e-300 { 1e-300 } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut value = d;
    for term in 1..TERMS_MAX {
        let m = f64::from(term);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut change = 1.0;
        for coefficient in [even, odd] {
            d = 1.0 / away_from_zero(1.0 + coefficient * d);
            c = away_from_zero(1.0 + coefficient / c);
            change = c * d;
            value *= change;
        }
        if (change - 1.0_f64).abs() < 1e-14 {
            break;
        }
    }
    value
}

/// Returns ln Γ by Lanczos' approximation, accurate to 1e-13 for positive arguments.
pub(crate) fn ln_gamma(x: f64) -> f64 {
    const COEFFICIENTS: [f64; 8] = [
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    if x < 0.5 {
        let pi = std::f64::consts::PI;
        return (pi / (pi * x).sin()).ln() - ln_gamma(1.0 - x);
    }
    let x = x - 1.0;
    let t = x + 7.5;
    let series: f64 = COEFFICIENTS
        .iter()
        .enumerate()
        .map(|(i, coefficient)| coefficient / (x + i as f64 + 1.0))
        .sum();
    0.5 * (2.0 * std::f64::consts::PI).ln() + (x + 0.5) * t.ln() - t
        + (0.999_999_999_999_809_9 + series).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_published_table() {
        for (freedom, two_sided_5, two_sided_1) in [
            (1.0, 12.7062, 63.6567),
            (2.0, 4.3027, 9.9248),
            (3.0, 3.1824, 5.8409),
            (5.0, 2.5706, 4.0321),
            (10.0, 2.2281, 3.1693),
            (100.0, 1.9840, 2.6259),
            // With many degrees of freedom it is the normal distribution.
            (1e7, 1.9600, 2.5758),
        ] {
            for (probability, expected) in [(0.95, two_sided_5), (0.99, two_sided_1)] {
                let t = student_quantile(probability, freedom);
                assert!((t / expected - 1.0).abs() < 2e-5, "{freedom}: {t}");
                let p = student_p(t, freedom);
                assert!((p - (1.0 - probability)).abs() < 1e-9, "{freedom}: {p}");
            }
        }
    }
}
