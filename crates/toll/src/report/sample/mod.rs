//! Made-up runs for the tests of this module: the shapes and sizes of real
//! ones, hostile text, and nothing at all.

use std::collections::BTreeMap;

use crate::claim::model::*;
use crate::store::{RunRecord, RunStatus};

mod claims;
mod figures;
mod machine;
mod table;

use claims::verdicts;
pub use figures::staircase;
use figures::{bars, boxes, distribution, sweep, sync_curve};
use machine::run;
use table::table;

/// A run and its analysis, owned.
pub struct Sample {
    pub run: RunRecord,
    pub analysis: Analysis,
}

impl Sample {
    pub fn reported(&self) -> super::ReportedRun<'_> {
        super::ReportedRun {
            run: &self.run,
            analysis: &self.analysis,
        }
    }
}

/// Text that attacks every output: HTML, SVG, Markdown, a terminal.
pub const HOSTILE: &str =
    "<script>alert(1)</script>&\"' | `x` $x$ \u{1b}[31mred\u{1b}[0m \u{202e}live\u{9b}2J";

const METHODS: [(&str, f64); 15] = [
    ("byte", 1_960.0e6),
    ("page", 5.75e6),
    ("page-aligned", 5.52e6),
    ("fs-block", 5.53e6),
    ("swept", 3.02e6),
    ("swept-fcntl", 3.04e6),
    ("swept-fadvise", 3.03e6),
    ("mmap", 4.41e6),
    ("mmap-populate", 4.02e6),
    ("sendfile", 1.21e6),
    ("splice", 1.08e6),
    ("copy-file-range", 1.17e6),
    ("io-uring", 3.11e6),
    ("io-uring-fixed", 2.87e6),
    ("direct", 9.62e6),
];

/// Reproducible noise: values scattered log-normally, roughly, around 1.
fn noise(seed: u64, count: usize, spread: f64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut uniform = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    (0..count)
        .map(|_| {
            let sum: f64 = (0..6).map(|_| uniform()).sum::<f64>() - 3.0;
            (sum * spread).exp()
        })
        .collect()
}

pub fn estimate(value: f64, relative: f64) -> Estimate {
    Estimate {
        value,
        low: value * (1.0 - relative),
        high: value * (1.0 + relative),
        confidence: 0.95,
    }
}

fn metrics() -> BTreeMap<String, Metric> {
    let metric = |unit: &str, better| Metric {
        unit: unit.into(),
        better,
    };
    BTreeMap::from([
        ("duration".into(), metric("ns", Better::Lower)),
        ("throughput".into(), metric("bytes/s", Better::Higher)),
        ("minor-faults".into(), metric("count", Better::Lower)),
        ("major_faults".into(), metric("count", Better::Lower)),
    ])
}

fn treatment(index: usize, method: &str, sink: &str, duration_ns: f64) -> TreatmentSummary {
    let trial_values: Vec<f64> = noise(index as u64 + 7, 24, 0.02)
        .into_iter()
        .map(|factor| factor * duration_ns)
        .collect();
    TreatmentSummary {
        index,
        label: format!("method={method} sink={sink}"),
        levels: BTreeMap::from([
            ("method".into(), method.into()),
            ("sink".into(), sink.into()),
        ]),
        twin_of: None,
        skipped: None,
        trials_completed: 24,
        trials_failed: 0,
        trials_excluded: 0,
        first_failure: None,
        estimates: BTreeMap::from([(
            "duration".into(),
            TreatmentEstimate {
                median: estimate(duration_ns, 0.011),
                trial_values,
                outliers: vec![3],
            },
        )]),
        notes: vec![],
    }
}

fn treatments() -> Vec<TreatmentSummary> {
    let mut all: Vec<TreatmentSummary> = METHODS
        .iter()
        .enumerate()
        .map(|(index, (method, duration))| treatment(index, method, "null", *duration))
        .collect();
    all[4].notes = vec!["buffer 524288 bytes (swept)".into()];
    all[12].trials_failed = 2;
    all[12].trials_completed = 22;
    all[12].first_failure = Some("cannot submit: resource temporarily unavailable".into());
    let mut skipped = treatment(15, "foreign-fs", "null", 1.0);
    skipped.skipped =
        Some("no 9p mount was found; mount one and name it with --foreign-dir".into());
    skipped.estimates.clear();
    skipped.trials_completed = 0;
    all.push(skipped);
    let mut twin = treatment(16, "page", "null", 5.75e6);
    twin.label = "method=page sink=null (twin)".into();
    twin.twin_of = Some(1);
    all.push(twin);
    all
}

