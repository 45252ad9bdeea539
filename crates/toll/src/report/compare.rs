//! Runs side by side, never pooled: a median over two machines describes
//! neither.

use std::collections::BTreeSet;

use super::terminal::Style;
use super::terminal::paint;
use super::terminal::text::{Column, Paint, Row, fit, heading, layout, paragraph, table};
use super::words;
use crate::claim::model::{Better, RunComparison, RunRatio, TreatmentSummary};
use crate::claim::work::Difference;
use crate::claim::{Run, metric_words};
use crate::format;

/// Compares runs: first what they did differently and in what their machines
/// differ, since a difference in the results may be due to any of it, then
/// verdicts, then medians, then each later run over the first.
pub fn compare(
    runs: &[Run],
    work: &[Difference],
    differences: &[Difference],
    comparisons: &[RunComparison],
    style: Style,
) -> String {
    let style = layout(style);
    let mut text = heading("Runs", style);
    let names = names(runs);
    for (run, name) in runs.iter().zip(&names) {
        let line = format!(
            "{name}: {}, {}, {}",
            run.stored.run.title,
            words::minute(&run.stored.run.created_at),
            words::counts(&run.analysis.verdicts)
        );
        text.push_str(&paragraph(&line, 0, Paint::Plain, style));
    }
    text.push('\n');
    if !work.is_empty() {
        text.push_str(&different_work(&names, work, style));
        text.push('\n');
    }
    text.push_str(&machines(&names, work, differences, style));
    text.push('\n');
    text.push_str(&verdicts(runs, style));
    text.push('\n');
    text.push_str(&medians(runs, style));
    for comparison in comparisons {
        let title = format!("Run {} over run {}", comparison.new_run, comparison.old_run);
        text.push('\n');
        text.push_str(&ratios(comparison, &title, style));
    }
    fit(text, style)
}

/// A run over the baseline that it is compared with, metric by metric: first what
/// the two did differently, last in what else they differ.
pub fn over_baseline(
    baseline: &str,
    comparisons: &[RunComparison],
    work: &[Difference],
    differences: &[Difference],
    style: Style,
) -> String {
    let style = layout(style);
    let mut parts = Vec::new();
    for comparison in comparisons {
        let (new, old) = (comparison.new_run, comparison.old_run);
        if parts.is_empty() && !work.is_empty() {
            let names = [old, new].map(|run| format!("run {run}"));
            parts.push(different_work(&names, work, style));
        }
        let title = format!("Run {new} over baseline {baseline}, run {old}");
        parts.push(ratios(comparison, &title, style));
    }
    let mut text = parts.join("\n");
    let names: Vec<&str> = differences.iter().map(|one| one.what.as_str()).collect();
    if let (Some(comparison), false) = (comparisons.first(), names.is_empty()) {
        let told = format!(
            "The runs differ in {}; each may be the cause (toll compare {} {}).",
            names.join(", "),
            comparison.old_run,
            comparison.new_run
        );
        text.push_str(&paragraph(&told, 0, Paint::Yellow, style));
    }
    fit(text, style)
}

/// The ratios of two runs, and what they leave out.
fn ratios(comparison: &RunComparison, title: &str, style: Style) -> String {
    let mut text = heading(title, style);
    let columns = [
        Column::words("treatment"),
        Column::numbers(&format!("ratio of {}", metric_words(&comparison.metric))),
        Column::words("which is"),
    ];
    let rows: Vec<Row> = comparison.ratios.iter().map(ratio).collect();
    if rows.is_empty() {
        text.push_str(&paragraph(
            "no treatment is in both",
            0,
            Paint::Plain,
            style,
        ));
    } else {
        text.push_str(&table(&columns, &rows, style));
    }
    let mut notes = Vec::new();
    notes.push(words::margin_between_runs(comparison));
    if comparison.better == Better::Neither {
        notes.push(format!(
            "neither more nor less of {} is better",
            metric_words(&comparison.metric)
        ));
    }
    for (which, labels) in [("new", &comparison.only_new), ("old", &comparison.only_old)] {
        if !labels.is_empty() {
            notes.push(format!("in the {which} run alone: {}", labels.join(", ")));
        }
    }
    for note in notes {
        text.push_str(&paragraph(&note, 0, Paint::Dim, style));
    }
    text
}

fn ratio(one: &RunRatio) -> Row {
    let value = one.ratio.as_ref();
    let mut row = Row::new(vec![
        one.label.clone(),
        value.map_or_else(|| format::NOTHING.to_owned(), format::ratio_interval),
        words::relation(one.relation).to_owned(),
    ]);
    row.paint = paint(one.relation);
    row.below.extend(one.reason.clone());
    row
}

fn names(runs: &[Run]) -> Vec<String> {
    let name = |run: &Run| format!("run {}", run.stored.run.id);
    runs.iter().map(name).collect()
}

fn columns(first: &str, names: &[String], column: fn(&str) -> Column) -> Vec<Column> {
    let named = names.iter().map(|name| column(name));
    std::iter::once(Column::words(first)).chain(named).collect()
}

