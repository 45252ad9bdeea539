//! Runs for the tests of this crate, made from the one in `sample.json`.

use serde_json::{Value, json};

use crate::claim::Run;
use crate::claim::model::{
    Better, ClaimOverRuns, DerivedValue, EValues, ErrorRate, Estimate, ExcludedRuns, Explanation,
    Metric, Outcome, OverRuns, Overall, Price, Relation, Verdict,
};
use crate::run::{RunStatus, StoredRun};
use crate::spec::WorkloadKind;

/// Text that attacks every output: HTML, SVG, Markdown, a terminal.
pub const HOSTILE: &str =
    "<script>alert(1)</script>&\"' | `x` $x$ \u{1b}[31mred\u{1b}[0m \u{202e}live\u{9b}2J";

/// Members whose text is not foreign, or by which other members are found.
const OWN: [&str; 11] = [
    "better",
    "direction",
    "error_rate",
    "kind",
    "metric",
    "outcome",
    "primary_metric",
    "relation",
    "seed",
    "status",
    "to",
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

/// A run with prices.
pub fn prices() -> Run {
    let mut run = copying();
    let price = |group: Option<&str>, name: &str, value: f64| Price {
        name: name.into(),
        group: group.map(str::to_owned),
        unit: "ns".into(),
        value: Some(DerivedValue {
            value: Some(value),
            low: Some(0.98 * value),
            high: Some(1.03 * value),
            confidence: 0.95,
        }),
        treatment: None,
        per: "call".into(),
        note: None,
    };
    let (entry, making) = (Some("kernel entry"), Some("making processes"));
    run.analysis.prices = vec![
        price(entry, "empty system call", 67.2),
        price(entry, "clock read by the vDSO", 25.0),
        price(entry, "signal to oneself, handled", 1234.0),
        price(making, "posix_spawn, dynamic program", 456_789.0),
        price(None, "copy of a page", 88.0),
        Price {
            value: None,
            note: Some("no such file system".into()),
            ..price(None, "copy of a file", 0.0)
        },
    ];
    run
}

/// A run with many comparisons, of which only the differences are listed.
pub fn list_of_differences() -> Run {
    let mut run = small();
    run.analysis.verdicts.clear();
    for one in &mut run.analysis.comparisons {
        let treatment = &run.analysis.treatments[one.treatment];
        one.common.clone_from(&treatment.label);
    }
    run.analysis.overall = vec![Overall {
        new: "mine".into(),
        base: "toll".into(),
        metric: "path_length_instructions".into(),
        ratio: estimate(1.02),
        compared: 7,
        better: 1,
        worse: 2,
        different: 0,
        same: 3,
    }];
    run
}

/// Why one treatment takes longer than another.
pub fn explanation() -> Explanation {
    let row = |name: &str, kind: &str, ns: f64| {
        json!({
            "name": name, "kind": kind, "slower_ns": 3.0 * ns, "faster_ns": 2.0 * ns,
            "difference_ns": estimate(ns), "share": estimate(ns / 1000.0),
        })
    };
    serde_json::from_value(json!({
        "slower": 1, "slower_label": "method=byte", "faster": 0, "faster_label": "method=page",
        "ratio": 2.5, "blocks": 9, "blocks_needed": 9,
        "difference_ns": estimate(1000.0),
        "rows": [row("vfs_read (read)", "function", 600.0), row("rest of the kernel", "rest", 250.0)],
        "not_attributed_ns": estimate(150.0), "not_attributed_share": estimate(0.15),
        "entries": [row("read", "entry", 800.0)],
        "counts": [{
            "metric": "minor_faults", "slower": 64.0, "faster": 2.0, "difference": estimate(62.0),
        }],
        "overheads": [{ "treatment": 0, "ratio": 1.2 }, { "treatment": 1, "ratio": 1.4 }],
        "waits_for_cpu_ns": 12.0,
        "notes": ["a profile lost 3 samples"],
    }))
    .unwrap()
}

/// The claims of a run over several runs.
pub fn over_runs(run: &Run) -> OverRuns {
    let claim = |(index, verdict): (usize, &Verdict)| {
        let found = EValues {
            blocks: 48,
            inside: 40,
            outside: 8,
            log10_support: index as f64,
            log10_refutation: 0.5,
        };
        ClaimOverRuns {
            id: verdict.id.clone(),
            runs: 2,
            e_values: (index > 0).then_some(found),
            needed: (index > 0).then_some(20.0),
            outcome: match index {
                0 => Outcome::NotTestable,
                1 => Outcome::Undecided,
                _ => Outcome::Supported,
            },
            error_rate: None,
        }
    };
    OverRuns {
        run: run.stored.run.id,
        runs: vec![3, 7],
        excluded: vec![ExcludedRuns {
            reason: "the kernel release differs".into(),
            runs: vec![1, 2],
        }],
        claims: run
            .analysis
            .verdicts
            .iter()
            .enumerate()
            .map(claim)
            .collect(),
    }
}

fn estimate(value: f64) -> Estimate {
    Estimate {
        value,
        low: 0.9 * value,
        high: 1.1 * value,
        confidence: 0.95,
    }
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
