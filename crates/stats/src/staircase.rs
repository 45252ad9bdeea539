//! Where a curve rises in steps.

use crate::Interval;
use crate::quantile::median;
use crate::signed_rank::{differences, joint_interval};

/// A piecewise-constant fit: plateaus with steps between them.
#[derive(Debug, Clone, PartialEq)]
pub struct Staircase {
    /// Index of the first value of each plateau except the first: one per step.
    pub starts: Vec<usize>,
    /// Mean of each plateau's values; one more than there are steps.
    pub plateaus: Vec<f64>,
    /// Root mean square of the residuals.
    pub residual_rms: f64,
}

impl Staircase {
    /// Fits the plateaus of least squared error. Among all ways to cut `values`, in their order,
    /// into `steps + 1` runs of at least `plateau_min` values, it takes the one whose runs are
    /// nearest to their means, and the first of several equal ones.
    ///
    /// The optimum is exact, by dynamic programming over the place of the last cut: Bellman, "On
    /// the approximation of curves by line segments using dynamic programming", CACM 4 (1961);
    /// Auger and Lawrence, "Algorithms for the optimal identification of segment neighborhoods",
    /// Bulletin of Mathematical Biology 51 (1989). The time grows with the number of steps times
    /// the square of the number of values.
    ///
    /// Returns `None` if there are too few values, or one is NaN or infinite.
    ///
    /// # Panics
    /// If `plateau_min` is 0.
    pub fn fit(values: &[f64], steps: usize, plateau_min: usize) -> Option<Self> {
        assert!(plateau_min > 0, "a plateau has at least one value");
        let needed = (steps + 1).checked_mul(plateau_min)?;
        if values.len() < needed || values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        let runs = Runs::new(values);
        let starts = cuts(&runs, values.len(), steps, plateau_min);
        let mut bounds = vec![0];
        bounds.extend(&starts);
        bounds.push(values.len());
        let pairs = || bounds.windows(2).map(|pair| (pair[0], pair[1]));
        let plateaus = pairs().map(|(from, to)| runs.mean(from, to)).collect();
        let error: f64 = pairs().map(|(from, to)| runs.error(from, to)).sum();
        Some(Self {
            starts,
            plateaus,
            residual_rms: (error / values.len() as f64).sqrt(),
        })
    }

    /// Returns the fit with the most steps in which every step rises by at least `rise`, in the
    /// unit of the values.
    ///
    /// A measured staircase is rounded: near the capacity of a cache, some accesses hit it and
    /// some do not. Criteria that weigh the error against the number of steps (Yao, "Estimating
    /// the number of change-points via Schwarz' criterion", Statistics and Probability Letters 6
    /// (1988)) find more steps in that shape the less noise there is. Therefore the caller says
    /// beforehand what counts as a step.
    ///
    /// Returns `None` if there are fewer than `plateau_min` values, or one is NaN or infinite.
    ///
    /// # Panics
    /// If `plateau_min` is 0, or `rise` is not positive.
    pub fn rising(values: &[f64], rise: f64, plateau_min: usize) -> Option<Self> {
        assert!(plateau_min > 0, "a plateau has at least one value");
        assert!(rise > 0.0, "a rise of {rise} is not positive");
        let most = (values.len() / plateau_min).checked_sub(1)?;
        let rises = |fit: &Self| {
            fit.plateaus
                .windows(2)
                .all(|pair| pair[1] - pair[0] >= rise)
        };
        (0..=most)
            .rev()
            .filter_map(|steps| Self::fit(values, steps, plateau_min))
            .find(rises)
    }
}