/// What the runs did differently, which says more than any machine.
fn different_work(names: &[String], work: &[Difference], style: Style) -> String {
    let mut text = heading("The runs did not do the same", style);
    text.push_str(&facts(names, work, style));
    let caution = "A ratio below compares different work: it says nothing on a change of the \
                   program or the machine.";
    text.push_str(&paragraph(caution, 0, Paint::Red, style));
    text
}

/// In what runs of these names differ beside their work.
pub(super) fn machines(
    names: &[String],
    work: &[Difference],
    differences: &[Difference],
    style: Style,
) -> String {
    let mut text = heading("The runs differ in", style);
    if differences.is_empty() {
        let nothing = match work.is_empty() {
            true => "nothing that was recorded",
            false => "nothing else that was recorded",
        };
        text.push_str(&paragraph(nothing, 0, Paint::Plain, style));
        return text;
    }
    text.push_str(&facts(names, differences, style));
    let caution = "Each of these may be the cause of a difference below.";
    text.push_str(&paragraph(caution, 0, Paint::Yellow, style));
    text
}

fn facts(names: &[String], differences: &[Difference], style: Style) -> String {
    let row = |difference: &Difference| {
        let values = difference.values.iter().cloned();
        let what = std::iter::once(difference.what.clone());
        Row::new(what.chain(values).collect())
    };
    let rows: Vec<Row> = differences.iter().map(row).collect();
    table(&columns("", names, Column::words), &rows, style)
}

fn verdicts(runs: &[Run], style: Style) -> String {
    let ids = in_order(runs, |run| {
        run.analysis
            .verdicts
            .iter()
            .map(|verdict| verdict.id.clone())
            .collect()
    });
    let rows: Vec<Row> = ids
        .into_iter()
        .map(|id| {
            let cells = runs.iter().map(|run| {
                let mut verdicts = run.analysis.verdicts.iter();
                let verdict = verdicts.find(|verdict| verdict.id == id);
                verdict.map_or_else(
                    || format::NOTHING.to_owned(),
                    |verdict| {
                        let sign = words::symbol(verdict.outcome);
                        match verdict.measured {
                            Some(_) => format!("{sign} {}", format::measured(verdict)),
                            None => format!("{sign} {}", words::outcome(verdict.outcome)),
                        }
                    },
                )
            });
            let mut row = Row::new(std::iter::once(id.clone()).chain(cells).collect());
            if outcomes_differ(runs, &id) {
                row.paint = Paint::Yellow;
                row.below.push("the verdicts differ".to_owned());
            }
            row
        })
        .collect();
    let mut text = heading("Verdicts", style);
    if rows.is_empty() {
        text.push_str(&paragraph("No claims to compare.", 0, Paint::Plain, style));
    } else {
        text.push_str(&table(
            &columns("claim", &names(runs), Column::words),
            &rows,
            style,
        ));
    }
    text
}

fn outcomes_differ(runs: &[Run], id: &str) -> bool {
    let mut outcomes = runs.iter().flat_map(|run| {
        let verdicts = run.analysis.verdicts.iter();
        verdicts
            .filter(|verdict| verdict.id == id)
            .map(|verdict| verdict.outcome)
    });
    let first = outcomes.next();
    outcomes.any(|outcome| Some(outcome) != first)
}

fn medians(runs: &[Run], style: Style) -> String {
    let labels = in_order(runs, |run| {
        let treatments = run.analysis.treatments.iter();
        treatments
            .filter(|treatment| treatment.twin_of.is_none())
            .map(label)
            .collect()
    });
    let rows: Vec<Row> = labels
        .into_iter()
        .map(|wanted| {
            let cells = runs.iter().map(|run| median(run, &wanted));
            Row::new(std::iter::once(wanted.clone()).chain(cells).collect())
        })
        .collect();
    let metrics = in_order(runs, |run| vec![metric_words(&run.analysis.primary_metric)]);
    let mut text = heading(&format!("Medians, {}", metrics.join(" and ")), style);
    if rows.is_empty() {
        text.push_str(&paragraph(
            "No treatments to compare.",
            0,
            Paint::Plain,
            style,
        ));
    } else {
        text.push_str(&table(
            &columns("treatment", &names(runs), Column::numbers),
            &rows,
            style,
        ));
    }
    text
}

/// All levels: a short label leaves out factors that vary in one run only.
fn label(treatment: &TreatmentSummary) -> String {
    if treatment.levels.is_empty() {
        return treatment.label.clone();
    }
    let levels: Vec<String> = treatment
        .levels
        .iter()
        .map(|(factor, level)| format!("{factor}={level}"))
        .collect();
    levels.join(" ")
}

fn median(run: &Run, wanted: &str) -> String {
    let mut treatments = run.analysis.treatments.iter();
    match treatments.find(|one| one.twin_of.is_none() && label(one) == wanted) {
        Some(treatment) if treatment.skipped.is_some() => "skipped".to_owned(),
        Some(treatment) => words::median(treatment, &run.analysis.primary_metric, &run.analysis),
        None => format::NOTHING.to_owned(),
    }
}

/// What the runs name, each once, in the order of its first appearance.
fn in_order(runs: &[Run], names: impl Fn(&Run) -> Vec<String>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let named = runs.iter().flat_map(names);
    named.filter(|name| seen.insert(name.clone())).collect()
}
