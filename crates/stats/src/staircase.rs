//! Where a curve goes up in steps.

/// A piecewise-constant fit: treads with steps between them.
#[derive(Debug, Clone, PartialEq)]
pub struct Staircase {
    /// Index of the first value of each tread but the first: one a step.
    pub starts: Vec<usize>,
    /// Mean of each tread's values, one more than there are steps.
    pub treads: Vec<f64>,
    /// Root mean square of the residuals.
    pub residual_rms: f64,
}

impl Staircase {
    /// Fits the treads of least squared error: of all ways to cut `values`,
    /// which are in order, into `steps + 1` runs of at least `tread_min` values,
    /// the one whose runs lie nearest to their means. The first one of several.
    ///
    /// The optimum is exact, by dynamic programming over the place of the last
    /// cut: Bellman, "On the approximation of curves by line segments using
    /// dynamic programming", CACM 4 (1961); Auger and Lawrence, "Algorithms for
    /// the optimal identification of segment neighborhoods", Bulletin of
    /// Mathematical Biology 51 (1989). The cost grows with the steps times the
    /// square of the values.
    ///
    /// `None` if there are too few values, or one is NaN or infinite.
    pub fn fit(values: &[f64], steps: usize, tread_min: usize) -> Option<Self> {
        assert!(tread_min > 0, "a tread has at least one value");
        let needed = (steps + 1).checked_mul(tread_min)?;
        if values.len() < needed || values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        let runs = Runs::new(values);
        let starts = cuts(&runs, values.len(), steps, tread_min);
        let mut bounds = vec![0];
        bounds.extend(&starts);
        bounds.push(values.len());
        let pairs = || bounds.windows(2).map(|pair| (pair[0], pair[1]));
        let treads = pairs().map(|(from, to)| runs.mean(from, to)).collect();
        let error: f64 = pairs().map(|(from, to)| runs.error(from, to)).sum();
        Some(Self {
            starts,
            treads,
            residual_rms: (error / values.len() as f64).sqrt(),
        })
    }

    /// The fit of most steps in which every step rises by at least `rise`.
    ///
    /// A measured staircase is rounded: where a cache ends, some accesses hit it
    /// and some do not. Criteria that weigh the error against the number of
    /// steps (Yao, "Estimating the number of change-points via Schwarz'
    /// criterion", Statistics and Probability Letters 6 (1988)) take that shape
    /// for more steps the less noise there is. What counts as a step is
    /// therefore said beforehand.
    ///
    /// `None` if there are fewer than `tread_min` values, or one is NaN or
    /// infinite.
    pub fn rising(values: &[f64], rise: f64, tread_min: usize) -> Option<Self> {
        assert!(tread_min > 0, "a tread has at least one value");
        assert!(rise > 0.0, "a rise of {rise}");
        let most = (values.len() / tread_min).checked_sub(1)?;
        let rises = |fit: &Self| fit.treads.windows(2).all(|pair| pair[1] - pair[0] >= rise);
        (0..=most)
            .rev()
            .filter_map(|steps| Self::fit(values, steps, tread_min))
            .find(rises)
    }
}

/// Sums from which the error of any run of values follows.
struct Runs {
    centre: f64,
    sums: Vec<f64>,
    squares: Vec<f64>,
}

impl Runs {
    fn new(values: &[f64]) -> Self {
        // Sums of squares lose digits to a large mean, so it is taken off.
        let centre = values.iter().sum::<f64>() / values.len().max(1) as f64;
        let running = |power: i32| {
            let mut sums = vec![0.0];
            let mut sum = 0.0;
            for value in values {
                sum += (value - centre).powi(power);
                sums.push(sum);
            }
            sums
        };
        Self {
            centre,
            sums: running(1),
            squares: running(2),
        }
    }

    fn mean(&self, from: usize, to: usize) -> f64 {
        self.centre + (self.sums[to] - self.sums[from]) / (to - from) as f64
    }

    /// Sum of squared distances from the mean.
    fn error(&self, from: usize, to: usize) -> f64 {
        let sum = self.sums[to] - self.sums[from];
        let squares = self.squares[to] - self.squares[from];
        (squares - sum * sum / (to - from) as f64).max(0.0)
    }
}

