//! Intervals for statistics without a distribution of their own.

use crate::interval::assert_confidence;
use crate::normal::{normal_cdf, normal_quantile};
use crate::quantile::quantile_sorted;
use crate::{Interval, Rng};

/// How the ends of a [`BootstrapInterval`] were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BootstrapMethod {
    /// Bias-corrected and accelerated percentiles.
    Bca,
    /// Plain percentiles, because bias or acceleration could not be computed.
    Percentile,
}

/// A bootstrap interval and how far to trust it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BootstrapInterval {
    /// The statistic of the data and its interval, at nominal confidence.
    pub interval: Interval,
    /// Share, 0 to a half, of the replicates without a value. They are left
    /// out, so a large share means an interval for the defined cases only.
    pub undefined_share: f64,
    /// How the ends were found.
    pub method: BootstrapMethod,
}

/// The bias-corrected and accelerated interval of a statistic over resampled
/// clusters, such as blocks.
///
/// `statistic` gets the indices of the clusters drawn, `clusters` of them with
/// repeats (one fewer, without repeats, for the jackknife), and returns `None`
/// or NaN where it is undefined. Infinity stands for "beyond the range
/// measured" and takes part in the percentiles.
///
/// Interval: Efron, "Better bootstrap confidence intervals", JASA 82 (1987);
/// Efron and Tibshirani, "An introduction to the bootstrap" (1993), chapter 14,
/// with the acceleration from the jackknife over clusters. Whole clusters are
/// drawn because the values in one share its drift (Davison and Hinkley,
/// "Bootstrap methods and their application" (1997), section 3.8). The
/// percentile interval takes its place where the bias correction or the
/// acceleration is not finite: all replicates on one side of the estimate, a
/// jackknife value infinite or undefined, or all of them equal.
///
/// Coverage is approximate and too low for few clusters, which the result does
/// not show. A few thousand replicates are needed for a 95 % interval. Equal
/// seeds give equal results.
///
/// `None` if the statistic is undefined on the data itself or on more than
/// half of the replicates.
pub fn cluster_bca(
    clusters: usize,
    statistic: impl Fn(&[usize]) -> Option<f64>,
    confidence: f64,
    replicates: usize,
    seed: u64,
) -> Option<BootstrapInterval> {
    assert_confidence(confidence);
    assert!(clusters > 0, "no clusters to draw from");
    assert!(replicates > 0, "no replicates asked for");
    let defined = |drawn: &[usize]| statistic(drawn).filter(|value| !value.is_nan());
    let all: Vec<usize> = (0..clusters).collect();
    let estimate = defined(&all)?;
    let mut rng = Rng::new(seed);
    let mut drawn = all.clone();
    let mut values: Vec<f64> = (0..replicates)
        .filter_map(|_| {
            drawn.fill_with(|| rng.below(clusters));
            defined(&drawn)
        })
        .collect();
    let undefined = replicates - values.len();
    if 2 * undefined > replicates {
        return None;
    }
    values.sort_unstable_by(f64::total_cmp);
    let tail = (1.0 - confidence) / 2.0;
    let bca = bias_correction(&values, estimate)
        .zip(acceleration(&all, defined))
        .and_then(|(bias, acceleration)| bca_percentiles(bias, acceleration, tail));
    let (low, high) = bca.unwrap_or((tail, 1.0 - tail));
    Some(BootstrapInterval {
        interval: Interval {
            estimate,
            low: quantile_sorted(&values, low),
            high: quantile_sorted(&values, high),
            confidence,
        },
        undefined_share: undefined as f64 / replicates as f64,
        method: match bca {
            Some(_) => BootstrapMethod::Bca,
            None => BootstrapMethod::Percentile,
        },
    })
}

/// z₀: how far the estimate is from the replicates' median, in standard normal
/// units. Replicates equal to the estimate count half, without which a
/// statistic of few distinct values would look biased.
fn bias_correction(ascending: &[f64], estimate: f64) -> Option<f64> {
    let below = ascending.partition_point(|x| *x < estimate);
    let at_most = ascending.partition_point(|x| *x <= estimate);
    let share = (below + at_most) as f64 / (2 * ascending.len()) as f64;
    Some(normal_quantile(share)).filter(|bias| bias.is_finite())
}

/// a: a sixth of the skewness of the jackknife values (Efron 1987, eq. 6.6).
fn acceleration(all: &[usize], defined: impl Fn(&[usize]) -> Option<f64>) -> Option<f64> {
    if all.len() < 2 {
        return None;
    }
    let mut others = all[1..].to_vec();
    let mut left_out = Vec::with_capacity(all.len());
    for index in 0..all.len() {
        left_out.push(defined(&others)?);
        if index < others.len() {
            others[index] = index;
        }
    }
    let centre = left_out.iter().sum::<f64>() / left_out.len() as f64;
    let power_sum = |power| -> f64 { left_out.iter().map(|x| (centre - x).powi(power)).sum() };
    let acceleration = power_sum(3) / (6.0 * power_sum(2).powf(1.5));
    Some(acceleration).filter(|a| a.is_finite())
}

