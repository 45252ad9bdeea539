use super::*;
use crate::kept::Kept;

/// A run of one treatment of each way, whose duration in block `b` is
/// `base * (b + 1)`.
fn exported(bases: &[(&str, &str, &str, f64)]) -> String {
    let mut treatments = Vec::new();
    let mut trials = Vec::new();
    for (index, (channel, sender, buffer, base)) in bases.iter().enumerate() {
        treatments.push(format!(
            r#"{{"index":{index},"twin_of":null,"label":"","levels":{{"accelerator":{{"text":"auto"}},"channel":{{"text":"{channel}"}},
            "sender":{{"text":"{sender}"}},"receiver":{{"text":"read-write"}},"buffer":{{"text":"{buffer}"}},"size":{{"text":"275000000"}}}}}}"#
        ));
        for block in 0..10 {
            let value = base * f64::from(block + 1);
            trials.push(format!(
                r#"{{"block":{block},"treatment":{index},"message":null,"samples":{{"duration_ns":[{value}]}}}}"#
            ));
        }
    }
    trials.push(r#"{"block":9,"treatment":0,"message":"it failed","samples":{}}"#.to_owned());
    format!(
        r#"{{"format":"toll-run","run":{{"created_at":"2026-01-01T00:00:00Z","toll_version":"0.1.0","seed":"7"}},
        "treatments":[{}],"trials":[{}],
        "boots":[{{"accelerator":"icount"}},{{"accelerator":"tcg","facts":{{"kernel release":"6.12-toll"}}}}]}}"#,
        treatments.join(","),
        trials.join(",")
    )
}

fn document(bases: &[(&str, &str, &str, f64)]) -> Document {
    let machine = Machine::inspect(std::path::Path::new("/"));
    Document::of_run(&exported(bases), machine).expect("it is a run")
}

#[test]
fn a_ratio_is_that_of_throughputs_block_by_block() {
    let document = document(&[
        ("device", "mmap", "64KiB", 1e6),
        ("tcp", "sendfile", "64KiB", 1.25e6),
        ("device", "read-write", "64KiB", 2e6),
        ("tcp", "read-write", "64KiB", 1.9e6),
    ]);
    let table = render(&document);
    let row = |start: &str| table.lines().find(|line| line.starts_with(start)).unwrap();
    assert!(row("| mmap → mmap, 64 KiB").ends_with("| 1.250 [1.250, 1.250] | reached |"));
    assert!(row("| fcntl → fcntl").ends_with("| 0.950 [0.950, 0.950] | missed |"));
    assert!(row("| mmap → mmap, 1 MiB").ends_with("| not measured | |"));
    assert!(table.contains("guests: Linux 6.12-toll, tcg"));
    assert!(table.contains("those of the emulation"));
    // The block whose trial failed has no value, and is told.
    assert_eq!(document.ways[0].values[9], None);
    assert!(table.contains("- block 10: it failed"));
}

#[test]
fn a_document_written_and_read_gives_the_same_table() {
    let made = document(&[("device", "mmap", "64KiB", 1e6)]);
    let read = Document::parse(&made.to_json()).expect("it was written by this version");
    assert_eq!(render(&read), render(&made));
    let newer = made.to_json().replace("\"version\":1,", "\"version\":2,");
    assert!(Document::parse(&newer).unwrap_err().contains("version 2"));
}

#[test]
fn few_blocks_decide_nothing() {
    let ratio = Interval {
        estimate: 2.0,
        low: 2.0,
        high: 2.0,
        confidence: 0.9,
    };
    assert_eq!(verdict(&ratio), "too few blocks");
}

#[test]
fn the_experiment_asks_for_every_way_that_the_table_compares() {
    let experiment = include_str!("../../device.toml");
    for goal in &GOALS {
        for (name, text) in goal.of.iter().chain(goal.to) {
            let has = |text: &str| experiment.contains(text);
            assert!(has(&format!("name = \"{name}\"")), "{name}");
            assert!(has(&format!("\"{text}\"")), "{text}");
        }
    }
}
