//! The tables of docs/FORMAT.md say what the parameters of each workload are.

use std::collections::BTreeMap;

use toll_wire::WorkloadKind;

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

/// What a level is told that fits no parameter.
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
        // Words that another table or section lists are told by where they are.
        for (name, row) in rows.iter().filter(|(_, row)| !row.contains("below")) {
            let is_elsewhere = row.contains("](#") || row.contains("as for `memory`");
            let refused = refusal(kind, name, "\u{1}");
            if let Some((_, words)) = refused.split_once("it is one of ")
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

#[test]
fn the_list_of_metrics_has_those_of_all_workloads() {
    let (_, section) = DOCUMENT.split_once("\n## Metrics\n").unwrap();
    let section = section.split("\n## ").next().unwrap();
    for word in toll_wire::words::<WorkloadKind>() {
        let kind: WorkloadKind = toll_wire::from_word(word).unwrap();
        let is_derived = |name: &String| {
            let rest = name.strip_prefix("init_").unwrap_or(name);
            let is_of_making = rest != name && kind.metrics().iter().any(|other| other == rest);
            is_of_making || name.ends_with(toll_wire::guest::PATH_LENGTH)
        };
        for name in kind.metrics().iter().filter(|name| !is_derived(name)) {
            assert!(section.contains(&format!("`{name}`")), "{word}: {name}");
        }
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
            "cannot set method to \"teleport\": it is one of byte,",
        ),
        (
            Copy,
            "buffer",
            "0",
            "cannot set buffer to \"0\": it is 1 byte to 1 GiB",
        ),
        (Copy, "fs", "floppy", "it is one of work, ext4"),
        (Files, "durability", "o-sync", "it is one of none, fsync"),
        (
            Files,
            "durability",
            "never",
            "cannot set durability to \"never\": it is one of none, fsync",
        ),
        (
            Files,
            "count",
            "many",
            "it is a whole number from 1 to 1000000",
        ),
        (Files, "round_trip_ms", "10001", "from 0 to 10000"),
        (
            Reclaim,
            "pressure",
            "low",
            "it is one of none, competing, sweeping",
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
