//! Student's distribution.

/// The value that the size of Student's t stays below with a probability, for a whole
/// number of degrees of freedom (Abramowitz and Stegun, "Handbook of mathematical
/// functions" (1964), 26.7.3 and 26.7.4).
pub fn student_quantile(probability: f64, freedom: usize) -> f64 {
    crate::interval::assert_confidence(probability);
    assert!(
        freedom > 0,
        "Student's distribution has a degree of freedom"
    );
    // Of the angle whose tangent is t/√ν, in which the probability is a finite sum.
    let (mut low, mut high) = (0.0, std::f64::consts::FRAC_PI_2);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        match within(middle, freedom) < probability {
            true => low = middle,
            false => high = middle,
        }
    }
    low.tan() * (freedom as f64).sqrt()
}

fn within(angle: f64, freedom: usize) -> f64 {
    let (sin, cos) = angle.sin_cos();
    let is_odd = freedom % 2 == 1;
    let mut term = if is_odd { cos } else { 1.0 };
    let mut sum = 0.0;
    // The exponents of the cosine: 1, 3 … or 0, 2 … up to ν - 2.
    for exponent in (usize::from(is_odd)..freedom.saturating_sub(1)).step_by(2) {
        sum += term;
        term *= cos * cos * (exponent + 1) as f64 / (exponent + 2) as f64;
    }
    match is_odd {
        true => std::f64::consts::FRAC_2_PI * (angle + sin * sum),
        false => sin * sum,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_published_table() {
        for (freedom, two_sided_5, two_sided_1) in [
            (1, 12.7062, 63.6567),
            (2, 4.3027, 9.9248),
            (3, 3.1824, 5.8409),
            (5, 2.5706, 4.0321),
            (10, 2.2281, 3.1693),
            (100, 1.9840, 2.6259),
        ] {
            for (probability, expected) in [(0.95, two_sided_5), (0.99, two_sided_1)] {
                let t = student_quantile(probability, freedom);
                assert!((t / expected - 1.0).abs() < 2e-5, "{freedom}: {t}");
            }
        }
    }
}
