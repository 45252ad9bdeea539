//! Sizes, durations and shares as people write them.
//!
//! Size suffixes follow `dd(1)`, except `b`, which is a byte: `k`, `K`, `KiB` and so on are powers
//! of 1024, `kB`, `MB` and so on powers of 1000.

use std::time::Duration;

const SIZE_SUFFIXES: &[(&str, u64)] = &[
    ("", 1),
    ("b", 1),
    ("k", 1 << 10),
    ("kib", 1 << 10),
    ("kb", 1_000),
    ("m", 1 << 20),
    ("mib", 1 << 20),
    ("mb", 1_000_000),
    ("g", 1 << 30),
    ("gib", 1 << 30),
    ("gb", 1_000_000_000),
    ("t", 1 << 40),
    ("tib", 1 << 40),
    ("tb", 1_000_000_000_000),
];

fn split_suffix(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_'))
        .unwrap_or(text.len());
    (&text[..end], text[end..].trim_start())
}

/// Parses a size such as `4KiB`, `64k`, `1.5MB` or `512` into bytes.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let wrong =
        || format!("cannot read size {text:?}: expected a number and a unit such as 4KiB or 64k");
    let (digits, suffix) = split_suffix(text);
    let suffix = suffix.to_ascii_lowercase();
    let (_, factor) = SIZE_SUFFIXES
        .iter()
        .find(|(name, _)| *name == suffix)
        .ok_or_else(wrong)?;
    let digits = digits.replace('_', "");
    let bytes = match digits.parse::<u64>() {
        Ok(whole) => whole.checked_mul(*factor).ok_or_else(wrong)?,
        Err(_) => {
            let value = digits.parse::<f64>().map_err(|_| wrong())? * *factor as f64;
            if value.fract() != 0.0 {
                return Err(format!(
                    "cannot read size {text:?}: it is not a whole number of bytes"
                ));
            }
            value as u64
        }
    };
    if bytes > 1 << 53 {
        return Err(format!(
            "cannot read size {text:?}: it is over the limit of 8 PiB"
        ));
    }
    Ok(bytes)
}

/// Whether a string is a size with an explicit unit. Thus a list of levels such as `4k,64k` counts
/// as sizes, while `1,2,4` stays a list of plain numbers.
pub fn has_size_unit(text: &str) -> bool {
    let (digits, suffix) = split_suffix(text);
    !digits.is_empty() && !suffix.is_empty() && parse_size(text).is_ok()
}

/// Formats bytes in the largest binary unit that divides them evenly: `64KiB`.
pub fn format_size(bytes: u64) -> String {
    for (unit, shift) in [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)] {
        if bytes >= 1 << shift && bytes.is_multiple_of(1 << shift) {
            return format!("{}{unit}", bytes >> shift);
        }
    }
    bytes.to_string()
}

/// Parses a duration such as `250ms`, `30s`, `5min` or `2h`.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let wrong = || {
        format!(
            "cannot read duration {text:?}: expected a number and a unit such as 250ms, 30s, 5min or 2h"
        )
    };
    let (digits, suffix) = split_suffix(text);
    let seconds_per_unit = match suffix {
        "ms" => 1e-3,
        "" | "s" | "sec" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(wrong()),
    };
    let seconds = digits.parse::<f64>().map_err(|_| wrong())? * seconds_per_unit;
    if seconds > 366.0 * 86400.0 {
        return Err(wrong());
    }
    Ok(Duration::from_secs_f64(seconds))
}

/// Parses a share such as `5%` or `0.05`, above 0 and at most 10 (1000 %).
pub fn parse_share(text: &str) -> Result<f64, String> {
    let trimmed = text.trim();
    let share = match trimmed.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().map(|value| value / 100.0),
        None => trimmed.parse::<f64>(),
    };
    match share {
        Ok(share) if share > 0.0 && share <= 10.0 => Ok(share),
        _ => Err(format!(
            "cannot read share {text:?}: expected a positive number such as 5% or 0.05"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_follow_dd() {
        for (text, bytes) in [
            ("512", 512),
            ("4KiB", 4096),
            ("4k", 4096),
            ("4 K", 4096),
            ("4kB", 4000),
            ("1.5MiB", 3 << 19),
            ("275_000_000", 275_000_000),
            ("2G", 2 << 30),
            ("0", 0),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn wrong_sizes_are_refused() {
        for text in [
            "",
            "k",
            "-4k",
            "4x",
            "1.0000001k",
            "99999999999t",
            "4kk",
            "1e3",
            "nan",
        ] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn formatted_sizes_read_back_as_the_same_bytes() {
        for bytes in [0, 1, 512, 1000, 4096, 3 << 19, 275_000_000, 1 << 40] {
            assert_eq!(parse_size(&format_size(bytes)), Ok(bytes));
        }
    }

    #[test]
    fn a_plain_number_has_no_size_unit() {
        assert!(has_size_unit("4k"));
        assert!(!has_size_unit("4"));
        assert!(!has_size_unit("k"));
        assert!(!has_size_unit("page"));
    }

    #[test]
    fn durations_and_shares_need_sense() {
        assert_eq!(parse_duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(parse_duration("5min"), Ok(Duration::from_secs(300)));
        assert!(parse_duration("5 parsecs").is_err());
        assert!(parse_duration("-1s").is_err());
        assert_eq!(parse_share("5%"), Ok(0.05));
        assert_eq!(parse_share("0.02"), Ok(0.02));
        assert!(parse_share("0").is_err());
        assert!(parse_share("-1%").is_err());
    }
}
