//! A published table for the tests of what people see.

use super::estimate;
use crate::claim::model::*;

pub fn table() -> PublishedTable {
    let row = |label: &str, published: Option<f64>, measured: Option<f64>| PublishedRow {
        label: label.into(),
        published,
        published_converted: published.map(|milliseconds| milliseconds * 1e6),
        published_text: None,
        published_deviation: published
            .filter(|_| label.starts_with("cat5"))
            .map(|milliseconds| milliseconds * 0.02),
        published_ratio: published.map(|milliseconds| milliseconds / 775.1),
        measured: measured.map(|value| estimate(value, 0.011)),
        measured_mean: measured.map(|value| MeasuredMean {
            mean: value * 1.01,
            standard_deviation: Some(value * 0.03),
            low: value * 0.95,
            high: value * 1.12,
            kept: 22,
            dropped: Some(2),
        }),
        measured_ratio: measured.map(|value| estimate(value / 5.75e6, 0.01)),
        missing: None,
    };
    let mut rows = vec![
        row("cat2: a page per call", Some(775.1), Some(5.75e6)),
        row("cat3: page-aligned buffer", Some(707.2), Some(5.52e6)),
        row("cat5: 512 KiB", Some(350.9), Some(3.02e6)),
        row("cat1: a byte per call", None, Some(1.96e9)),
        row("cat on 9p", Some(54_158.0), None),
    ];
    rows[3].published_text = Some("not finished after 50 minutes".into());
    rows[4].missing = Some("no 9p mount was found".into());
    let misses = [("sequential", 0.038), ("random", 0.110)].map(|(label, rate)| {
        let mut row = row(label, None, None);
        row.published = Some(rate);
        row.missing = Some("cannot open perf counter l1d-read-misses: no such event".into());
        row
    });
    PublishedTable {
        title: "Seven ways to copy a file".into(),
        report: "MeowLab".into(),
        relative_to: Some("cat2: a page per call".into()),
        groups: vec![
            PublishedGroup {
                label: None,
                metric: "duration".into(),
                unit: "ns".into(),
                published_unit: "ms".into(),
                rows,
            },
            PublishedGroup {
                label: Some("L1D read miss rate".into()),
                metric: "counter.l1d-read-misses / counter.l1d-read-accesses".into(),
                unit: String::new(),
                published_unit: String::new(),
                rows: misses.to_vec(),
            },
        ],
        note: Some("The published file was about 40 times larger, so compare the ratios.".into()),
    }
}
