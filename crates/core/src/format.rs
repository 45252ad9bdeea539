//! Formats numbers for people.
//!
//! Numbers have three significant digits, thousands separators, and the unit that keeps them
//! between 1 and 1000. Throughput is decimal (GB/s, as for devices and in the publications),
//! sizes are binary (KiB, as for buffers). Values that are not finite are shown as `∞` and
//! `–`.

mod conclusions;

pub use conclusions::{
    BEYOND, change, change_parts, derived, interval, interval_parts, inverse, margin, measured,
    measured_parts, price_parts, published, ratio_interval,
};

const SIGNIFICANT_DIGITS: i32 = 3;
const MAX_DECIMALS: usize = 9;

/// Placeholder for a missing value.
pub const NOTHING: &str = "–";

/// Formats a duration given in nanoseconds: `3.21 ms`.
pub fn duration_ns(nanoseconds: f64) -> String {
    scaled(nanoseconds, DURATIONS)
}

/// Formats a size: `64 KiB` if that is exact, otherwise three digits.
pub fn bytes(bytes: f64) -> String {
    let scale = scale_of(bytes, SIZES);
    let number = bytes / scale.factor;
    if bytes.is_finite() && number.fract() == 0.0 {
        return format!("{}{}{}", grouped(number, 0), SPACE, scale.unit);
    }
    scaled(bytes, SIZES)
}

/// Formats a rate given in bytes per second: `10.7 GB/s`.
pub fn throughput(bytes_per_second: f64) -> String {
    scaled(bytes_per_second, RATES)
}

/// Formats a cost given in nanoseconds per byte: `0.213 ns/B`.
pub fn ns_per_byte(value: f64) -> String {
    scaled(value, COSTS)
}

/// Formats a count: `4,114`, `289 M`.
pub fn count(value: f64) -> String {
    if value.is_finite() && value.fract() == 0.0 && value.abs() < EXACT_COUNT_LIMIT {
        return grouped(value, 0);
    }
    scaled(value, COUNTS)
}

/// Counts below this are shown in full, since people compare them digit by digit.
const EXACT_COUNT_LIMIT: f64 = 1e6;