/// The percentiles that stand in for `tail` and `1 - tail`.
fn bca_percentiles(bias: f64, acceleration: f64, tail: f64) -> Option<(f64, f64)> {
    let corrected = |z: f64| {
        let shifted = bias + z;
        let scale = 1.0 - acceleration * shifted;
        // Past its pole the correction turns round and the ends change places.
        (scale > 0.0).then(|| normal_cdf(bias + shifted / scale))
    };
    let z = normal_quantile(tail);
    corrected(z).zip(corrected(-z))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mean;

    const VALUES: [f64; 8] = [3.0, 1.0, 4.0, 1.5, 9.0, 2.6, 5.0, 3.5];

    fn drawn_mean(drawn: &[usize]) -> Option<f64> {
        let values: Vec<f64> = drawn.iter().map(|&i| VALUES[i]).collect();
        Some(mean(&values))
    }

    #[test]
    fn equal_seeds_give_equal_intervals_and_others_do_not() {
        let run = |seed| cluster_bca(8, drawn_mean, 0.9, 500, seed).unwrap();
        assert_eq!(run(1), run(1));
        assert_ne!(run(1).interval, run(2).interval);
    }

    #[test]
    fn the_interval_lies_around_the_estimate_of_the_data() {
        let result = cluster_bca(8, drawn_mean, 0.9, 2000, 3).unwrap();
        assert_eq!(result.method, BootstrapMethod::Bca);
        assert_eq!(result.undefined_share, 0.0);
        assert_eq!(result.interval.estimate, mean(&VALUES));
        assert_eq!(result.interval.confidence, 0.9);
        assert!(result.interval.contains(mean(&VALUES)));
        assert!(result.interval.low > 1.0 && result.interval.high < 9.0);
    }

    #[test]
    fn the_jackknife_leaves_out_each_cluster_once() {
        let seen = std::cell::RefCell::new(Vec::new());
        let statistic = |drawn: &[usize]| {
            if drawn.len() == 2 {
                seen.borrow_mut().push(drawn.to_vec());
            }
            Some(drawn.iter().sum::<usize>() as f64)
        };
        let _ = cluster_bca(3, statistic, 0.9, 10, 0);
        let mut seen = seen.into_inner();
        for left in &mut seen {
            left.sort_unstable();
        }
        assert_eq!(seen, [vec![1, 2], vec![0, 2], vec![0, 1]]);
    }

    #[test]
    fn a_constant_statistic_has_a_degenerate_percentile_interval() {
        let result = cluster_bca(5, |_| Some(2.0), 0.95, 100, 0).unwrap();
        assert_eq!((result.interval.low, result.interval.high), (2.0, 2.0));
        assert_eq!(result.method, BootstrapMethod::Percentile);
    }

    #[test]
    fn a_single_cluster_has_a_degenerate_percentile_interval() {
        let result = cluster_bca(1, drawn_mean, 0.95, 100, 0).unwrap();
        assert_eq!((result.interval.low, result.interval.high), (3.0, 3.0));
        assert_eq!(result.method, BootstrapMethod::Percentile);
    }

    #[test]
    fn values_beyond_the_range_censor_the_end_of_the_interval() {
        // The crossing lies beyond the range unless cluster 0 is drawn.
        let statistic = |drawn: &[usize]| {
            let zeros = drawn.iter().filter(|&&i| i == 0).count();
            Some(if zeros == 0 {
                f64::INFINITY
            } else {
                10.0 / zeros as f64
            })
        };
        let result = cluster_bca(6, statistic, 0.9, 1000, 1).unwrap();
        assert_eq!(result.method, BootstrapMethod::Percentile);
        assert_eq!(result.interval.high, f64::INFINITY);
        assert!(result.interval.low.is_finite());
    }

    #[test]
    fn replicates_all_on_one_side_of_the_estimate_have_no_bias_correction() {
        assert_eq!(bias_correction(&[1.0, 2.0], 3.0), None);
        assert_eq!(bias_correction(&[1.0, 2.0], 0.5), None);
        assert_eq!(bias_correction(&[1.0, 2.0], 1.5), Some(0.0));
        // Equal to the estimate counts half.
        assert_eq!(bias_correction(&[1.0, 2.0, 3.0], 2.0), Some(0.0));
    }

    #[test]
    fn an_acceleration_past_the_pole_has_no_percentiles() {
        assert_eq!(bca_percentiles(0.0, 0.9, 0.05), None);
        assert_eq!(bca_percentiles(0.0, -0.9, 0.05), None);
        let (low, high) = bca_percentiles(0.0, 0.0, 0.05).unwrap();
        assert!((low - 0.05).abs() < 1e-12 && (high - 0.95).abs() < 1e-12);
    }

    #[test]
    fn undefined_replicates_are_left_out_and_counted() {
        // Undefined unless cluster 0 is drawn: a share of (3/4)⁴ = 0.316.
        let statistic = |drawn: &[usize]| drawn.contains(&0).then(|| drawn[0] as f64);
        let result = cluster_bca(4, statistic, 0.9, 4000, 1).unwrap();
        assert!((result.undefined_share - 0.316).abs() < 0.03);
        assert_eq!(result.method, BootstrapMethod::Percentile);
        let nan = |drawn: &[usize]| Some(if drawn.contains(&0) { 1.0 } else { f64::NAN });
        assert!(cluster_bca(4, nan, 0.9, 4000, 1).unwrap().undefined_share > 0.2);
    }

    #[test]
    fn mostly_undefined_statistics_have_no_interval() {
        assert_eq!(cluster_bca(4, |_| None, 0.9, 100, 1), None);
        let only_all = |drawn: &[usize]| (drawn == [0, 1, 2, 3]).then_some(1.0);
        assert_eq!(cluster_bca(4, only_all, 0.9, 100, 1), None);
    }
}
