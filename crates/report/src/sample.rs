//! Runs for the tests of this crate, made from the one in `sample.json`.

use serde_json::{Value, json};

use crate::claim::Run;
use crate::claim::model::{Better, ErrorRate, Estimate, Metric, Outcome, Relation};
use crate::run::{RunStatus, StoredRun};
use crate::spec::WorkloadKind;

/// Text that attacks every output: HTML, SVG, Markdown, a terminal.
pub const HOSTILE: &str =
    "<script>alert(1)</script>&\"' | `x` $x$ \u{1b}[31mred\u{1b}[0m \u{202e}live\u{9b}2J";

/// Members whose text is not foreign, or by which other members are found.
const OWN: [&str; 18] = [
    "accelerator",
    "better",
    "created_at",
    "direction",
    "error_rate",
    "factor_unit",
    "kind",
    "metric",
    "outcome",
    "primary_metric",
    "published_unit",
    "relation",
    "seed",
    "status",
    "to",
    "uid",
    "unit",
    "virtualization",
];

const EXPERIMENT: &str = "
    format = 1
    name = 'cat'
    metric = 'duration_ns'
    [workload]
    kind = 'copy'
    source = 'zero'
    sink = 'null'
    buffer = '4KiB'
    method = 'page'
    size = '1MiB'";

fn run_of(mut document: Value) -> Run {
    let mut part = |name: &str| document[name].take();
    let (run, analysis) = (part("run"), part("analysis"));
    Run {
        stored: StoredRun {
            run: serde_json::from_value(run).unwrap(),
            experiment: crate::spec::parse(EXPERIMENT, "sample", "quick").unwrap(),
            treatments: Vec::new(),
            trials: Vec::new(),
            boots: Vec::new(),
            profiles: Vec::new(),
        },
        analysis: serde_json::from_value(analysis).unwrap(),
    }
}

fn document() -> Value {
    serde_json::from_str(include_str!("sample.json")).unwrap()
}

/// A large run with every kind of result.
pub fn copying() -> Run {
    let mut run = run_of(document());
    run.analysis.checks = run.analysis.verdicts[6..9].to_vec();
    run
}

/// A small run of the same experiment, on another machine.
pub fn small() -> Run {
    let Run {
        mut stored,
        mut analysis,
    } = copying();
    let run = &mut stored.run;
    (run.id, run.uid, run.imported) = (9, "5e1f3a7700129c09".into(), true);
    run.question = "Which way of reading a file is cheapest?".into();
    run.machine.hostname = "laptop".into();
    run.machine.kernel_release = "6.12.1".into();
    analysis.verdicts.truncate(6);
    analysis.verdicts[2].outcome = Outcome::Supported;
    analysis.verdicts[2].error_rate = Some(ErrorRate::FamilyWise);
    analysis.verdicts[2].measured = Some(Estimate {
        value: 1.002,
        low: 1.002 * 0.996,
        high: 1.002 * 1.004,
        confidence: 0.95,
    });
    analysis.treatments.truncate(8);
    analysis.comparisons.truncate(7);
    analysis.figures.truncate(1);
    Run { stored, analysis }
}

/// A comparison of three commands, one of them skipped.
pub fn commands() -> Run {
    let mut run = small();
    run.stored.run.title = "grep -c x vs awk '/x/' vs rg x".into();
    run.stored.experiment.workload.kind = WorkloadKind::Command;
    let analysis = &mut run.analysis;
    (analysis.verdicts, analysis.figures, analysis.advice) = Default::default();
    analysis.checks.clear();
    (analysis.derived, analysis.staircases, analysis.guests) = Default::default();
    analysis.notes = vec!["peak memory is at least that of the probe".into()];
    let commands = ["grep -c x", "awk '/x/'", "rg x"];
    analysis.treatments.truncate(commands.len());
    for (treatment, command) in analysis.treatments.iter_mut().zip(commands) {
        let times = treatment.estimates.values().next().cloned();
        treatment.label = command.into();
        for (name, value) in [("cpu_ns", 5e6), ("max_rss_bytes", 2.5e6)] {
            let Some(mut estimate) = times.clone() else {
                continue;
            };
            let median = &mut estimate.median;
            (median.value, median.low, median.high) = (value, 0.96 * value, 1.04 * value);
            treatment.estimates.insert(name.into(), estimate);
        }
    }
    let skipped = &mut analysis.treatments[2];
    (skipped.estimates, skipped.trials_completed) = Default::default();
    skipped.skipped = Some("rg is missing".into());
    for (name, unit) in [("cpu_ns", "ns"), ("max_rss_bytes", "bytes")] {
        let metric = Metric {
            unit: unit.into(),
            better: Better::Lower,
        };
        analysis.metrics.insert(name.into(), metric);
    }
    analysis.comparisons.truncate(1);
    let comparison = &mut analysis.comparisons[0];
    (comparison.treatment, comparison.reference) = (1, 0);
    comparison.relation = Relation::Better;
    comparison.exceeds_margin = Some(true);
    let ratio = &mut comparison.ratio;
    (ratio.value, ratio.low, ratio.high) = (0.762, 0.741, 0.785);
    run
}

/// A run in which every text is hostile.
pub fn hostile() -> Run {
    let mut run = small();
    run.analysis.figures = copying().analysis.figures;
    let mut document = json!({ "run": run.stored.run, "analysis": run.analysis });
    make_hostile(&mut document);
    run_of(document)
}

fn make_hostile(value: &mut Value) {
    match value {
        Value::String(text) => *text = HOSTILE.into(),
        Value::Array(all) => all.iter_mut().for_each(make_hostile),
        Value::Object(members) => {
            for (name, member) in members.iter_mut() {
                if !OWN.contains(&name.as_str()) {
                    make_hostile(member);
                }
                let is_map = ["facts", "levels", "mitigations"].contains(&name.as_str());
                if let (true, Some(map)) = (is_map, member.as_object_mut()) {
                    map.insert(HOSTILE.into(), HOSTILE.into());
                }
            }
        }
        _ => {}
    }
}

/// A run killed before its first trial.
pub fn empty() -> Run {
    let mut document = document();
    for member in document["analysis"].as_object_mut().unwrap().values_mut() {
        if let Some(all) = member.as_array_mut() {
            all.clear();
        }
    }
    let mut run = run_of(document);
    let record = &mut run.stored.run;
    record.status = RunStatus::Unfinished;
    (record.updated_at, record.stop_reason) = (None, None);
    run.analysis.blocks = 0;
    run
}
