use std::path::Path;

use super::*;
use crate::kept::Kept;
use crate::machine::Machine;
use crate::own::VERSION;

fn document(harness: f64) -> Document {
    let blocks = |value: f64| {
        (0..7)
            .map(|k| value * (1.0 + 0.001 * f64::from(k)))
            .collect()
    };
    let answer = |question, samples: u64, power: f64| Answer {
        question,
        samples,
        wall_ns: (samples as f64).powf(power) as u64,
        max_rss_bytes: 100_000_000,
    };
    let mut answers = Vec::new();
    for samples in SAMPLES {
        answers.push(answer(Question::Report, samples, 1.0));
        answers.push(answer(Question::Compare, samples, 1.5));
    }
    Document {
        version: VERSION,
        date: "2026-01-02 03:04:05 UTC".into(),
        command_line: "bench-toll".into(),
        machine: Machine {
            load_before: 0.0,
            ..Machine::inspect(Path::new("/"))
        },
        versions: vec!["toll 0.1.0".into()],
        missing: vec!["perf is not installed".into()],
        work_ms: 100.0,
        runs_listed: 50,
        series: [
            (Series::SpawnNs, blocks(500_000.0)),
            (Series::HarnessNs, blocks(harness)),
            (Series::UnmeasuredShare, blocks(0.07)),
            (Series::ListNs, blocks(9e6)),
        ]
        .into(),
        answers,
    }
}

fn line(text: &str, start: &str) -> String {
    let mut lines = text.lines();
    lines
        .find(|line| line.starts_with(start))
        .unwrap_or_else(|| panic!("no line starts with {start}:\n{text}"))
        .to_owned()
}

#[test]
fn a_goal_is_reached_by_the_whole_interval() {
    let harness = "| harness of a trial over starting `true`";
    assert!(line(&render(&document(900_000.0)), harness).ends_with("| yes |"));
    let over = line(&render(&document(1_200_000.0)), harness);
    assert!(over.contains("| 2.40 [2.40, 2.40] times |"), "{over}");
    assert!(over.ends_with("| no |"), "{over}");
    let text = render(&document(900_000.0));
    assert!(line(&text, "| wall time that is not measured").ends_with("| no |"));
    assert!(line(&text, "| `toll list`, 50 runs").ends_with("| at most 20.0 ms | yes |"));
}

#[test]
fn growth_is_the_slope_in_logarithms() {
    let text = render(&document(900_000.0));
    let report = "| `toll report`, 1,000,000 samples a run: growth";
    assert!(line(&text, report).contains("samples^1.00"), "{text}");
    assert!(line(&text, report).ends_with("| yes |"));
    let compare = "| `toll compare`, 1,000,000 samples a run: growth";
    assert!(line(&text, compare).contains("samples^1.50"));
    assert!(line(&text, compare).ends_with("| no |"));
}

#[test]
fn what_was_not_measured_has_no_row_but_a_reason() {
    let text = render(&document(900_000.0));
    assert!(text.contains("- Not measured: perf is not installed"));
    assert!(!text.contains("perf bench"), "{text}");
    assert!(!text.contains("`toll show`"), "{text}");
}

#[test]
fn a_kept_document_gives_the_same_table() {
    let document = document(900_000.0);
    let text = serde_json::to_string(&document).expect("it is plain data");
    let read = Document::parse(&text).expect("it is of this version");
    assert_eq!(render(&read), render(&document));
    assert!(Document::parse(&text.replacen("\"version\":1", "\"version\":2", 1)).is_err());
}
