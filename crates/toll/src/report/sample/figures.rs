//! Curves and distributions.

use super::{estimate, noise};
use crate::claim::model::*;

const SWEEP_PUBLISHED_GB: [f64; 11] = [
    4.9, 10.7, 16.6, 25.1, 21.2, 23.3, 25.7, 26.3, 20.3, 15.0, 14.3,
];

pub fn sweep() -> Figure {
    let series =
        |label: &str, published: bool, count: u32, gigabytes: &dyn Fn(usize) -> f64| CurveSeries {
            label: label.into(),
            published,
            treads: Vec::new(),
            points: (0..count)
                .map(|step| CurvePoint {
                    x: f64::from(1u32 << (12 + step)),
                    y: estimate(
                        gigabytes(step as usize) * 1e9,
                        if published {
                            0.0
                        } else {
                            0.03 + 0.004 * f64::from(step)
                        },
                    ),
                })
                .collect(),
        };
    let model = |peak: f64, step: usize| {
        let size = 2f64.powi(12 + i32::try_from(step).unwrap());
        let fall = if step > 7 {
            0.87f64.powi(i32::try_from(step).unwrap() - 7)
        } else {
            1.0
        };
        fall * size / (size / peak + 560.0)
    };
    Figure::Curve(Curve {
        title: "Throughput by buffer size, /dev/zero to /dev/null".into(),
        factor: "buffer".into(),
        factor_unit: "bytes".into(),
        metric: "throughput".into(),
        unit: "bytes/s".into(),
        log_y: false,
        series: vec![
            series("zero → null", false, 15, &|step| model(31.0, step)),
            series("file → null", false, 15, &|step| model(13.5, step)),
            series("MeowLab", true, 11, &|step| SWEEP_PUBLISHED_GB[step]),
        ],
        marks: vec![
            CurveMark {
                label: "knee, zero".into(),
                series: None,
                at: DerivedValue {
                    value: Some(65_536.0),
                    low: Some(32_768.0),
                    high: Some(131_072.0),
                    confidence: 0.95,
                },
            },
            CurveMark {
                label: "crossing".into(),
                series: None,
                at: DerivedValue {
                    value: None,
                    low: None,
                    high: None,
                    confidence: 0.95,
                },
            },
        ],
    })
}

pub fn sync_curve() -> Figure {
    let series = |label: &str, scale: f64| CurveSeries {
        label: label.into(),
        published: false,
        treads: Vec::new(),
        points: (0..10)
            .map(|step| CurvePoint {
                x: f64::from(256u32 << step),
                y: estimate(scale * 2f64.powi(-step) + 2.1e6, 0.07),
            })
            .collect(),
    };
    Figure::Curve(Curve {
        title: "Time to write 1 MiB, by chunk".into(),
        factor: "chunk".into(),
        factor_unit: "bytes".into(),
        metric: "duration".into(),
        unit: "ns".into(),
        log_y: true,
        series: vec![series("O_SYNC", 4.2e9), series("no O_SYNC", 9.0e6)],
        marks: vec![],
    })
}

pub fn distribution(title: &str, groups: &[(&str, f64)]) -> Figure {
    Figure::Distribution(Distribution {
        title: title.into(),
        metric: "duration".into(),
        unit: "ns".into(),
        groups: groups
            .iter()
            .enumerate()
            .map(|(index, (label, value))| DistributionGroup {
                label: (*label).into(),
                values: noise(index as u64 + 1, 24, 0.05)
                    .into_iter()
                    .map(|factor| factor * value)
                    .collect(),
            })
            .collect(),
    })
}

/// Boxes of which one was published alone and one measured alone.
pub fn boxes() -> Figure {
    let numbers = |median: f64| FiveNumbers {
        low: median * 0.9,
        lower: median * 0.96,
        median,
        upper: median * 1.08,
        high: median * 1.2,
    };
    let group = |label: &str, measured: Option<f64>, published: Option<f64>| BoxGroup {
        label: label.into(),
        measured: measured.map(|median| MeasuredBox {
            numbers: numbers(median),
            outliers: vec![median * 1.35, median * 0.8],
            trials: 24,
        }),
        published: published.map(numbers),
    };
    Figure::Box(BoxPlot {
        title: "Transmission time of 1,502,860 bytes".into(),
        report: "Virtual Device".into(),
        metric: "duration".into(),
        unit: "ns".into(),
        groups: vec![
            group("fcntl → fcntl", Some(4.1e6), Some(6.29e6)),
            group("mmap → fcntl", None, Some(5.99e6)),
            group("mmap → mmap", Some(3.4e6), None),
        ],
    })
}

/// Bars of which one was published alone and one measured alone.
pub fn bars() -> Figure {
    let bar = |label: &str, median: Option<f64>, published: Option<f64>| Bar {
        label: label.into(),
        median: median.map(|median| estimate(median, 0.01)),
        length: median.map(|median| estimate(median / 5.52e6, 0.02)),
        published,
    };
    Figure::Bar(BarChart {
        title: "The report's programs".into(),
        report: "MeowLab".into(),
        metric: "duration".into(),
        unit: "ns".into(),
        relative_to: Some("cat3".into()),
        bars: vec![
            bar("cat2", Some(5.75e6), Some(1.096)),
            bar("cat3", Some(5.52e6), Some(1.0)),
            bar("cat5", None, Some(0.496)),
            bar("cat6 as it was meant", Some(3.02e6), None),
        ],
    })
}

/// Two steps along the buffer, one near a cache.
pub fn staircase() -> Staircase {
    let kibibytes = |value: f64| value * 1024.0;
    let tread = |from: f64, to: f64, value: f64| Tread {
        from: kibibytes(from),
        to: kibibytes(to),
        value: estimate(value, 0.02),
    };
    let step = |id: &str, low: f64, high: f64, before: f64, after: f64| Step {
        id: id.into(),
        text: format!("step {id}"),
        at: DerivedValue {
            value: Some(kibibytes((low * high).sqrt())),
            low: Some(kibibytes(low)),
            high: Some(kibibytes(high)),
            confidence: 0.95,
        },
        before: estimate(before, 0.02),
        after: estimate(after, 0.02),
        rise: after / before,
        nearest_cache: (low < 100.0).then(|| NearestCache {
            name: "L1d".into(),
            bytes: 49_152,
            share: (low * high).sqrt() / 48.0,
        }),
    };
    Staircase {
        at: "huge_pages=none".into(),
        factor: "size".into(),
        factor_unit: "bytes".into(),
        metric: "latency".into(),
        unit: "ns".into(),
        treads: vec![
            tread(4.0, 32.0, 1.7),
            tread(48.0, 1024.0, 6.1),
            tread(1536.0, 4096.0, 38.0),
        ],
        steps: vec![
            step("first", 32.0, 48.0, 1.7, 6.1),
            step("second", 1024.0, 1536.0, 6.1, 38.0),
        ],
    }
}
