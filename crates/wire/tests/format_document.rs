//! The tables of docs/FORMAT.md say what the parameters of each workload are.

use std::collections::BTreeMap;

use toll_wire::{Better, METRICS, Precision, WorkloadKind};

const DOCUMENT: &str = include_str!("../../../docs/FORMAT.md");

/// The rows of a workload's table of parameters: name, and the rest of the row.
fn rows(kind: &str) -> BTreeMap<&'static str, &'static str> {
    let (_, section) = DOCUMENT
        .split_once(&format!("### `kind = \"{kind}\"`"))
        .expect("each workload has a section");
    let (_, table) = section
        .split_once("| parameter | words | default |\n")
        .unwrap();
    let rows = table
        .lines()
        .skip(1)
        .take_while(|line| line.starts_with('|'));
    let names_and_rest = rows.map(|row| row[1..].split_once('|').unwrap());
    names_and_rest
        .flat_map(|(names, rest)| names.split(',').map(move |name| (name.trim(), rest)))
        .map(|(name, rest)| (name.trim_matches('`'), rest))
        .collect()
}

/// Returns the error for a level that a parameter does not take.
fn refusal(kind: WorkloadKind, name: &str, text: &str) -> String {
    kind.check(name, text).unwrap_err()
}

#[test]
fn the_tables_of_parameters_agree_with_the_program() {
    for word in toll_wire::words::<WorkloadKind>() {
        let kind: WorkloadKind = toll_wire::from_word(word).unwrap();
        let Some(names) = kind.parameters() else {
            continue;
        };
        let rows = rows(word);
        let mut sorted = names.clone();
        sorted.sort_unstable();
        assert_eq!(rows.keys().copied().collect::<Vec<_>>(), sorted, "{word}");
        // Rows whose words are listed in another table or section are not checked.
        for (name, row) in rows.iter().filter(|(_, row)| !row.contains("below")) {
            let is_elsewhere = row.contains("](#") || row.contains("as for `memory`");
            let refused = refusal(kind, name, "\u{1}");
            if let Some((_, words)) = refused.split_once("it must be one of ")
                && !is_elsewhere
            {
                for word in words.split(", ") {
                    assert!(
                        row.contains(&format!("`{word}`")),
                        "{name}: {word} in {row}"
                    );
                }
            }
        }
    }
}

/// The document's table of metrics, by workloads in the order of the catalogue.
fn table_of_metrics() -> String {
    let mut groups: Vec<&[WorkloadKind]> = Vec::new();
    for metric in METRICS {
        if !metric.workloads.is_empty() && !groups.contains(&metric.workloads) {
            groups.push(metric.workloads);
        }
    }
    let rows = groups.iter().flat_map(|group| {
        let of_group = METRICS
            .iter()
            .filter(move |metric| metric.workloads == *group);
        of_group.map(|metric| {
            let better = match metric.better {
                Better::Lower => "lower",
                Better::Higher => "higher",
                Better::Neither => "neither",
            };
            let meaning = [metric.meaning.to_owned(), precision(metric.precision)];
            let meaning = meaning.into_iter().filter(|part| !part.is_empty());
            let meaning: Vec<String> = meaning.collect();
            format!(
                "| `{}` | {} | {better} | {} |\n",
                metric.name,
                workloads(group),
                meaning.join("; ")
            )
        })
    });
    rows.collect()
}

fn workloads(group: &[WorkloadKind]) -> String {
    let words = toll_wire::words::<WorkloadKind>();
    if group.len() + 1 == words.len() {
        return "all but `boot`".into();
    }
    let words: Vec<String> = group
        .iter()
        .map(|kind| format!("`{}`", toll_wire::word(kind)))
        .collect();
    words.join(", ")
}

fn precision(precision: Precision) -> String {
    match precision {
        Precision::Exact => String::new(),
        Precision::Steps { ns } if ns >= 1_000_000 => format!("in steps of {} ms", ns / 1_000_000),
        Precision::Steps { ns } => format!("in steps of {} µs", ns / 1_000),
        Precision::Estimated => "the kernel may estimate it".into(),
    }
}

#[test]
fn the_table_of_metrics_is_the_catalogue() {
    const HEAD: &str = "| metric | workloads | better | meaning |\n|---|---|---|---|\n";
    let (before, rest) = DOCUMENT.split_once(HEAD).unwrap();
    let (table, after) = rest.split_once("\n## `counters`").unwrap();
    let expected = table_of_metrics();
    if std::env::var_os("TOLL_BLESS").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/FORMAT.md");
        let blessed = format!("{before}{HEAD}{expected}\n## `counters`{after}");
        std::fs::write(path, blessed).unwrap();
    } else {
        assert_eq!(table.trim(), expected.trim());
    }
}

#[test]
fn the_catalogue_has_the_metrics_of_each_workload() {
    for word in toll_wire::words::<WorkloadKind>() {
        let kind: WorkloadKind = toll_wire::from_word(word).unwrap();
        let names = kind.metrics();
        let mut single = names.clone();
        single.sort_unstable();
        single.dedup();
        assert_eq!(single.len(), names.len(), "{word}: {names:?}");
    }
}

#[test]
fn a_level_that_does_not_fit_is_told_what_does() {
    use WorkloadKind::{Copy, Files, Reclaim, Transfer};
    for (kind, name, text, words) in [
        (
            Copy,
            "directory",
            "/tmp",
            "no such parameter; it has buffer, cache, io, method,",
        ),
        (Copy, "@directory", "/tmp", "no such parameter"),
        (
            Copy,
            "method",
            "teleport",
            "cannot set method to \"teleport\": it must be one of byte,",
        ),
        (
            Copy,
            "buffer",
            "0",
            "cannot set buffer to \"0\": it must be 1 byte to 1 GiB",
        ),
        (Copy, "fs", "floppy", "it must be one of work, ext4"),
        (
            Files,
            "durability",
            "o-sync",
            "it must be one of none, fsync",
        ),
        (
            Files,
            "durability",
            "never",
            "cannot set durability to \"never\": it must be one of none, fsync",
        ),
        (
            Files,
            "count",
            "many",
            "it must be a whole number from 1 to 1000000",
        ),
        (Files, "round_trip_ms", "10001", "from 0 to 10000"),
        (
            Reclaim,
            "pressure",
            "low",
            "it must be one of none, competing, sweeping",
        ),
        (
            Transfer,
            "receiver_buffer",
            "other",
            "cannot read size \"other\"",
        ),
    ] {
        let refused = refusal(kind, name, text);
        assert!(refused.contains(words), "{refused}");
    }
}
