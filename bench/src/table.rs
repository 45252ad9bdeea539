//! The table in Markdown.

use std::collections::BTreeSet;
use std::fmt::Write;

use toll_stats::Interval;

use crate::analysis::{CONFIDENCE, Claim, Standing, Summary};
use crate::case::Case;
use crate::document::Document;

/// Below this size a throughput says nothing: starting is all there is.
const THROUGHPUT_BYTES_MIN: u64 = 1 << 20;

/// How the figures were made.
const METHOD: &str = "\
1. A time is `CLOCK_MONOTONIC_RAW` from just before a program is spawned until it has exited and the reader of its
   sink has seen the end of file. Sources are warm, sinks that are files are new, and nothing waits for the device.
2. Randomised complete blocks: in each, every program of every case runs once, cases and programs in a fresh random
   order; blocks of both sizes alternate at random. The twin is `meow` once more in the role of a peer.
3. A ratio is the Hodges–Lehmann estimate of the blocks' log-ratios with its exact 95 % signed-rank interval; below 1
   `meow` takes less time. Intervals are not adjusted for their number. The best peer is that of the largest ratio.
4. Verdict by the interval of meow / best peer: `fastest` if below 1, else `within 3 %` if its end is at most 1.03,
   `slower` if above 1.03, `undecided` otherwise.
5. Readers and feeders are threads with a buffer of 128 KiB; pipes have the capacity the kernel gives them. Before the
   blocks every program was run once and every byte that arrived compared; in the blocks bytes are counted.
";

/// Writes the whole table of a document.
#[must_use]
pub fn render(document: &Document) -> String {
    let summaries: Vec<Summary> = document.cells.iter().filter_map(Summary::of).collect();
    let sizes: BTreeSet<u64> = summaries.iter().map(|it| it.size_bytes).collect();
    let mut text = String::from("# `meow` and its peers\n\n");
    text += &head(document);
    for &size_bytes in sizes.iter().rev() {
        let of_size: Vec<&Summary> = summaries
            .iter()
            .filter(|summary| summary.size_bytes == size_bytes)
            .collect();
        let blocks = of_size.iter().map(|it| it.blocks).max().unwrap_or(0);
        put(
            &mut text,
            format_args!("\n## {}, {blocks} blocks\n\n", size(size_bytes)),
        );
        text += &verdicts(&of_size);
        text += &claim(&of_size);
        text += "\nEvery program, the fastest first:\n\n";
        text += &standings(&of_size);
    }
    text += "\n## Method\n\n";
    text += METHOD;
    text += &legend(&summaries);
    text += &notes(document, &summaries);
    text
}

/// Appends formatted text.
fn put(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments)
        .expect("writing into a string cannot fail");
}

fn head(document: &Document) -> String {
    let machine = &document.machine;
    let governor = machine.governor.as_deref().unwrap_or("none visible");
    let mut text = String::new();
    put(&mut text, format_args!("- Date: {}\n", document.date));
    put(
        &mut text,
        format_args!(
            "- Machine: {}, {} CPUs, {} of memory, virtualisation {}, governor {governor}\n",
            machine.cpu_model,
            machine.cpus,
            size(machine.memory_bytes),
            machine.virtualization,
        ),
    );
    put(
        &mut text,
        format_args!(
            "- System: Linux {}, work files on {}, load before the run {:.2}\n",
            machine.kernel, machine.work_file_system, machine.load_before
        ),
    );
    put(
        &mut text,
        format_args!(
            "- Command: `{}`, seed {}\n",
            document.command_line, document.seed
        ),
    );
    text += "- Programs:\n";
    for program in &document.programs {
        let arguments: String = program
            .arguments
            .iter()
            .map(|it| format!(" {it}"))
            .collect();
        put(
            &mut text,
            format_args!(
                "  - {}: `{}{arguments}`, {}\n",
                program.name, program.path, program.version
            ),
        );
    }
    text
}

fn verdicts(summaries: &[&Summary]) -> String {
    let mut rows = vec![row(&[
        "case",
        "meow",
        "best peer",
        "its time",
        "meow / best peer",
        "verdict",
        "twin / meow",
    ])];
    for summary in summaries {
        let time_of = |standing: Option<&Standing>| {
            standing.map_or("failed".into(), |it| time_and_rate(it, summary.size_bytes))
        };
        let best = summary.best_peer();
        rows.push(vec![
            summary.case.name().into(),
            time_of(summary.meow()),
            best.map_or("none".into(), |best| best.name.clone()),
            best.map_or(String::new(), |best| time_of(Some(best))),
            ratio(best.and_then(|best| best.ratio.as_ref())),
            summary.verdict().map_or(String::new(), |it| it.to_string()),
            ratio(summary.twin.as_ref()),
        ]);
    }
    markdown_table(&rows)
}