/// The first indices of all runs but the first.
fn cuts(runs: &Runs, length: usize, steps: usize, tread_min: usize) -> Vec<usize> {
    // errors[to]: least error of the first `to` values with so many steps.
    let mut errors: Vec<f64> = (0..=length)
        .map(|to| match to >= tread_min {
            true => runs.error(0, to),
            false => f64::INFINITY,
        })
        .collect();
    let mut last_cuts: Vec<Vec<usize>> = Vec::with_capacity(steps);
    for step in 1..=steps {
        let mut next = vec![f64::INFINITY; length + 1];
        let mut cut_at = vec![0; length + 1];
        for to in (step + 1) * tread_min..=length {
            let cuts = step * tread_min..=to - tread_min;
            let total = |cut: usize| errors[cut] + runs.error(cut, to);
            // Ascending, and only a smaller error replaces one: the first wins.
            for (cut, error) in cuts.map(|cut| (cut, total(cut))) {
                if error < next[to] {
                    (next[to], cut_at[to]) = (error, cut);
                }
            }
        }
        errors = next;
        last_cuts.push(cut_at);
    }
    let mut starts = Vec::with_capacity(steps);
    let mut to = length;
    for cut_at in last_cuts.iter().rev() {
        to = cut_at[to];
        starts.push(to);
    }
    starts.reverse();
    starts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;

    #[test]
    fn a_clean_staircase_is_found_exactly() {
        let values = [1.0, 1.0, 1.0, 4.0, 4.0, 9.0, 9.0, 9.0, 9.0];
        let fit = Staircase::fit(&values, 2, 1).unwrap();
        assert_eq!(fit.starts, [3, 5]);
        for (tread, expected) in fit.treads.iter().zip([1.0, 4.0, 9.0]) {
            assert!((tread - expected).abs() < 1e-12, "{fit:?}");
        }
        assert!(fit.residual_rms < 1e-7, "{fit:?}");
        assert_eq!(Staircase::rising(&values, 1.0, 2), Some(fit));
    }

    #[test]
    fn a_flat_curve_and_a_falling_one_have_no_steps() {
        for values in [[5.0; 6], [6.0, 6.0, 6.0, 1.0, 1.0, 1.0]] {
            let fit = Staircase::rising(&values, 0.5, 2).unwrap();
            assert!(fit.starts.is_empty(), "{fit:?}");
        }
    }

    #[test]
    fn a_rise_smaller_than_asked_for_is_no_step() {
        let values = [1.0, 1.0, 1.2, 1.2, 3.0, 3.0];
        assert_eq!(Staircase::rising(&values, 0.1, 2).unwrap().starts, [2, 4]);
        assert_eq!(Staircase::rising(&values, 0.5, 2).unwrap().starts, [4]);
    }

    #[test]
    fn a_rounded_step_lies_in_the_middle_of_its_rise() {
        let values = [0.0, 0.0, 0.0, 0.0, 0.3, 0.7, 1.0, 1.0, 1.0, 1.0];
        let fit = Staircase::rising(&values, 0.5, 3).unwrap();
        assert_eq!(fit.starts, [5]);
    }

    #[test]
    fn treads_are_as_long_as_asked_for() {
        let values = [0.0, 9.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0];
        assert_eq!(Staircase::fit(&values, 2, 1).unwrap().starts, [1, 2]);
        let starts = Staircase::fit(&values, 1, 3).unwrap().starts;
        assert!((3..=5).contains(&starts[0]), "{starts:?}");
    }

    #[test]
    fn the_fit_is_the_best_of_all_cuts() {
        let mut rng = Rng::new(9);
        for _ in 0..50 {
            let values: Vec<f64> = (0..9).map(|_| 1e6 + rng.uniform()).collect();
            let rms = |bounds: &[usize]| {
                let error: f64 = bounds
                    .windows(2)
                    .map(|pair| {
                        let run = &values[pair[0]..pair[1]];
                        let mean = crate::mean(run);
                        run.iter().map(|value| (value - mean).powi(2)).sum::<f64>()
                    })
                    .sum();
                (error / 9.0).sqrt()
            };
            let mut best = f64::INFINITY;
            for first in 2..=5 {
                for second in first + 2..=7 {
                    best = best.min(rms(&[0, first, second, 9]));
                }
            }
            let fit = Staircase::fit(&values, 2, 2).unwrap();
            assert!((fit.residual_rms - best).abs() < 1e-8, "{fit:?} {best}");
        }
    }

    #[test]
    fn too_few_values_or_none_at_all_have_no_fit() {
        assert_eq!(Staircase::fit(&[1.0, 2.0], 1, 2), None);
        assert_eq!(Staircase::fit(&[1.0, f64::NAN], 0, 1), None);
        assert_eq!(Staircase::rising(&[], 0.5, 1), None);
    }

    #[test]
    #[should_panic(expected = "a rise of 0")]
    fn a_step_of_no_height_is_a_mistake() {
        let _ = Staircase::rising(&[1.0], 0.0, 1);
    }
}
