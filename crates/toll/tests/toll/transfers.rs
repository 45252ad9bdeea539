//! The `transfer` workload in experiment files.

use toll_testing::{Bench, list};

const HEAD: &str = r#"
format = 1
name = "transfers"
metric = "duration_ns"

[workload]
kind = "transfer"
content = "lines"
"#;

/// Returns the treatments of a run of an experiment that ends in `rest`.
fn treatments(bench: &Bench, rest: &str) -> Vec<serde_json::Value> {
    bench.write("transfers.toml", &format!("{HEAD}{rest}"));
    let run = bench.measured("transfers.toml -r 1");
    list(&run["analysis"]["treatments"]).to_vec()
}

#[test]
fn files_with_and_without_bytes_are_sent_over_every_channel_of_two_programs() {
    let bench = Bench::new();
    let rest = r#"
[[factor]]
name = "channel"
levels = ["tcp", "unix", "pipe"]

[[factor]]
name = "size"
levels = [0, 1, 9695]

[run]
iterations = 2
"#;
    for treatment in treatments(&bench, rest) {
        assert_eq!(
            treatment["skipped"],
            serde_json::Value::Null,
            "{treatment:#}"
        );
        let estimates = &treatment["estimates"];
        let size = treatment["levels"]["size"].as_str().unwrap();
        let median = |metric: &str| estimates[metric]["median"]["value"].as_f64();
        assert_eq!(median("bytes_transferred"), size.parse().ok(), "{size}");
        assert!(median("sender_duration_ns") > Some(0.0));
        // A time divided by zero bytes is not a number.
        assert_eq!(median("duration_per_byte_ns").is_some(), size != "0");
    }
}

#[test]
fn what_can_never_be_is_skipped_before_it_is_tried() {
    let bench = Bench::new();
    let rest = r#"
size = "1MiB"

[[factor]]
name = "channel"
levels = ["pipe", "device"]

[[factor]]
name = "sender"
levels = ["read-write", "zerocopy"]
"#;
    let skipped: Vec<(String, String)> = treatments(&bench, rest)
        .iter()
        .filter_map(|treatment| {
            let reason = treatment["skipped"].as_str()?;
            Some((treatment["label"].as_str()?.into(), reason.into()))
        })
        .collect();
    let reasons: Vec<&str> = skipped.iter().map(|(_, reason)| reason.as_str()).collect();
    assert_eq!(skipped.len(), 3, "{skipped:?}");
    for words in ["only TCP supports it", "never loaded on this machine"] {
        assert!(
            reasons.iter().any(|reason| reason.contains(words)),
            "{skipped:?}"
        );
    }
    let output = bench.ok("run transfers.toml --dry-run").stdout;
    assert_eq!(output.matches("(skipped: ").count(), 3, "{output}");
}

#[test]
fn a_file_system_can_be_chosen_for_the_received_file_alone() {
    let bench = Bench::new();
    let rest = r#"
receiver = "mmap"
receiver_buffer = "4KiB"

[[factor]]
name = "fs"
levels = ["work", "tmpfs"]
"#;
    for treatment in treatments(&bench, rest) {
        let bytes = &treatment["estimates"]["bytes_transferred"]["median"]["value"];
        assert_eq!(bytes.as_f64(), Some(1_502_860.0), "{treatment:#}");
    }
    assert_eq!(bench.leftovers(), Vec::<std::path::PathBuf>::new());
}
