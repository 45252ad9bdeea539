//! A published table for the tests of what people see.

use super::estimate;
use crate::claim::model::*;

pub fn table() -> PublishedTable {
    let has_deviation = |label: &str| label.starts_with("cat5");
    let row = |label: &str,
               published: Option<f64>,
               ratio: Option<f64>,
               measured: Option<f64>,
               measured_ratio: Option<f64>| PublishedRow {
        label: label.into(),
        published,
        published_converted: published.map(|milliseconds| milliseconds * 1e6),
        published_text: None,
        published_deviation: published
            .filter(|_| has_deviation(label))
            .map(|ms| ms * 0.02),
        published_ratio: ratio,
        measured: measured.map(|value| estimate(value, 0.011)),
        measured_mean: measured
            .filter(|_| has_deviation(label))
            .map(|value| FencedMean {
                mean: value * 1.01,
                standard_deviation: Some(value * 0.03),
                kept: 22,
                dropped: 2,
            }),
        measured_ratio: measured_ratio.map(|value| estimate(value, 0.01)),
        missing: None,
    };
    let mut rows = vec![
        row(
            "cat2: a page per call",
            Some(775.1),
            Some(1.0),
            Some(5.75e6),
            Some(1.0),
        ),
        row(
            "cat3: page-aligned buffer",
            Some(707.2),
            Some(0.912),
            Some(5.52e6),
            Some(0.96),
        ),
        row(
            "cat5: 512 KiB",
            Some(350.9),
            Some(0.453),
            Some(3.02e6),
            Some(0.525),
        ),
        row(
            "cat1: a byte per call",
            None,
            None,
            Some(1.96e9),
            Some(340.9),
        ),
        row("cat on 9p", Some(54_158.0), Some(69.9), None, None),
    ];
    rows[3].published_text = Some("not finished after 50 minutes".into());
    rows[4].missing = Some("no 9p mount was found".into());
    PublishedTable {
        title: "Seven ways to copy a file".into(),
        report: "MeowLab".into(),
        metric: "duration".into(),
        published_unit: "ms".into(),
        relative_to: Some("cat2: a page per call".into()),
        rows,
        note: Some("The published file was about 40 times larger, so compare the ratios.".into()),
    }
}
