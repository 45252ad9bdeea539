//! Wording of explanations, shared by all kinds of reports.

use crate::claim::SYSTEM_CALLS;
use crate::claim::model::{Estimate, ExplainedCount, ExplainedRow, Explanation};
use crate::explain::parts::keep_until_explained;
use crate::format;
use crate::words::plural;

/// Maximum number of rows that the sentence names.
const NAMED_MAX: usize = 3;

/// An explanation in one sentence.
pub fn sentence(one: &Explanation) -> String {
    let difference = format!(
        "{} takes {} times as long as {}",
        one.slower_label,
        format::ratio(one.ratio),
        one.faster_label
    );
    let named: Vec<String> = one
        .rows
        .iter()
        .take(NAMED_MAX)
        .enumerate()
        .map(part)
        .collect();
    if !named.is_empty() {
        format!("{difference}: {}", named.join(", "))
    } else if one.blocks < one.blocks_needed {
        format!(
            "{difference}: {} cannot show why; at least {} are needed",
            plural(one.blocks, "block"),
            one.blocks_needed
        )
    } else {
        format!("{difference}: nothing that differs stands out from noise")
    }
}

fn part((index, row): (usize, &ExplainedRow)) -> String {
    let size = match &row.share {
        Some(one) => share(one),
        None => format::interval(&row.difference_ns, "ns"),
    };
    match index {
        0 => format!("{size} of the difference is {}", row.name),
        _ => format!("{size} {}", row.name),
    }
}

/// Returns the rows worth a line, and the number of rows left out: those that
/// together are under 1 % of the difference.
pub fn shown_rows<'a>(
    rows: &'a [ExplainedRow],
    one: &Explanation,
) -> (Vec<&'a ExplainedRow>, usize) {
    let mut shown: Vec<&ExplainedRow> = rows.iter().collect();
    let size = |row: &&ExplainedRow| row.difference_ns.value.abs();
    keep_until_explained(&mut shown, size, one.difference_ns.value.abs());
    let left_out = rows.len() - shown.len();
    (shown, left_out)
}

/// A share with its interval: `71 % [69, 73]`.
pub fn share(one: &Estimate) -> String {
    let percent = |share: f64| match (share * 100.0).round() {
        negative @ ..0.0 => format!("−{}", -negative),
        // `abs` also removes the sign of -0.
        other => format!("{}", other.abs()),
    };
    format!(
        "{} % [{}, {}]",
        percent(one.value),
        percent(one.low),
        percent(one.high)
    )
}

/// Returns the caveats of an explanation.
pub fn notes(one: &Explanation) -> Vec<String> {
    let mut notes = vec![format!(
        "the intervals of each list hold simultaneously at 95 % confidence; {} of profiled trials",
        plural(one.blocks, "block")
    )];
    let rows = (shown_rows(&one.rows, one).1, "row", "together");
    let counts = (shown_counts(&one.counts).1, "system call", "each");
    for (left_out, what, how) in [rows, counts].into_iter().filter(|(count, ..)| *count > 0) {
        notes.push(format!(
            "{} under 1 % {how} {} left out; --json has them",
            plural(left_out, what),
            if left_out == 1 { "is" } else { "are" }
        ));
    }
    let overheads: Vec<String> = one
        .overheads
        .iter()
        .map(|overhead| format::ratio(overhead.ratio))
        .collect();
    if !overheads.is_empty() {
        notes.push(format!(
            "profiled trials took {} times as long as timed ones, slower treatment first",
            overheads.join(" and ")
        ));
    }
    if one.waits_for_cpu_ns > 0.0 {
        notes.push(format!(
            "left out: {} of each iteration, in which other programs had the CPU",
            format::duration_ns(one.waits_for_cpu_ns)
        ));
    }
    notes.extend(one.notes.iter().cloned());
    notes
}

/// Returns the counts worth a line, and the number of counts left out: system calls
/// whose difference is under 1 % of the largest one.
pub fn shown_counts(counts: &[ExplainedCount]) -> (Vec<&ExplainedCount>, usize) {
    let is_call = |one: &&ExplainedCount| one.metric.starts_with(SYSTEM_CALLS);
    let size = |one: &ExplainedCount| one.difference.value.abs();
    let calls = counts.iter().filter(is_call);
    let least = 0.01 * calls.map(size).fold(0.0, f64::max);
    let is_shown = |one: &&ExplainedCount| !is_call(one) || size(one) >= least;
    let shown: Vec<&ExplainedCount> = counts.iter().filter(is_shown).collect();
    let left_out = counts.len() - shown.len();
    (shown, left_out)
}

/// Returns the unit of a counted metric.
pub fn counted_unit(metric: &str) -> &'static str {
    if metric.ends_with("_bytes") {
        "bytes"
    } else {
        "count"
    }
}
