//! Welch's t-test, by which hyperfine's script `welch_ttest.py` compares the times
//! that hyperfine exported.

use toll_stats::{mean, standard_deviation};

/// Two-sided p-value that two samples have the same mean (Welch, "The
/// generalization of 'Student's' problem when several different population
/// variances are involved", Biometrika 34 (1947)). 1 where neither varies and the
/// means agree, 0 where they do not.
///
/// # Panics
/// If a sample has fewer than 2 values.
#[must_use]
pub fn welch_p(first: &[f64], second: &[f64]) -> f64 {
    assert!(first.len() > 1 && second.len() > 1, "a mean has no error");
    let variance_of_mean =
        |values: &[f64]| standard_deviation(values).powi(2) / values.len() as f64;
    let (a, b) = (variance_of_mean(first), variance_of_mean(second));
    let difference = mean(first) - mean(second);
    if a + b == 0.0 {
        return if difference == 0.0 { 1.0 } else { 0.0 };
    }
    let t_squared = difference.powi(2) / (a + b);
    let share = |part: f64, count: usize| part.powi(2) / (count as f64 - 1.0);
    let freedom = (a + b).powi(2) / (share(a, first.len()) + share(b, second.len()));
    student_p(t_squared, freedom)
}

/// P(T² ≥ `t_squared`) of Student's distribution.
fn student_p(t_squared: f64, freedom: f64) -> f64 {
    incomplete_beta(freedom / (freedom + t_squared), freedom / 2.0, 0.5)
}

/// The regularised incomplete beta function, by its continued fraction (Press,
/// Teukolsky, Vetterling and Flannery, "Numerical recipes", 3rd edition (2007),
/// section 6.4).
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (-x).ln_1p()).exp();
    // The fraction converges fast on this side of the mean alone.
    if x < (a + 1.0) / (a + b + 2.0) {
        front * fraction(x, a, b) / a
    } else {
        1.0 - front * fraction(1.0 - x, b, a) / b
    }
}

/// By Lentz's method.
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

/// ln Γ by Lanczos' approximation, right to 1e-13 for positive arguments.
fn ln_gamma(x: f64) -> f64 {
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
    fn tails_are_those_of_the_published_table() {
        // Two-sided 5 % points of Student's distribution.
        for (freedom, t) in [
            (1.0, 12.7062),
            (5.0, 2.5706),
            (10.0, 2.2281),
            (100.0, 1.9840),
        ] {
            let p = student_p(t * t, freedom);
            assert!((p - 0.05).abs() < 2e-5, "{freedom}: {p}");
        }
        // With many degrees of freedom it is the normal one.
        assert!((student_p(1.959_964_f64.powi(2), 1e7) - 0.05).abs() < 1e-5);
    }

    #[test]
    fn unequal_variances_give_welchs_degrees_of_freedom() {
        // By hand: means 3 and 6, variances of the mean 0.5 and 0.4; t² = 10,
        // freedom 0.81 / (0.25 / 4 + 0.16 / 4) = 7.902.
        let first = [1.0, 2.0, 3.0, 4.0, 5.0];
        let second = [6.0 - 2.0, 6.0, 6.0, 6.0, 8.0];
        let variance = standard_deviation(&second).powi(2) / 5.0;
        assert!((variance - 0.4).abs() < 1e-12);
        let p = welch_p(&first, &second);
        assert!((p - student_p(10.0, 0.81 / 0.1025)).abs() < 1e-12);
        assert!((0.01..0.02).contains(&p), "{p}");
        assert_eq!(p, welch_p(&second, &first));
    }

    #[test]
    fn samples_that_do_not_vary_are_the_same_or_not() {
        assert_eq!(welch_p(&[1.0, 1.0], &[1.0, 1.0]), 1.0);
        assert_eq!(welch_p(&[1.0, 1.0], &[2.0, 2.0]), 0.0);
    }

    #[test]
    fn identical_normal_samples_differ_at_5_percent_in_one_of_20() {
        let mut rng = toll_stats::Rng::new(3);
        let mut draw = |count: usize| (0..count).map(|_| rng.normal()).collect::<Vec<f64>>();
        let wrong = (0..4000)
            .filter(|_| welch_p(&draw(10), &draw(15)) < 0.05)
            .count();
        assert!((160..240).contains(&wrong), "{wrong}");
    }
}
