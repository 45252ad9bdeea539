//! Change points of the mean, by PELT: Killick, Fearnhead and Eckley, "Optimal detection of
//! changepoints with a linear computational cost", Journal of the American Statistical Association
//! 107 (2012).

use crate::quantile::mean;

/// Returns the indices at which a segment with a new mean begins, ascending.
///
/// The cuts of `values` into segments minimise the sum of squared distances from the segments'
/// means plus `penalty` for each cut. The penalty has the unit of a squared value. A penalty that
/// grows with the logarithm of the number of values prevents cuts in noise.
#[must_use]
pub fn change_points(values: &[f64], penalty: f64) -> Vec<usize> {
    if values.is_empty() {
        return Vec::new();
    }
    let cost = SegmentCost::new(values);
    // Minimum cost of the first `end` values, and the start of their last segment.
    let mut best = vec![(-penalty, 0)];
    let mut starts = Vec::new();
    for end in 1..=values.len() {
        starts.push(end - 1);
        let total = |start: usize| best[start].0 + cost.squared_distances(start, end);
        let last = starts.iter().map(|start| (total(*start), *start));
        let least = last.min_by(|a, b| a.0.total_cmp(&b.0));
        let (least, start) = least.expect("the value before `end` is a start");
        // A start that already costs more never becomes the best again (their theorem 3.1).
        starts.retain(|start| {
            best[*start].0 + cost.squared_distances(*start, end) <= least + penalty
        });
        best.push((least + penalty, start));
    }
    let mut found = Vec::new();
    let mut end = values.len();
    while end > 0 {
        end = best[end].1;
        found.push(end);
    }
    found.pop();
    found.reverse();
    found
}

/// Prefix sums that give the cost of any segment in constant time.
struct SegmentCost {
    sums: Vec<(f64, f64)>,
}

impl SegmentCost {
    fn new(values: &[f64]) -> Self {
        // Values centred on 0 lose no digits in the difference of two large sums.
        let center = mean(values);
        let mut sums = vec![(0.0, 0.0)];
        for value in values {
            let (sum, squares) = sums[sums.len() - 1];
            let value = value - center;
            sums.push((sum + value, squares + value * value));
        }
        Self { sums }
    }

    /// Sum of squared distances from the mean of `start..end`.
    fn squared_distances(&self, start: usize, end: usize) -> f64 {
        let sum = self.sums[end].0 - self.sums[start].0;
        let squares = self.sums[end].1 - self.sums[start].1;
        squares - sum * sum / (end - start) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;

    /// Returns the least cost by trying every set of cuts.
    fn least_cost(values: &[f64], penalty: f64) -> f64 {
        let sets = 1_usize << (values.len() - 1);
        let costs = (0..sets).map(|set| {
            let cuts = (1..values.len()).filter(|cut| set >> (cut - 1) & 1 == 1);
            cost_of(values, &cuts.collect::<Vec<_>>(), penalty)
        });
        costs.fold(f64::INFINITY, f64::min)
    }

    fn cost_of(values: &[f64], cuts: &[usize], penalty: f64) -> f64 {
        let ends = cuts.iter().copied().chain([values.len()]);
        let mut start = 0;
        let mut cost = penalty * cuts.len() as f64;
        for end in ends {
            let center = mean(&values[start..end]);
            cost += values[start..end]
                .iter()
                .map(|v| (v - center).powi(2))
                .sum::<f64>();
            start = end;
        }
        cost
    }

    #[test]
    fn no_other_cut_costs_less() {
        let mut rng = Rng::new(1);
        for case in 0..200 {
            let values: Vec<f64> = (0..10)
                .map(|at| {
                    1e6 + rng.uniform()
                        + if at >= case % 10 {
                            rng.uniform() * 4.0
                        } else {
                            0.0
                        }
                })
                .collect();
            let penalty = 0.2 + rng.uniform();
            let found = change_points(&values, penalty);
            let (cost, least) = (
                cost_of(&values, &found, penalty),
                least_cost(&values, penalty),
            );
            assert!(cost <= least + 1e-6, "{values:?} {found:?} {cost} {least}");
        }
    }

    #[test]
    fn a_step_is_found_where_it_is_and_none_in_a_constant() {
        let mut values = vec![1.0; 50];
        values.extend([3.0; 7]);
        assert_eq!(change_points(&values, 1.0), [50]);
        assert_eq!(change_points(&[2.5; 40], 1e-6), [0; 0]);
        assert_eq!(change_points(&[], 1.0), [0; 0]);
    }
}