fn claim(summaries: &[&Summary]) -> String {
    let of_large = |summary: &&&Summary| summary.size_bytes >= THROUGHPUT_BYTES_MIN;
    let Some(claim) = summaries
        .iter()
        .filter(of_large)
        .find_map(|summary| summary.claim())
    else {
        return String::new();
    };
    let Claim { ratio: gnu, holds } = claim;
    let answer = match holds {
        Some(true) => "yes",
        Some(false) => "no",
        None => "undecided",
    };
    format!(
        "\nInto a pipe that is read, GNU cat / meow is {}; at least 3: {answer}.\n",
        ratio(Some(&gnu))
    )
}

fn standings(summaries: &[&Summary]) -> String {
    let mut rows = vec![row(&["case", "program", "median", "meow / program"])];
    for summary in summaries {
        for standing in &summary.ranking {
            rows.push(vec![
                summary.case.name().into(),
                standing.name.clone(),
                time_and_rate(standing, summary.size_bytes),
                ratio(standing.ratio.as_ref()),
            ]);
        }
    }
    markdown_table(&rows)
}

fn legend(summaries: &[Summary]) -> String {
    let cases: BTreeSet<Case> = summaries.iter().map(|it| it.case).collect();
    let mut text = String::from("\nCases:\n\n");
    for case in cases {
        put(
            &mut text,
            format_args!("- `{}`: {}\n", case.name(), case.description()),
        );
    }
    text
}

fn notes(document: &Document, summaries: &[Summary]) -> String {
    let mut notes = document.notes.clone();
    let load = document.machine.load_before;
    if document.machine.was_busy() {
        notes.push(format!(
            "The machine was not quiet (load {load:.2} before the run): times are longer and \
             intervals wider than they need be."
        ));
    }
    for cell in &document.cells {
        for (program, reason) in &cell.excluded {
            notes.push(format!(
                "Failed: {program} in {}, {}: {reason}; it is out of the ranking.",
                cell.case.name(),
                size(cell.size_bytes)
            ));
        }
    }
    for summary in summaries {
        if let Some(twin) = &summary.twin
            && twin.reaches(CONFIDENCE)
            && !twin.contains(1.0)
        {
            notes.push(format!(
                "In {}, {}, meow differs from itself (twin / meow {}): expected once in 20 cases; a \
                 ratio as near to 1 as this says nothing.",
                summary.case.name(),
                size(summary.size_bytes),
                ratio(Some(twin))
            ));
        }
    }
    if summaries.iter().any(|summary| summary.case == Case::Null) {
        notes.push(
            "What arrives in /dev/null cannot be looked at; there a program has only to succeed."
                .into(),
        );
    }
    let lines: String = notes.iter().map(|note| format!("- {note}\n")).collect();
    format!("\n## Notes\n\n{lines}")
}

fn time_and_rate(standing: &Standing, size_bytes: u64) -> String {
    let time = time(standing.median_ns);
    if size_bytes < THROUGHPUT_BYTES_MIN {
        return time;
    }
    let gibibytes_per_second = size_bytes as f64 / standing.median_ns * 1e9 / (1u64 << 30) as f64;
    format!("{time}, {} GiB/s", three_digits(gibibytes_per_second))
}

fn time(nanoseconds: f64) -> String {
    let (unit_ns, unit) = match nanoseconds {
        ns if ns >= 1e9 => (1e9, "s"),
        ns if ns >= 1e6 => (1e6, "ms"),
        _ => (1e3, "µs"),
    };
    format!("{} {unit}", three_digits(nanoseconds / unit_ns))
}

/// A number with about three significant digits.
fn three_digits(value: f64) -> String {
    let decimals = match value {
        value if value >= 99.95 => 0,
        value if value >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.decimals$}")
}

fn ratio(ratio: Option<&Interval>) -> String {
    ratio.map_or(String::new(), |ratio| {
        let Interval {
            estimate,
            low,
            high,
            ..
        } = ratio;
        format!("{estimate:.3} [{low:.3}, {high:.3}]")
    })
}

/// A size in the largest unit of which it is at least one.
pub(crate) fn size(bytes: u64) -> String {
    let (unit_bytes, unit) = match bytes {
        bytes if bytes >= 1 << 30 => (1u64 << 30, "GiB"),
        bytes if bytes >= 1 << 20 => (1 << 20, "MiB"),
        bytes if bytes >= 1 << 10 => (1 << 10, "KiB"),
        _ => (1, "B"),
    };
    match bytes % unit_bytes {
        0 => format!("{} {unit}", bytes / unit_bytes),
        _ => format!("{:.1} {unit}", bytes as f64 / unit_bytes as f64),
    }
}

fn row(cells: &[&str]) -> Vec<String> {
    cells.iter().map(|&cell| cell.into()).collect()
}

/// Aligns columns, so that the text reads as well as the page made of it.
fn markdown_table(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| {
        let widths = rows.iter().map(|row| row[column].chars().count());
        widths.max().unwrap_or(0).max(3)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for (index, row) in rows.iter().enumerate() {
        for (cell, &width) in row.iter().zip(&widths) {
            put(&mut text, format_args!("| {cell:<width$} "));
        }
        text += "|\n";
        if index == 0 {
            for &width in &widths {
                put(&mut text, format_args!("|{:-<1$}", "", width + 2));
            }
            text += "|\n";
        }
    }
    text
}

#[cfg(test)]
mod tests;