fn derived() -> Vec<DerivedEstimate> {
    vec![
        DerivedEstimate {
            id: "knee.zero".into(),
            text: "smallest buffer within 5 % of the best throughput".into(),
            unit: "bytes".into(),
            estimate: Some(DerivedValue {
                value: Some(65_536.0),
                low: Some(32_768.0),
                high: Some(131_072.0),
                confidence: 0.95,
            }),
            details: BTreeMap::from([("best_throughput".into(), 27.3e9)]),
            note: None,
        },
        DerivedEstimate {
            id: "crossing.sync".into(),
            text: "buffer size from which O_SYNC costs nothing".into(),
            unit: "bytes".into(),
            estimate: Some(DerivedValue {
                value: None,
                low: Some(131_072.0),
                high: None,
                confidence: 0.95,
            }),
            details: BTreeMap::new(),
            note: Some("acc stays above 0 at every size tried".into()),
        },
        DerivedEstimate {
            id: "cost.call".into(),
            text: "cost of one call, from the two-part model".into(),
            unit: "ns".into(),
            estimate: Some(DerivedValue {
                value: Some(78.2),
                low: Some(76.9),
                high: Some(79.8),
                confidence: 0.95,
            }),
            details: BTreeMap::from([("residual".into(), 0.031)]),
            note: None,
        },
        DerivedEstimate {
            id: "knee.file".into(),
            text: "knee when the source is a file".into(),
            unit: "bytes".into(),
            estimate: None,
            details: BTreeMap::new(),
            note: Some("fewer than three sizes completed".into()),
        },
    ]
}

fn comparisons(treatments: &[TreatmentSummary]) -> Vec<Comparison> {
    treatments
        .iter()
        .filter(|treatment| {
            treatment.index != 1 && treatment.twin_of.is_none() && treatment.skipped.is_none()
        })
        .map(|treatment| {
            let value = treatment.estimates["duration"].median.value / 5.75e6;
            Comparison {
                treatment: treatment.index,
                reference: 1,
                metric: "duration".into(),
                ratio: estimate(value, 0.012),
                relation: if value < 0.95 {
                    Relation::Better
                } else if value > 1.05 {
                    Relation::Worse
                } else {
                    Relation::Same
                },
            }
        })
        .collect()
}

/// A large run with every kind of result.
pub fn copying() -> Sample {
    let run = run(
        7,
        "cat",
        "Copying a file with ever better cat",
        "Which way of reading a file and writing it out is cheapest here, and how much do buffer size, alignment and advice matter?",
    );
    let treatments = treatments();
    let comparisons = comparisons(&treatments);
    let methods: Vec<(&str, f64)> = METHODS.to_vec();
    Sample {
        run,
        analysis: Analysis {
            blocks: 24,
            primary_metric: "duration".into(),
            metrics: metrics(),
            factors: vec![
                Factor {
                    name: "method".into(),
                    levels: METHODS.iter().map(|(name, _)| (*name).into()).collect(),
                    numbers: None,
                },
                Factor {
                    name: "sink".into(),
                    levels: vec!["null".into()],
                    numbers: None,
                },
            ],
            treatments,
            twins: vec![TwinSummary {
                label: "method=page sink=null".into(),
                metric: "duration".into(),
                ratio: Estimate {
                    value: 1.0046,
                    low: 0.992,
                    high: 1.0118,
                    confidence: 0.95,
                },
                band: 0.0046,
                block_ratios: noise(42, 24, 0.016),
            }],
            verdicts: verdicts(),
            derived: derived(),
            staircases: vec![staircase()],
            guests: vec![machine::guest()],
            comparisons,
            tables: vec![table()],
            figures: vec![
                sweep(),
                sync_curve(),
                distribution("Time to copy 16 MiB, by method", &methods),
                distribution("Time to copy 16 MiB, buffered methods", &methods[1..8]),
                boxes(),
                bars(),
            ],
            advice: advice(),
            disturbances: disturbances(),
            warnings: vec![
                "This is a virtual machine: steal time reached 3.1 % in one block.".into(),
                "The frequency governor is not visible, so clock changes cannot be excluded."
                    .into(),
            ],
        },
    }
}

