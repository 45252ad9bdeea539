//! Whether the table says what the document has.

use std::collections::BTreeMap;

use super::*;
use crate::document::{BlockRecord, CellRecord, ProgramRecord, VERSION};
use crate::kept::Kept;
use crate::machine::Machine;

/// Twelve blocks in which GNU cat takes four times and pv 1.25 times as long
/// as meow.
fn cell(case: Case, size_bytes: u64, meow_ns: u64) -> CellRecord {
    let programs = ["meow", "meow (twin)", "GNU cat", "pv"];
    CellRecord {
        case,
        size_bytes,
        programs: programs.map(String::from).to_vec(),
        blocks: (0..12)
            .map(|block| {
                let jitter = block % 3;
                let base = meow_ns + jitter * meow_ns / 100;
                BlockRecord {
                    order: vec![3, 1, 0, 2],
                    durations_ns: [base, base, 4 * base, base + base / 4].map(Some).to_vec(),
                }
            })
            .collect(),
        excluded: BTreeMap::new(),
    }
}

fn document() -> Document {
    Document {
        version: VERSION,
        date: "2025-01-02 03:04:05 UTC".into(),
        command_line: "bench-cat --meow target/meow".into(),
        seed: 7,
        machine: Machine {
            cpu_model: "Some CPU".into(),
            cpus: 2,
            memory_bytes: 24 << 30,
            kernel: "6.18".into(),
            governor: None,
            virtualization: "KVM".into(),
            work_file_system: "ext4".into(),
            load_before: 0.125,
        },
        programs: vec![ProgramRecord {
            name: "pv".into(),
            path: "/usr/bin/pv".into(),
            arguments: vec!["-q".into()],
            version: "pv 1.6.20".into(),
        }],
        cells: vec![
            cell(Case::PipeRead, 1 << 30, 200_000_000),
            cell(Case::PipeRead, 1024, 400_000),
        ],
        notes: vec!["Skipped program dd: it is missing.".into()],
    }
}

fn assert_has(text: &str, line: &str) {
    assert!(
        text.lines().any(|it| it == line),
        "no line {line} in\n{text}"
    );
}

#[test]
fn the_table_says_who_was_run_where_and_with_what_result() {
    let text = render(&document());
    assert_has(
        &text,
        "- Machine: Some CPU, 2 CPUs, 24 GiB of memory, virtualisation KVM, governor none visible",
    );
    assert_has(&text, "  - pv: `/usr/bin/pv -q`, pv 1.6.20");
    assert_has(&text, "## 1 GiB, 12 blocks");
    assert_has(
        &text,
        "| pipe-read | 202 ms, 4.95 GiB/s | pv        | 252 ms, 3.96 GiB/s | 0.800 [0.800, 0.800] | \
         fastest | 1.000 [1.000, 1.000] |",
    );
    assert_has(
        &text,
        "Into a pipe that is read, GNU cat / meow is 4.000 [4.000, 4.000]; at least 3: yes.",
    );
    assert_has(&text, "- `pipe-read`: file to a pipe whose reader reads");
    assert_has(&text, "- Skipped program dd: it is missing.");
}

#[test]
fn a_small_file_has_times_but_no_throughput_and_no_claim() {
    let mut document = document();
    document.cells.remove(0);
    let text = render(&document);
    assert_has(&text, "## 1 KiB, 12 blocks");
    assert!(text.contains("| 404 µs |"), "{text}");
    assert!(
        !text.contains("GiB/s") && !text.contains("at least 3"),
        "{text}"
    );
}

#[test]
fn a_failed_program_is_named_and_a_twin_that_differs_is_too() {
    let mut document = document();
    let cell = &mut document.cells[0];
    cell.excluded
        .insert("pv".into(), "delivered 1 bytes".into());
    for block in &mut cell.blocks {
        block.durations_ns[1] = block.durations_ns[0].map(|ns| ns * 2);
    }
    let text = render(&document);
    assert_has(
        &text,
        "- Failed: pv in pipe-read, 1 GiB: delivered 1 bytes; it is out of the ranking.",
    );
    assert!(
        text.contains("meow differs from itself (twin / meow 2.000"),
        "{text}"
    );
}

#[test]
fn a_document_survives_its_file_and_gives_the_same_table() {
    let document = document();
    let again = Document::parse(&document.to_json()).expect("it was written by this program");
    assert_eq!(again, document);
    assert_eq!(render(&again), render(&document));
}

#[test]
fn a_document_of_another_version_is_refused() {
    let newer = Document {
        version: VERSION + 1,
        ..document()
    };
    let error = Document::parse(&newer.to_json()).expect_err("it is newer");
    assert!(error.contains("version 2"), "{error}");
}

#[test]
fn numbers_have_three_digits() {
    assert_eq!(time(1_234_567_890.0), "1.23 s");
    assert_eq!(time(12_345_678.0), "12.3 ms");
    assert_eq!(time(812_345.0), "812 µs");
    assert_eq!(three_digits(9.996), "10.0");
    assert_eq!(three_digits(99.96), "100");
    assert_eq!(size(1536 << 20), "1.5 GiB");
    assert_eq!(size(1000), "1000 B");
}