/// Returns the level at which a curve rises by at least `rise` for the `number`-th time, counted
/// from 1. The curve is the fit of [`Staircase::rising`] to the medians over blocks. The level is
/// the geometric mean of the last level of one plateau and the first level of the next one. `logs`
/// holds logarithms, with one series per level and one value per block in it; `rise` is on the same
/// scale. Returns `None` if the curve has fewer steps.
///
/// The ends of the interval are such means too, since no level between the two was measured. The
/// interval contains every place of the step that the blocks do not exclude, for every number of
/// steps that they do not exclude:
///
/// - A number of steps is too high if one of its steps is shown to rise by less than `rise`. It is
///   too low if all steps of the next number, and of every number up to it, are shown to rise by
///   at least `rise`. If even `number` steps are not certain, the upper end is infinite.
/// - A place is excluded if moving the cut by one level is shown to fit better. Between its
///   neighbouring cuts, the cut of least squared error is the one with the largest mean rise,
///   weighted by √(k·l/(k + l)) for k levels before and l levels after it. The weighted rise is a
///   linear combination of the levels, and so has one value per block.
///
/// Each end errs only if one of `steps + 3` intervals does: the rises of the true number of steps,
/// one rise of the next number, and the two moves of the true cut. So this many intervals must
/// hold jointly.
///
/// # Panics
/// If `levels` and `logs` differ in length, `number` or `plateau_min` is 0, `rise` is not
/// positive, or `confidence` is not strictly between 0 and 1.
pub fn step(
    levels: &[f64],
    logs: &[Vec<f64>],
    number: usize,
    rise: f64,
    plateau_min: usize,
    confidence: f64,
) -> Option<Interval> {
    assert_eq!(levels.len(), logs.len(), "each level needs a series");
    assert!(number > 0, "steps are counted from 1");
    let curve: Vec<f64> = logs.iter().map(|values| median(values)).collect();
    let best = Staircase::rising(&curve, rise, plateau_min)?;
    let start = *best.starts.get(number - 1)?;
    let fits: Vec<Steps> = (0..=curve.len() / plateau_min - 1)
        .filter_map(|steps| Staircase::fit(&curve, steps, plateau_min))
        .map(|fit| Steps::new(logs, fit.starts, confidence))
        .collect();
    let certain = fits.iter().skip(1);
    let certain = certain.take_while(|fit| fit.rises.iter().all(|one| one.low >= rise));
    let certain = certain.count();
    let is_possible =
        |fit: &&Steps| fit.starts == best.starts || fit.rises.iter().all(|one| one.high >= rise);
    let places = fits[certain.min(best.starts.len())..].iter();
    let places = places.filter(is_possible);
    let places = places.flat_map(|fit| fit.places(logs, number, plateau_min));
    let (first, last) = places.fold((start, start), |(first, last), place| {
        (first.min(place), last.max(place))
    });
    let middle = |start: usize| (levels[start - 1] * levels[start]).sqrt();
    Some(Interval {
        estimate: middle(start),
        low: middle(first),
        high: if certain >= number {
            middle(last)
        } else {
            f64::INFINITY
        },
        confidence: fits[best.starts.len()].rises[0].confidence,
    })
}

/// A staircase with some number of steps, and the rise of each step.
struct Steps {
    starts: Vec<usize>,
    rises: Vec<Interval>,
    confidence: f64,
}

impl Steps {
    fn new(logs: &[Vec<f64>], starts: Vec<usize>, confidence: f64) -> Self {
        let mut steps = Self {
            starts,
            rises: Vec::new(),
            confidence,
        };
        steps.rises = (1..=steps.starts.len())
            .map(|number| {
                let (from, to) = steps.around(number, logs.len());
                steps.joint_interval(&rises(logs, from, steps.starts[number - 1], to))
            })
            .collect();
        steps
    }

    fn joint_interval(&self, values: &[f64]) -> Interval {
        joint_interval(values, self.starts.len() + 3, self.confidence)
    }

    /// Returns the first level of the plateau before a step, and one past the last level of the
    /// plateau after it.
    fn around(&self, number: usize, levels: usize) -> (usize, usize) {
        let from = number
            .checked_sub(2)
            .map_or(0, |before| self.starts[before]);
        let to = self.starts.get(number).copied().unwrap_or(levels);
        (from, to)
    }

    /// Returns the levels at which step `number` may start; none if there are fewer steps.
    fn places(&self, logs: &[Vec<f64>], number: usize, plateau_min: usize) -> Vec<usize> {
        let Some(own) = self.starts.get(number - 1) else {
            return Vec::new();
        };
        let (from, to) = self.around(number, logs.len());
        let cuts = from + plateau_min..=to - plateau_min;
        let weighted = |cut: usize| -> Vec<f64> {
            let (before, after) = ((cut - from) as f64, (to - cut) as f64);
            let weight = (before * after / (before + after)).sqrt();
            let rises = rises(logs, from, cut, to).into_iter();
            rises.map(|rise| weight * rise).collect()
        };
        let is_excluded = |cut: usize, by: usize| {
            cuts.contains(&by) && {
                let gains = differences(&weighted(by), &weighted(cut));
                self.joint_interval(&gains).low > 0.0
            }
        };
        cuts.clone()
            .filter(|cut| cut == own || !is_excluded(*cut, cut - 1) && !is_excluded(*cut, cut + 1))
            .collect()
    }
}

/// Returns, for each block, how far the mean over levels rises at a cut.
fn rises(logs: &[Vec<f64>], from: usize, cut: usize, to: usize) -> Vec<f64> {
    let mean = |part: &[Vec<f64>], block: usize| {
        part.iter().map(|values| values[block]).sum::<f64>() / part.len() as f64
    };
    (0..logs[from].len())
        .map(|block| mean(&logs[cut..to], block) - mean(&logs[from..cut], block))
        .collect()
}