fn advice() -> Vec<Advice> {
    vec![
        Advice {
            topic: "into /dev/null, warm cache".into(),
            text: "Use splice or sendfile; if the data must pass through your program, read with 64 KiB or more.".into(),
            decided: true,
            evidence: vec!["splice takes 0.188 [0.186, 0.190] of a page per call.".into(), "64 KiB is within 5 % of the best size.".into()],
        },
        Advice {
            topic: "mmap or read, cold cache".into(),
            text: "The data do not decide between mmap and a 512 KiB read.".into(),
            decided: false,
            evidence: vec!["mmap over read: 1.01 [0.94, 1.09], 24 blocks.".into()],
        },
    ]
}

fn disturbances() -> Vec<DisturbanceSummary> {
    vec![
        DisturbanceSummary {
            name: "steal_ns".into(),
            text: "time the hypervisor gave to others; lengthens whatever runs".into(),
            trials_recorded: 408,
            trials_affected: 37,
            median: 0.0,
            maximum: 10.0e6,
        },
        DisturbanceSummary {
            name: "involuntary_switches".into(),
            text: "the scheduler took the CPU away".into(),
            trials_recorded: 408,
            trials_affected: 112,
            median: 0.0,
            maximum: 14.0,
        },
    ]
}

/// A small run of another experiment, on another machine.
pub fn small() -> Sample {
    let mut sample = copying();
    sample.run = run(
        9,
        "cat",
        "Copying a file with ever better cat",
        "Which way of reading a file is cheapest?",
    );
    sample.run.machine.hostname = "laptop".into();
    sample.run.machine.kernel_release = "6.12.1".into();
    sample.run.imported = true;
    sample.analysis.verdicts.truncate(6);
    sample.analysis.verdicts[2].outcome = Outcome::Supported;
    sample.analysis.verdicts[2].measured = Some(estimate(1.002, 0.004));
    sample.analysis.treatments.truncate(8);
    sample.analysis.comparisons.truncate(7);
    sample.analysis.figures.truncate(1);
    sample
}

/// A run whose every text is hostile.
pub fn hostile() -> Sample {
    let mut sample = small();
    let text = || HOSTILE.to_owned();
    sample.run.title = text();
    sample.run.question = text();
    sample.run.experiment = text();
    sample.run.command_line = text();
    sample.run.machine.hostname = text();
    sample.run.machine.cpu_model = text();
    sample.run.machine.mitigations.insert(text(), text());
    sample.run.machine.work_file_system.options = text();
    sample.analysis.guests = vec![machine::hostile_guest(HOSTILE)];
    sample.analysis.warnings = vec![text()];
    sample.analysis.advice = vec![Advice {
        topic: text(),
        text: text(),
        decided: true,
        evidence: vec![text()],
    }];
    for verdict in &mut sample.analysis.verdicts {
        (verdict.id, verdict.text, verdict.reason) = (text(), text(), text());
        (verdict.contrast, verdict.report) = (text(), Some(text()));
        if let Some(Accompaniment { differing, same }) = &mut verdict.accompaniment {
            same.push(text());
            differing.iter_mut().for_each(|sides| sides.metric = text());
        }
    }
    for treatment in &mut sample.analysis.treatments {
        treatment.label = text();
        treatment.notes = vec![text()];
        treatment.first_failure = Some(text());
    }
    sample.analysis.treatments[2].skipped = Some(text());
    sample.analysis.twins[0].label = text();
    sample.analysis.tables[0].title = text();
    sample.analysis.tables[0].groups[0].rows[0].label = text();
    sample.analysis.tables[0].groups[1].label = Some(text());
    sample.analysis.disturbances[0].text = text();
    sample
        .analysis
        .figures
        .push(distribution(HOSTILE, &[(HOSTILE, 1e6), ("b", 2e6)]));
    if let Figure::Curve(curve) = &mut sample.analysis.figures[0] {
        (curve.title, curve.factor, curve.metric) = (text(), text(), text());
        curve.series[0].label = text();
        curve.marks[0].label = text();
    }
    sample
}

/// A run killed before its first trial.
pub fn empty() -> Sample {
    let mut run = run(
        3,
        "primes",
        "The same work in user space and kernel",
        "What does a crossing cost?",
    );
    run.status = RunStatus::Unfinished;
    run.updated_at = None;
    run.stop_reason = None;
    Sample {
        run,
        analysis: Analysis {
            blocks: 0,
            primary_metric: "duration".into(),
            metrics: metrics(),
            factors: vec![],
            treatments: vec![],
            twins: vec![],
            verdicts: vec![],
            derived: vec![],
            staircases: vec![],
            guests: vec![],
            comparisons: vec![],
            tables: vec![],
            figures: vec![],
            advice: vec![],
            disturbances: vec![],
            warnings: vec![],
        },
    }
}
