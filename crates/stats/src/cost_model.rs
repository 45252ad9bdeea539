//! A fixed cost per call and a cost per byte.

/// Time as `calls · per_call + bytes · per_byte`, in the unit of the times to which it was fitted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CostModel {
    /// Time that each call costs, whatever the number of bytes; at least 0.
    pub per_call: f64,
    /// Time that each byte costs; at least 0.
    pub per_byte: f64,
    /// Root mean square of `1 - predicted / measured` over the points.
    pub relative_residual_rms: f64,
    /// Largest absolute `1 - predicted / measured` of a point.
    pub relative_residual_max: f64,
}

impl CostModel {
    /// Returns the share, 0 to 1, that the calls themselves have in the time for `calls` calls
    /// that move `bytes` bytes. NaN if the model predicts no time at all.
    pub fn call_share(&self, calls: f64, bytes: f64) -> f64 {
        let of_calls = calls * self.per_call;
        of_calls / (of_calls + bytes * self.per_byte)
    }
}

/// Fits a [`CostModel`] by least squares on the *relative* error: each point is weighted by 1 /
/// time². Otherwise the largest transfers would outweigh the small ones, which show the cost of a
/// call. Each slice has one entry per point; `time` may be in any unit.
///
/// Neither cost may be negative. If the unconstrained fit makes one cost negative, that cost is 0
/// and the other is fitted alone. For two variables, this is the whole algorithm NNLS of Lawson and
/// Hanson, "Solving least squares problems" (1974).
///
/// Returns `None` for fewer than two points, for points that cannot separate the two costs (the
/// same bytes per call everywhere), and if a time is not positive and finite or a count is
/// negative or not finite.
///
/// # Panics
/// If the slices differ in length.
pub fn fit_cost_model(calls: &[f64], bytes: &[f64], time: &[f64]) -> Option<CostModel> {
    assert_eq!(calls.len(), time.len(), "each number of calls needs a time");
    assert_eq!(bytes.len(), time.len(), "each number of bytes needs a time");
    let is_count = |x: &f64| x.is_finite() && *x >= 0.0;
    let usable =
        calls.iter().chain(bytes).all(is_count) && time.iter().all(|t| t.is_finite() && *t > 0.0);
    if time.len() < 2 || !usable {
        return None;
    }
    // After the weighting every point's right-hand side is 1.
    let per_time =
        |counts: &[f64]| -> Vec<f64> { counts.iter().zip(time).map(|(x, t)| x / t).collect() };
    let (calls, bytes) = (per_time(calls), per_time(bytes));
    let (per_call, per_byte) = non_negative_solution(&calls, &bytes)?;
    let residuals = calls
        .iter()
        .zip(&bytes)
        .map(|(c, b)| 1.0 - (c * per_call + b * per_byte));
    let squares: f64 = residuals.clone().map(|r| r * r).sum();
    Some(CostModel {
        per_call,
        per_byte,
        relative_residual_rms: (squares / time.len() as f64).sqrt(),
        relative_residual_max: residuals.map(f64::abs).fold(0.0, f64::max),
    })
}

/// Returns the `a, b ≥ 0` that bring `a · u + b · v` closest to a vector of ones.
fn non_negative_solution(u: &[f64], v: &[f64]) -> Option<(f64, f64)> {
    /// Sine of the angle between two columns below which the columns count as the same direction.
    const SINE_MIN: f64 = 1e-9;
    let (uu, vv) = (dot(u, u), dot(v, v));
    if uu == 0.0 || vv == 0.0 {
        return None;
    }
    // The columns are orthogonalised, since the normal equations would square the condition
    // number.
    let slope = dot(u, v) / uu;
    let q: Vec<f64> = v.iter().zip(u).map(|(v, u)| v - slope * u).collect();
    let qq = dot(&q, &q);
    if qq <= SINE_MIN * SINE_MIN * vv {
        return None;
    }
    let b = q.iter().sum::<f64>() / qq;
    let alone_a = u.iter().sum::<f64>() / uu;
    let a = alone_a - b * slope;
    // At most one cost is negative: no count is negative, and the target is positive.
    if a < 0.0 {
        Some((0.0, v.iter().sum::<f64>() / vv))
    } else if b < 0.0 {
        Some((alone_a, 0.0))
    } else {
        Some((a, b))
    }
}

fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALLS: [f64; 4] = [1024.0, 256.0, 64.0, 1.0];
    const BYTES: [f64; 4] = [65536.0, 65536.0, 1_048_576.0, 1_048_576.0];

    fn times(per_call: f64, per_byte: f64) -> Vec<f64> {
        let point = |(c, b): (&f64, &f64)| c * per_call + b * per_byte;
        CALLS.iter().zip(&BYTES).map(point).collect()
    }

    #[test]
    fn exact_times_give_back_their_costs() {
        let model = fit_cost_model(&CALLS, &BYTES, &times(150.0, 0.25)).unwrap();
        assert!((model.per_call / 150.0 - 1.0).abs() < 1e-12);
        assert!((model.per_byte / 0.25 - 1.0).abs() < 1e-12);
        assert!(model.relative_residual_max < 1e-12);
        assert!((model.call_share(10.0, 4000.0) - 0.6).abs() < 1e-12);
    }

    #[test]
    fn a_negative_cost_becomes_zero_and_the_other_is_fitted_alone() {
        // Fewer calls take longer for the same bytes.
        let (calls, bytes) = ([1.0, 2.0], [100.0, 100.0]);
        let model = fit_cost_model(&calls, &bytes, &[60.0, 40.0]).unwrap();
        assert_eq!(model.per_call, 0.0);
        // Minimises (1 - 100 b / 60)² + (1 - 100 b / 40)².
        let alone = (100.0 / 60.0 + 100.0 / 40.0) / ((100.0f64 / 60.0).powi(2) + 2.5 * 2.5);
        assert!((model.per_byte - alone).abs() < 1e-12);
        assert_eq!(model.call_share(1.0, 100.0), 0.0);
        assert!(model.relative_residual_max >= model.relative_residual_rms);
    }

    #[test]
    fn points_that_cannot_tell_the_costs_apart_give_no_model() {
        // A tenth is not exact, so rounding alone separates the columns.
        let bytes = CALLS.map(|c| c * 0.1);
        let time = [70.0, 30.0, 11.0, 0.7];
        assert_eq!(fit_cost_model(&CALLS, &bytes, &time), None);
        assert_eq!(fit_cost_model(&CALLS, &[0.0; 4], &[1.0; 4]), None);
        assert_eq!(fit_cost_model(&[1.0], &[1.0], &[1.0]), None);
        assert_eq!(fit_cost_model(&[], &[], &[]), None);
    }

    #[test]
    fn a_time_of_zero_gives_no_model() {
        assert_eq!(fit_cost_model(&CALLS, &BYTES, &[0.0, 1.0, 1.0, 1.0]), None);
    }

    #[test]
    fn no_cost_at_all_has_no_share() {
        let free = CostModel {
            per_call: 0.0,
            per_byte: 1.0,
            relative_residual_rms: 0.0,
            relative_residual_max: 0.0,
        };
        assert!(free.call_share(5.0, 0.0).is_nan());
    }
}
