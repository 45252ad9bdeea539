//! Formats what was concluded: estimates with their intervals, and verdicts.

use super::{
    COSTS, COUNTS, DURATIONS, EXACT_COUNT_LIMIT, MAX_DECIMALS, NOTHING, RATES, SPACE, UNSCALED,
    bytes, duration_ns, grouped, not_finite, percent, scale_of, significant, significant_decimals,
    value,
};
use crate::claim::model::{
    Better, ClaimDirection, DerivedValue, Estimate, Metric, Outcome, Verdict,
};

/// Placeholder for an interval's end, or a value, past the largest level.
pub const BEYOND: &str = "beyond range";

/// Formats a ratio with its interval: `0.496 [0.48, 0.51]`.
pub fn ratio_interval(estimate: &Estimate) -> String {
    interval(estimate, "")
}

/// Formats a ratio as people say it: `1.3× slower [1.2, 1.4]`, `2.1× less [2.0, 2.2]` and,
/// for less than a tenth, `2.2 % slower [0.8, 3.7]`.
pub fn change(ratio: &Estimate, metric: &Metric) -> String {
    let (change, interval) = change_parts(ratio, metric);
    format!("{change} {interval}")
}

/// Formats a ratio as [`change`] does, in two texts: the ratio in words, and the interval in
/// brackets.
pub fn change_parts(ratio: &Estimate, metric: &Metric) -> (String, String) {
    let is_less = ratio.value < 1.0;
    let times = if is_less { inverse(ratio) } else { *ratio };
    let is_rate = metric.unit.ends_with("/s");
    let is_time = ["ns", "s"].contains(&metric.unit.as_str()) || metric.unit.starts_with("ns/");
    let word = match (is_less, metric.better) {
        (_, Better::Lower | Better::Higher) if is_time || is_rate => {
            if is_less == (metric.better == Better::Lower) {
                "faster"
            } else {
                "slower"
            }
        }
        (true, _) => "less",
        (false, _) => "as much",
    };
    if times.value < 1.1 {
        let percent = |ratio: f64| (ratio - 1.0) * 100.0;
        let change = Estimate {
            value: percent(times.value),
            low: percent(times.low),
            high: percent(times.high),
            ..times
        };
        let (value, ends) = interval_parts(&change, "%");
        let word = word.replace("as much", "more");
        return (format!("{value} {word}"), ends);
    }
    let (value, ends) = interval_parts(&times, "");
    (format!("{value}× {word}"), ends)
}

/// Returns the ratio with both sides exchanged.
pub fn inverse(ratio: &Estimate) -> Estimate {
    Estimate {
        value: 1.0 / ratio.value,
        low: 1.0 / ratio.high,
        high: 1.0 / ratio.low,
        confidence: ratio.confidence,
    }
}

/// Formats a value with its interval in one unit: `3.21 ms [3.18, 3.25]`.
pub fn interval(estimate: &Estimate, unit: &str) -> String {
    let (value, ends) = interval_parts(estimate, unit);
    format!("{value} {ends}")
}

/// Formats a value and its interval. The width of the interval decides the digits. More digits
/// would claim a precision that the interval denies. Fewer digits would hide on which side of a
/// margin the interval lies.
pub fn interval_parts(estimate: &Estimate, unit: &str) -> (String, String) {
    let ends = |low: String, high: String| format!("[{low}, {high}]");
    let scales = match unit {
        // Levels of a size factor are powers of two apart, so each end reads best in its own
        // unit.
        "bytes" => {
            let ends = ends(bytes(estimate.low), bytes(estimate.high));
            return (bytes(estimate.value), ends);
        }
        "ns" => DURATIONS,
        "bytes/s" => RATES,
        "ns/byte" => COSTS,
        "count" if estimate.value.abs() >= EXACT_COUNT_LIMIT => COUNTS,
        _ => UNSCALED,
    };
    // Zero has no unit of its own.
    let largest = if estimate.value == 0.0 {
        estimate.high
    } else {
        estimate.value
    };
    let scale = scale_of(largest, scales);
    let [value, low, high] =
        [estimate.value, estimate.low, estimate.high].map(|end| end / scale.factor);
    let Some(decimals) = decimals_of_width(low, high) else {
        let ends = ends(significant(low), significant(high));
        return (super::value(estimate.value, unit), ends);
    };
    let value_decimals = match unit {
        "" => significant_decimals(value).clamp(decimals, decimals + 1),
        _ => decimals,
    };
    let unit = match unit {
        "count" | "ns" | "bytes/s" | "ns/byte" => scale.unit,
        other => other,
    };
    let space = if unit.is_empty() { "" } else { SPACE };
    let value = grouped_or_sign(value, value_decimals);
    let ends = ends(
        grouped_or_sign(low, decimals),
        grouped_or_sign(high, decimals),
    );
    (format!("{value}{space}{unit}"), ends)
}