/// Formats a count in full: `12,345,678`.
pub fn exact(count: u64) -> String {
    let digits = count.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Formats a difference of counts in full: `+12,345`, `-7`, `0`.
pub fn signed(difference: i64) -> String {
    let sign = match difference {
        0 => "",
        1.. => "+",
        _ => "-",
    };
    format!("{sign}{}", exact(difference.unsigned_abs()))
}

/// Formats a number of things: `1 call`, `1,000 calls`.
pub fn counted(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", count(number as f64))
}

/// Formats a ratio: `0.496`, `1.03`, `12.2`, `3,870`.
pub fn ratio(value: f64) -> String {
    significant(value)
}

/// Formats a share: `1.2 %`.
pub fn percent(share: f64) -> String {
    let value = share * 100.0;
    if !value.is_finite() {
        return not_finite(value);
    }
    let decimals = if value.abs() >= 10.0 {
        0
    } else if value == 0.0 || value.abs() >= 0.1 {
        1
    } else {
        2
    };
    let text = grouped(value, decimals);
    let text = if decimals > 0 {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        &text
    };
    format!("{text}{SPACE}%")
}

/// Formats a value in the base unit of its metric: `ns`, `bytes`, `bytes/s`, `ns/byte`,
/// `count`, empty for a ratio, or free text that is appended.
pub fn value(value: f64, unit: &str) -> String {
    match unit {
        "ns" => duration_ns(value),
        "bytes" => bytes(value),
        "bytes/s" => throughput(value),
        "ns/byte" => ns_per_byte(value),
        "count" => count(value),
        "" => ratio(value),
        other => format!("{}{SPACE}{other}", significant(value)),
    }
}

/// Removes a counter's name from the reason why it could not be opened, so that counters with the
/// same reason can be listed together.
pub fn unnamed(reason: &str, counter: &str) -> String {
    reason.replace(&format!(" counter {counter}:"), " counter:")
}

/// Formats three significant digits with thousands separators, without a unit.
pub fn significant(value: f64) -> String {
    if !value.is_finite() {
        return not_finite(value);
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    grouped(value, significant_decimals(value))
}

/// Non-breaking space between a number and its unit.
const SPACE: &str = "\u{a0}";

/// A unit, its size in base units, and the smallest value that is shown in it.
struct Scale {
    from: f64,
    factor: f64,
    unit: &'static str,
}

const fn scale(factor: f64, unit: &'static str) -> Scale {
    Scale {
        from: factor,
        factor,
        unit,
    }
}

// Scales in ascending order. The first one also shows all smaller values.
const DURATIONS: &[Scale] = &[
    scale(1.0, "ns"),
    scale(1e3, "µs"),
    scale(1e6, "ms"),
    scale(1e9, "s"),
];
const SIZES: &[Scale] = &[
    scale(1.0, "B"),
    scale(1024.0, "KiB"),
    scale(1_048_576.0, "MiB"),
    scale(1_073_741_824.0, "GiB"),
    scale(1_099_511_627_776.0, "TiB"),
];
const RATES: &[Scale] = &[
    scale(1.0, "B/s"),
    scale(1e3, "kB/s"),
    scale(1e6, "MB/s"),
    scale(1e9, "GB/s"),
    scale(1e12, "TB/s"),
];
const COSTS: &[Scale] = &[
    scale(1e-3, "ps/B"),
    // 0.1 ns per byte is 10 GB/s; such values are still shown in nanoseconds.
    Scale {
        from: 0.1,
        factor: 1.0,
        unit: "ns/B",
    },
    scale(1e3, "µs/B"),
    scale(1e6, "ms/B"),
];
const COUNTS: &[Scale] = &[
    scale(1.0, ""),
    scale(1e6, "M"),
    scale(1e9, "G"),
    scale(1e12, "T"),
];
const UNSCALED: &[Scale] = &[scale(1.0, "")];

/// Returns the unit for a value, chosen after rounding: 999.7 µs is `1.00 ms`.
fn scale_of(value: f64, scales: &'static [Scale]) -> &'static Scale {
    let mut chosen = &scales[0];
    for scale in scales {
        let shown = rounded(value.abs() / chosen.factor) * chosen.factor;
        let shown = shown.max(value.abs());
        if shown.is_finite() && shown >= scale.from {
            chosen = scale;
        }
    }
    chosen
}

fn scaled(value: f64, scales: &'static [Scale]) -> String {
    if !value.is_finite() {
        return not_finite(value);
    }
    let scale = scale_of(value, scales);
    let number = if value == 0.0 {
        "0".to_owned()
    } else {
        significant(value / scale.factor)
    };
    if scale.unit.is_empty() {
        number
    } else {
        format!("{number}{SPACE}{}", scale.unit)
    }
}

fn not_finite(value: f64) -> String {
    if value == f64::INFINITY {
        "∞".to_owned()
    } else if value == f64::NEG_INFINITY {
        "−∞".to_owned()
    } else {
        NOTHING.to_owned()
    }
}

/// Power of ten of the first significant digit.
fn magnitude(value: f64) -> i32 {
    if value == 0.0 {
        return 0;
    }
    #[expect(
        clippy::cast_possible_truncation,
        reason = "exponents of f64 lie within ±324"
    )]
    let exponent = value.abs().log10().floor() as i32;
    exponent
}

fn rounded(value: f64) -> f64 {
    if value == 0.0 {
        return 0.0;
    }
    let step = 10f64.powi(magnitude(value) - SIGNIFICANT_DIGITS + 1);
    (value / step).round() * step
}

fn significant_decimals(value: f64) -> usize {
    // Rounds first: 9.996 has no more decimals than 10.0.
    let wanted = SIGNIFICANT_DIGITS - 1 - magnitude(rounded(value));
    usize::try_from(wanted).unwrap_or(0).min(MAX_DECIMALS)
}

/// Formats fixed decimals with a comma every three digits: `3,870`.
fn grouped(value: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", value.abs());
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let mut grouped = String::new();
    // "-0.00" would show a direction that the digits do not.
    if value < 0.0 && text.bytes().any(|digit| (b'1'..=b'9').contains(&digit)) {
        grouped.push('−');
    }
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    if !fraction.is_empty() {
        grouped.push('.');
        grouped.push_str(fraction);
    }
    grouped
}

#[cfg(test)]
mod tests;
