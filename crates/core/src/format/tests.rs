//! Examples of every format.

use super::*;
use crate::claim::model::{Better, DerivedValue, Estimate, Metric};

fn plain(text: &str) -> String {
    text.replace('\u{a0}', " ")
}

fn estimate(value: f64, low: f64, high: f64) -> Estimate {
    Estimate {
        value,
        low,
        high,
        confidence: 0.95,
    }
}

#[test]
fn durations_have_three_digits_and_the_fitting_unit() {
    for (nanoseconds, text) in [
        (0.0, "0 ns"),
        (0.4567, "0.457 ns"),
        (12.34, "12.3 ns"),
        (999.7, "1.00 µs"),
        (3_214_000.0, "3.21 ms"),
        (999_499.0, "999 µs"),
        (54.158e9, "54.2 s"),
        (3_000e9, "3,000 s"),
        (-2_500.0, "−2.50 µs"),
        (f64::INFINITY, "∞"),
        (f64::NAN, "–"),
    ] {
        assert_eq!(plain(&duration_ns(nanoseconds)), text, "{nanoseconds}");
    }
}

#[test]
fn sizes_are_exact_in_binary_units_where_they_can_be() {
    for (size, text) in [
        (0.0, "0 B"),
        (513.0, "513 B"),
        (65_536.0, "64 KiB"),
        (1_048_576.0, "1 MiB"),
        (34_123.0, "33.3 KiB"),
        (1_502_860.0, "1.43 MiB"),
        (1023.0 * 1024.0, "1,023 KiB"),
        (f64::NEG_INFINITY, "−∞"),
    ] {
        assert_eq!(plain(&bytes(size)), text, "{size}");
    }
}

#[test]
fn values_follow_their_unit() {
    for (number, unit, text) in [
        (10.7e9, "bytes/s", "10.7 GB/s"),
        (0.213, "ns/byte", "0.213 ns/B"),
        (0.0941, "ns/byte", "94.1 ps/B"),
        (12.5, "ns/byte", "12.5 ns/B"),
        (4_114.0, "count", "4,114"),
        (19.8, "count", "19.8"),
        (289_466_867.0, "count", "289 M"),
        (7_521_439_272.0, "count", "7.52 G"),
        (0.496, "", "0.496"),
        (1.0349, "", "1.03"),
        (12.24, "", "12.2"),
        (3_870.4, "", "3,870"),
        (42.0, "pages", "42.0 pages"),
    ] {
        assert_eq!(plain(&value(number, unit)), text, "{number} {unit}");
    }
}

#[test]
fn the_width_of_an_interval_decides_its_digits() {
    for ((value, low, high), text) in [
        ((0.4963, 0.4801, 0.5101), "0.496 [0.480, 0.510]"),
        ((1.0003, 0.9942, 1.0061), "1.000 [0.994, 1.006]"),
        ((12.21, 11.02, 13.8), "12.2 [11.0, 13.8]"),
        ((3_870.0, 3_712.3, 4_020.9), "3,870 [3,712, 4,021]"),
        ((1.0, 1.0, 1.0), "1.00 [1.00, 1.00]"),
        ((2.0, 1.0, f64::INFINITY), "2.00 [1.00, ∞]"),
        ((f64::NAN, f64::NAN, f64::NAN), "– [–, –]"),
    ] {
        assert_eq!(ratio_interval(&estimate(value, low, high)), text);
    }
    let median = estimate(3_214_000.0, 3_181_000.0, 3_249_000.0);
    assert_eq!(plain(&interval(&median, "ns")), "3.21 ms [3.18, 3.25]");
    let knee = estimate(32_768.0, 16_384.0, 65_536.0);
    assert_eq!(plain(&interval(&knee, "bytes")), "32 KiB [16 KiB, 64 KiB]");
    let faults = estimate(4_113.6, 4_110.0, 4_118.0);
    assert_eq!(plain(&interval(&faults, "count")), "4,114 [4,110, 4,118]");
    let share = estimate(0.5, 0.25, 0.75);
    assert_eq!(plain(&interval(&share, "tasks")), "0.50 tasks [0.25, 0.75]");
}

#[test]
fn shares_are_short() {
    for (share, text) in [
        (0.01, "1 %"),
        (0.0123, "1.2 %"),
        (0.126, "13 %"),
        (0.00042, "0.04 %"),
        (0.0, "0 %"),
        (f64::NAN, "–"),
    ] {
        assert_eq!(plain(&percent(share)), text, "{share}");
    }
}

#[test]
fn what_lies_beyond_the_levels_is_said_in_words() {
    let knee = DerivedValue {
        value: Some(65_536.0),
        low: Some(32_768.0),
        high: None,
        confidence: 0.95,
    };
    assert_eq!(
        plain(&derived(&knee, "bytes")),
        "64 KiB [32 KiB, beyond range]"
    );
}

#[test]
fn ratios_read_as_people_say_them() {
    let metric = |unit: &str, better| Metric {
        unit: unit.to_owned(),
        better,
    };
    let time = metric("ns", Better::Lower);
    let rate = metric("bytes/s", Better::Higher);
    let memory = metric("bytes", Better::Lower);
    for (ratio, metric, text) in [
        (estimate(1.3, 1.2, 1.4), &time, "1.30× slower [1.20, 1.40]"),
        (estimate(0.5, 0.4, 0.625), &time, "2.00× faster [1.6, 2.5]"),
        (estimate(1.3, 1.2, 1.4), &rate, "1.30× faster [1.20, 1.40]"),
        (estimate(0.5, 0.4, 0.625), &rate, "2.00× slower [1.6, 2.5]"),
        (
            estimate(1.3, 1.2, 1.4),
            &memory,
            "1.30× as much [1.20, 1.40]",
        ),
        (estimate(0.5, 0.4, 0.625), &memory, "2.00× less [1.6, 2.5]"),
        (
            estimate(1.022, 1.008, 1.037),
            &time,
            "2.2 % slower [0.8, 3.7]",
        ),
        (estimate(0.95, 0.9, 0.999), &time, "5 % faster [0, 11]"),
        (estimate(1.05, 1.04, 1.06), &memory, "5.0 % more [4.0, 6.0]"),
        (
            estimate(0.952, 0.943, 0.962),
            &memory,
            "5.0 % less [4.0, 6.0]",
        ),
    ] {
        assert_eq!(plain(&change(&ratio, metric)), text);
    }
}

#[test]
fn an_interval_of_zero_has_the_unit_of_its_end() {
    assert_eq!(
        plain(&interval(&estimate(0.0, 0.0, 1.2e6), "ns")),
        "0.0 ms [0.0, 1.2]"
    );
}
