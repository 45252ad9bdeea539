//! How far apart two runs of the same work may be.

use crate::interval::assert_confidence;
use crate::quantile::mean;
use crate::student::student_quantile;

/// Maximum number of treatments whose variances are simply pooled.
const FEW: usize = 4;

/// Returns the difference between two further runs that, with the given confidence, none of several
/// treatments exceeds. `treatments` has one series per treatment with one value per run in it, the
/// logarithm of the median; all series are from the same runs. All treatments are assumed to vary
/// equally.
///
/// A run shifts its treatments together (a heated machine), or each one separately (its memory
/// layout). With few treatments, the pooled variance gets the runs - 1 degrees of freedom that it
/// has in the first case, and the error is divided among the treatments as in the second
/// (Bonferroni; Dunn, "Multiple comparisons among means", JASA 56 (1961)). With many treatments,
/// the result would be too wide. Then the means of the runs show the shared part of a shift, and
/// the residuals show the rest; each of the two gets half of the error.
///
/// # Panics
/// If there are no treatments, fewer than two runs, treatments with different numbers of runs, or
/// `confidence` is not strictly between 0 and 1.
pub fn session_shift(treatments: &[Vec<f64>], confidence: f64) -> f64 {
    assert_confidence(confidence);
    let (count, runs) = (treatments.len(), treatments[0].len());
    assert!(
        runs > 1 && treatments.iter().all(|values| values.len() == runs),
        "each treatment needs one value from each of several runs"
    );
    let centred: Vec<Vec<f64>> = treatments.iter().map(|values| centre(values)).collect();
    let freedom = (runs - 1) as f64;
    let error = 1.0 - confidence;
    let bound = |variance: f64, freedom: f64, error: f64| {
        student_quantile(1.0 - error, freedom) * (2.0 * variance).sqrt()
    };
    let squares = |values: &[f64]| values.iter().map(|x| x * x).sum::<f64>();
    if count <= FEW {
        let pooled = squares(&centred.concat()) / (freedom * count as f64);
        return bound(pooled, freedom, error / count as f64);
    }
    let of_run = |run: usize| mean(&centred.iter().map(|one| one[run]).collect::<Vec<_>>());
    let shared: Vec<f64> = (0..runs).map(of_run).collect();
    let left = centred
        .iter()
        .flat_map(|one| one.iter().zip(&shared).map(|(x, shift)| x - shift));
    let freedom_left = freedom * (count - 1) as f64;
    let left = squares(&left.collect::<Vec<_>>()) / freedom_left;
    bound(squares(&shared) / freedom, freedom, error / 2.0)
        + bound(left, freedom_left, error / 2.0 / count as f64)
}

fn centre(values: &[f64]) -> Vec<f64> {
    let mean = mean(values);
    values.iter().map(|x| x - mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;

    #[test]
    fn one_treatment_has_the_interval_of_a_further_difference() {
        let values = vec![1.0, 2.0, 3.0];
        let expected = 4.302_653 * 2.0_f64.sqrt();
        assert!((session_shift(&[values], 0.95) - expected).abs() < 1e-5);
        assert_eq!(session_shift(&[vec![1.0; 4], vec![2.0; 4]], 0.95), 0.0);
    }

    /// Returns how often some treatment exceeds the limit between two further runs.
    fn exceeded(runs: usize, treatments: usize, together: f64) -> f64 {
        const TIMES: usize = 2000;
        let mut rng = Rng::new(7);
        let mut run = || {
            let shared = together * rng.normal();
            let own = (0..treatments).map(|_| shared + (1.0 - together) * rng.normal());
            own.collect::<Vec<f64>>()
        };
        let times = (0..TIMES).filter(|_| {
            let seen: Vec<Vec<f64>> = (0..runs).map(|_| run()).collect();
            let of = |treatment: usize| seen.iter().map(|run| run[treatment]).collect();
            let columns: Vec<Vec<f64>> = (0..treatments).map(of).collect();
            let limit = session_shift(&columns, 0.95);
            let (a, b) = (run(), run());
            a.iter().zip(&b).any(|(a, b)| (a - b).abs() > limit)
        });
        times.count() as f64 / TIMES as f64
    }

    #[test]
    fn further_runs_pass_it_in_5_percent_at_most_whether_treatments_move_together_or_not() {
        for runs in [3, 5, 10] {
            for treatments in [1, 4, 30] {
                for together in [0.0, 0.5, 1.0] {
                    let share = exceeded(runs, treatments, together);
                    // The standard error of 5 % is 0.5 %.
                    assert!(share < 0.066, "{runs}, {treatments}, {together}: {share}");
                }
            }
        }
    }
}