/// Formats a derived value, parts of which may lie beyond the largest level.
pub fn derived(derived: &DerivedValue, unit: &str) -> String {
    let (value, ends) = derived_parts(derived, unit);
    format!("{value} {ends}").trim_end().to_owned()
}

/// Formats a value and its interval. The interval is empty if all of it lies beyond the largest
/// level.
fn derived_parts(derived: &DerivedValue, unit: &str) -> (String, String) {
    if let (Some(value), Some(low), Some(high)) = (derived.value, derived.low, derived.high) {
        let confidence = derived.confidence;
        let estimate = Estimate {
            value,
            low,
            high,
            confidence,
        };
        return interval_parts(&estimate, unit);
    }
    if let (None, None, None) = (derived.value, derived.low, derived.high) {
        return (BEYOND.to_owned(), String::new());
    }
    let part = |part: Option<f64>| part.map_or_else(|| BEYOND.to_owned(), |v| value(v, unit));
    let ends = format!("[{}, {}]", part(derived.low), part(derived.high));
    (part(derived.value), ends)
}

/// Formats a price: the value and, separately, the ends of its interval in the same unit, each with
/// three digits. No verdict depends on more digits.
pub fn price_parts(price: &DerivedValue, unit: &str) -> (String, String) {
    let (Some(value), Some(low), Some(high), "ns") = (price.value, price.low, price.high, unit)
    else {
        return derived_parts(price, unit);
    };
    let factor = scale_of(value, DURATIONS).factor;
    let ends = [low, high].map(|end| significant(end / factor));
    (duration_ns(value), format!("[{}]", ends.join(", ")))
}

/// Formats the measured value of a claim's quantity, or [`NOTHING`].
pub fn measured(verdict: &Verdict) -> String {
    let (value, interval) = measured_parts(verdict);
    format!("{value} {interval}").trim_end().to_owned()
}

/// Formats the measured value of a claim's quantity and, separately, its interval in
/// brackets, which is empty if nothing was measured.
pub fn measured_parts(verdict: &Verdict) -> (String, String) {
    match (&verdict.measured, &verdict.beyond) {
        (Some(estimate), _) => interval_parts(estimate, &verdict.unit),
        (None, Some(beyond)) => derived_parts(beyond, &verdict.unit),
        (None, None) => (NOTHING.to_owned(), String::new()),
    }
}

/// Formats the margin around a claim's threshold, or [`NOTHING`].
pub fn margin(verdict: &Verdict) -> String {
    match (verdict.outcome, verdict.direction) {
        (Outcome::NotTestable, _) | (_, ClaimDirection::Within) => NOTHING.to_owned(),
        _ if verdict.margin == 0.0 => NOTHING.to_owned(),
        _ => percent(verdict.margin),
    }
}

/// Formats the published value of a claim's quantity, or [`NOTHING`].
pub fn published(verdict: &Verdict) -> String {
    verdict.published.map_or_else(
        || NOTHING.to_owned(),
        |published| value(published, &verdict.unit),
    )
}

/// Returns the decimals at which an interval's ends differ in about their second-to-last
/// digit; `None` if the width is not positive and finite.
fn decimals_of_width(low: f64, high: f64) -> Option<usize> {
    let width = high - low;
    if !width.is_finite() || width <= 0.0 {
        return None;
    }
    // The tiny subtraction keeps a width of exactly 0.03 from rounding up.
    let wanted = (-(width / 6.0).log10() - 1e-9).ceil();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to a few digits"
    )]
    let decimals = wanted.clamp(0.0, MAX_DECIMALS as f64 - 1.0) as usize;
    Some(decimals)
}

fn grouped_or_sign(value: f64, decimals: usize) -> String {
    if value.is_finite() {
        grouped(value, decimals)
    } else {
        not_finite(value)
    }
}