/// Prefix sums that give the error of any run of values.
struct Runs {
    centre: f64,
    sums: Vec<f64>,
    squares: Vec<f64>,
}

impl Runs {
    fn new(values: &[f64]) -> Self {
        // A large mean costs sums of squares digits, so the mean is subtracted.
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

    /// Returns the sum of squared distances from the mean.
    fn error(&self, from: usize, to: usize) -> f64 {
        let sum = self.sums[to] - self.sums[from];
        let squares = self.squares[to] - self.squares[from];
        (squares - sum * sum / (to - from) as f64).max(0.0)
    }
}

/// Returns the first indices of all runs except the first.
fn cuts(runs: &Runs, length: usize, steps: usize, plateau_min: usize) -> Vec<usize> {
    // errors[to]: least error of the first `to` values with the current number of steps.
    let mut errors: Vec<f64> = (0..=length)
        .map(|to| {
            if to >= plateau_min {
                runs.error(0, to)
            } else {
                f64::INFINITY
            }
        })
        .collect();
    let mut last_cuts: Vec<Vec<usize>> = Vec::with_capacity(steps);
    for step in 1..=steps {
        let mut next = vec![f64::INFINITY; length + 1];
        let mut cut_at = vec![0; length + 1];
        for to in (step + 1) * plateau_min..=length {
            let cuts = step * plateau_min..=to - plateau_min;
            let total = |cut: usize| errors[cut] + runs.error(cut, to);
            // The cuts ascend, and only a smaller error replaces another: the first of equal ones
            // wins.
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
        for (plateau, expected) in fit.plateaus.iter().zip([1.0, 4.0, 9.0]) {
            assert!((plateau - expected).abs() < 1e-12, "{fit:?}");
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
    fn plateaus_are_as_long_as_asked_for() {
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

    /// Twelve blocks of a curve, each with its own speed, and with independent noise on each
    /// level.
    fn blocks(curve: &[f64], noise: f64) -> (Vec<f64>, Vec<Vec<f64>>) {
        let mut rng = Rng::new(3);
        let speeds: Vec<f64> = (0..12).map(|_| 0.2 * rng.normal()).collect();
        let levels = (0..curve.len()).map(|level| 2f64.powi(level as i32));
        let mut level = |at: &f64| {
            let blocks = speeds.iter();
            blocks
                .map(|speed| at + speed + noise * rng.normal())
                .collect()
        };
        (levels.collect(), curve.iter().map(&mut level).collect())
    }

    #[test]
    fn a_clear_step_lies_between_two_levels() {
        let curve = [0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 3.0, 3.0, 3.0];
        let (levels, logs) = blocks(&curve, 0.05);
        for (number, start) in [(1, 4), (2, 7)] {
            let step = step(&levels, &logs, number, 0.7, 3, 0.95).unwrap();
            assert!(step.reaches(0.95));
            let middle = (levels[start - 1] * levels[start]).sqrt();
            assert_eq!(
                (step.low, step.estimate, step.high),
                (middle, middle, middle)
            );
        }
        assert_eq!(step(&levels, &logs, 3, 0.7, 3, 0.95), None);
    }

    #[test]
    fn a_level_half_way_up_may_belong_to_either_plateau() {
        let curve = [0.0, 0.0, 0.0, 0.0, 0.5, 1.0, 1.0, 1.0, 1.0];
        let (levels, logs) = blocks(&curve, 0.05);
        let step = step(&levels, &logs, 1, 0.7, 3, 0.95).unwrap();
        assert!(levels[3] < step.low && step.low < levels[4]);
        assert!(levels[4] < step.high && step.high < levels[5]);
    }

    #[test]
    fn a_step_that_may_be_too_low_leaves_open_whether_it_is_there() {
        let curve = [0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.73, 1.73, 1.73];
        let (levels, logs) = blocks(&curve, 0.05);
        let second = step(&levels, &logs, 2, 0.7, 3, 0.95).unwrap();
        assert!(levels[5] < second.low && second.low < levels[6]);
        assert_eq!(second.high, f64::INFINITY);
        // If the second step is not there, the first may be in its place.
        let first = step(&levels, &logs, 1, 0.7, 3, 0.95).unwrap();
        assert_eq!((first.low, first.high), (first.estimate, second.estimate));
    }

    #[test]
    #[should_panic(expected = "a rise of 0")]
    fn a_step_of_no_height_is_a_mistake() {
        let _ = Staircase::rising(&[1.0], 0.0, 1);
    }
}
