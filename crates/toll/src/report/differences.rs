//! The differences between sides that were compared many times over: the same list
//! for the terminal, the page and Markdown.

use std::collections::BTreeSet;

use super::comparison::{ComparisonRow, ComparisonTable};
use super::words;
use crate::claim::metric_words;
use crate::claim::model::{
    Analysis, Comparison, Estimate, FunctionDifference, FunctionDifferences, Overall, Relation,
};
use crate::format;

/// Functions shown of each difference.
const FUNCTIONS_SHOWN: usize = 10;

/// Lists what differs, the largest difference first, and tells how many comparisons
/// show none.
pub fn list(analysis: &Analysis) -> ComparisonTable {
    let judged = || analysis.comparisons.iter().filter(|one| one.is_judged);
    let mut differing: Vec<&Comparison> = judged().filter(|one| differs(one)).collect();
    differing.sort_by(|a, b| size(&b.ratio).total_cmp(&size(&a.ratio)));
    let sentences: Vec<String> = analysis.overall.iter().map(sentence).collect();
    ComparisonTable {
        columns: ["what", "by", "ratio"].map(str::to_owned).into(),
        rows: differing.iter().map(|one| row(one, analysis)).collect(),
        footnotes: no_difference(&judged().collect::<Vec<_>>()),
        sentence: (!sentences.is_empty()).then(|| sentences.join(" ")),
        is_list: true,
    }
}

fn differs(one: &Comparison) -> bool {
    matches!(
        one.relation,
        Relation::Better | Relation::Worse | Relation::Different
    )
}

fn size(ratio: &Estimate) -> f64 {
    ratio.value.ln().abs()
}

fn row(one: &Comparison, analysis: &Analysis) -> ComparisonRow {
    let label = match analysis.overall.as_slice() {
        [_, _, ..] => format!(
            "{} ({})",
            one.common, analysis.treatments[one.treatment].label
        ),
        _ => one.common.clone(),
    };
    ComparisonRow {
        label,
        marks: String::new(),
        cells: vec![metric_words(&one.metric), ratio(&one.ratio)],
        relation: Some(one.relation),
        is_skipped: false,
        notes: one.functions.as_ref().map_or_else(Vec::new, functions),
    }
}

/// The functions that make a difference, a line each, and what they leave of it.
pub(super) fn functions(one: &FunctionDifferences) -> Vec<String> {
    let whole = one.difference.value;
    let line = |function: &FunctionDifference| {
        let count = instructions(&function.instructions);
        let share = format::percent(function.instructions.value / whole);
        format!("{}: {count} instructions, {share}", function.name)
    };
    let mut lines: Vec<String> = one.listed.iter().take(FUNCTIONS_SHOWN).map(line).collect();
    if let more @ 1.. = one.listed.len().saturating_sub(FUNCTIONS_SHOWN) {
        lines.push(format!(
            "and {} (--json)",
            words::plural(more, "more function")
        ));
    }
    let rest = instructions(&one.rest);
    let of = instructions(&one.difference);
    lines.push(match one.listed.len() {
        0 => format!("no function can be told from chance in {of} instructions"),
        _ => {
            let share = format::percent(one.explained);
            format!("these explain {share} of {of} instructions; the rest is {rest}")
        }
    });
    lines
}

/// A difference in full, with its interval if that is no point.
fn instructions(difference: &Estimate) -> String {
    let ends = [difference.value, difference.low, difference.high];
    let [value, low, high] = ends.map(|count| format::signed(count.round() as i64));
    format!("{value} [{low}, {high}]")
}

/// Three decimals, since path lengths repeat to more than anyone reads.
fn ratio(ratio: &Estimate) -> String {
    let [value, low, high] = [ratio.value, ratio.low, ratio.high].map(|end| match end {
        0.1..10.0 => format!("{end:.3}"),
        _ => format::significant(end),
    });
    format!("{value} [{low}, {high}]")
}

/// What is known of the comparisons that show no difference: how large one could have
/// been and not be seen.
fn no_difference(judged: &[&Comparison]) -> Vec<String> {
    let mut lines = Vec::new();
    let same = judged.iter().filter(|one| one.relation == Relation::Same);
    let largest = same
        .clone()
        .map(|one| reach(&one.ratio))
        .fold(0.0, f64::max);
    let count = same.count();
    if count > 0 {
        lines.push(format!(
            "{} of {} show no difference: none is larger than {}",
            count,
            words::plural(judged.len(), "comparison"),
            format::percent(largest.max(0.0001))
        ));
    }
    let mut open: Vec<&&Comparison> = judged
        .iter()
        .filter(|one| one.relation == Relation::Undecided)
        .collect();
    open.sort_by(|a, b| reach(&b.ratio).total_cmp(&reach(&a.ratio)));
    let has_too_few = |one: &Comparison| {
        let reason = one.reason.as_deref().unwrap_or_default();
        reason.contains("cannot decide").then(|| reason.to_owned())
    };
    let few: BTreeSet<String> = open.iter().filter_map(|one| has_too_few(one)).collect();
    if let Some(first) = few.first() {
        let count = open.iter().filter(|one| has_too_few(one).is_some()).count();
        lines.push(format!("{count} undecided: {first}"));
    }
    open.retain(|one| has_too_few(one).is_none());
    let part = |one: &&&Comparison| {
        let (metric, ratio) = (
            metric_words(&one.metric),
            format::ratio_interval(&one.ratio),
        );
        format!("{metric} of {}, {ratio}", one.common)
    };
    let mut told: Vec<String> = open.iter().map(part).collect();
    const LISTED: usize = 8;
    if !told.is_empty() {
        let more = match told.len().saturating_sub(LISTED) {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        told.truncate(LISTED);
        lines.push(format!(
            "{} undecided, the widest first: {}{more}",
            open.len(),
            told.join("; ")
        ));
    }
    lines
}

/// The largest difference that an interval holds, as a share.
fn reach(ratio: &Estimate) -> f64 {
    let away = |end: f64| end.max(1.0 / end) - 1.0;
    away(ratio.low).max(away(ratio.high))
}

/// What comes of all comparisons by the main metric.
fn sentence(overall: &Overall) -> String {
    let Overall { new, base, .. } = overall;
    let (what, longer) = match overall.metric.as_str() {
        "path_length_instructions" => ("the instructions".to_owned(), ["longer", "shorter"]),
        other => (format!("the {}", metric_words(other)), ["worse", "better"]),
    };
    let ratio = ratio(&overall.ratio);
    let Overall {
        worse,
        better,
        different,
        same,
        compared,
        ..
    } = overall;
    let open = compared - worse - better - different - same;
    let mut counts = vec![
        format!("{worse} {}", longer[0]),
        format!("{better} {}", longer[1]),
        format!("{same} the same"),
    ];
    counts.extend((*different > 0).then(|| format!("{different} different")));
    counts.extend((open > 0).then(|| format!("{open} undecided")));
    let verb = match overall.metric.as_str() {
        "path_length_instructions" => "executes",
        _ => "takes",
    };
    format!(
        "{new} {verb} {ratio} times {what} of {base} over {}: {}.",
        words::plural(*compared, "row"),
        counts.join(", ")
    )
}
