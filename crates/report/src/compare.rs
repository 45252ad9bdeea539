//! Runs side by side, never pooled: a median over two machines describes
//! neither.

use std::collections::BTreeSet;

use toll_document::{Column, Document, Paint, Row, heading, paragraph, paragraphs, table};
use toll_wire::{Role, metrics_with};

use super::run_differences::{different_work, machines};
use super::terminal::paint_of_relation;
use super::words;
use crate::claim::between::{Side, mean_of_medians};
use crate::claim::model::{Better, Replicates, RunComparison, RunRatio, TreatmentSummary, Verdict};
use crate::claim::work::Difference;
use crate::claim::{Run, metric_words};
use crate::format;

/// Compares sides. The differences in their work and machines come first, since
/// any of them may cause a difference in the results; then verdicts, medians, and
/// the ratio of each later side to the first.
pub fn compare(
    sides: &[Side],
    work: &[Difference],
    differences: &[Difference],
    pairs: &[Vec<RunComparison>],
) -> Document {
    let names = names(sides);
    let mut sections = vec![
        heading("Runs") + sides.iter().map(|side| runs(side)).collect(),
        different_work(&names, work),
        machines(&names, work, differences),
        verdicts(sides),
        medians(sides),
    ];
    sections.extend(pairs.iter().map(|pair| {
        let [new, old] = [&pair[0].new_runs, &pair[0].old_runs].map(|ids| words::runs(ids));
        changes(pair, &format!("Ratio of {new} to {old}"))
    }));
    Document::sections(sections)
}

/// The runs of a side, one line each.
fn runs(side: &Side) -> Document {
    let lines = side.runs().iter().map(|run| {
        format!(
            "run {}: {}, {}, {}",
            run.stored.run.id,
            run.stored.run.title,
            words::minute(&run.stored.run.created_at),
            words::counts(&run.analysis.verdicts)
        )
    });
    paragraphs(lines, 0, Paint::Plain)
}

/// Compares a run with its baseline: the differences in their work come first, all
/// other differences last.
pub fn over_baseline(
    baseline: &str,
    comparisons: &[RunComparison],
    work: &[Difference],
    differences: &[Difference],
) -> Document {
    let Some(first) = comparisons.first() else {
        return Document::default();
    };
    let [new, old] = [&first.new_runs, &first.old_runs].map(|ids| words::runs(ids));
    let title = format!("Ratio of {new} to baseline {baseline}, {old}");
    let mut text = Document::sections([
        different_work(&[old, new], work),
        changes(comparisons, &title),
    ]);
    if !differences.is_empty() {
        let names: Vec<&str> = differences.iter().map(|one| one.what.as_str()).collect();
        let [new, old] = [&first.new_runs, &first.old_runs].map(|ids| words::run_numbers(ids));
        let remark = format!(
            "The runs differ in {}; each may be the cause (toll compare {old} {new}).",
            names.join(", ")
        );
        text += paragraph(&remark, 0, Paint::Yellow);
    }
    text
}

/// The changes of all treatments between two sides, by the judged metrics and by the
/// CPU time and memory of commands.
fn changes(comparisons: &[RunComparison], title: &str) -> Document {
    let is_shown = |one: &&RunComparison| {
        let is_known = one.ratios.iter().any(|ratio| ratio.ratio.is_some());
        let mut beside = metrics_with(Role::Shown);
        one.is_judged || beside.any(|metric| metric.name == one.metric) && is_known
    };
    let shown: Vec<&RunComparison> = comparisons.iter().filter(is_shown).collect();
    let main = shown[0];
    let mut columns = vec![Column::words("treatment")];
    columns.extend(
        shown
            .iter()
            .map(|one| Column::numbers(&format!("change in {}", metric_words(&one.metric)))),
    );
    let rows = (0..main.ratios.len()).map(|index| changes_of(index, &shown));
    let mut text = heading(title);
    text += table(columns, rows).or("no treatment is on both sides");
    text += paragraphs(notes(&shown), 0, Paint::Dim);
    let sentence = paragraphs(sentence(main), 0, Paint::Bold);
    Document::sections([text, sentence])
}

/// One treatment by all metrics. The first metric decides the colour.
fn changes_of(index: usize, shown: &[&RunComparison]) -> Row {
    let main = &shown[0].ratios[index];
    let mut row = Row::new([main.label.clone()]);
    row.paint = paint_of_relation(main.relation);
    row.below.extend(main.reason.clone());
    for one in shown {
        let ratio = &one.ratios[index];
        let change = words::change_between_runs(ratio, &one.described, one.is_judged);
        row.cells.push(change.into());
        if let Some(reason) = ratio
            .reason
            .as_ref()
            .filter(|_| ratio.reason != main.reason)
        {
            row.below
                .push(format!("{}: {reason}", metric_words(&one.metric)));
        }
    }
    row
}

/// Notes on the changes: margins, and treatments that only one side has.
fn notes(shown: &[&RunComparison]) -> Vec<String> {
    let mut notes = Vec::new();
    for one in shown.iter().filter(|one| one.is_judged) {
        let name = metric_words(&one.metric);
        let margin = words::margin_between_runs(one);
        notes.push(match shown.iter().filter(|one| one.is_judged).count() {
            1 => margin,
            _ => format!("{name}: {margin}"),
        });
        if one.described.better == Better::Neither {
            notes.push(format!("neither more nor less of {name} is better"));
        }
    }
    for (which, labels) in [("new", &shown[0].only_new), ("old", &shown[0].only_old)] {
        if !labels.is_empty() {
            let runs = match which {
                "new" => &shown[0].new_runs,
                _ => &shown[0].old_runs,
            };
            let runs = if runs.len() == 1 { "run" } else { "runs" };
            notes.push(format!("only in the {which} {runs}: {}", labels.join(", ")));
        }
    }
    notes
}

/// Puts the largest decided change, or the only ratio, into a sentence.
fn sentence(comparison: &RunComparison) -> Option<String> {
    let known = |one: &&RunRatio| one.ratio.is_some();
    let size = |one: &RunRatio| one.ratio.map_or(0.0, |ratio| ratio.value.ln().abs());
    let decided = comparison
        .ratios
        .iter()
        .filter(known)
        .filter(|one| one.relation.differs() || comparison.ratios.len() == 1);
    let largest = decided.max_by(|a, b| size(a).total_cmp(&size(b)))?;
    let [new, old] = largest.counts;
    let replicates = match comparison.replicates {
        Replicates::Trials => "trials",
        Replicates::Sessions => "runs",
    };
    let [new_runs, old_runs] =
        [&comparison.new_runs, &comparison.old_runs].map(|ids| words::runs(ids));
    Some(words::sentence(
        [&format!("{} in {new_runs}", largest.label), &old_runs],
        (&comparison.metric, &comparison.described),
        (largest.relation, largest.ratio.as_ref()?),
        &format!("{new} and {old} {replicates}"),
    ))
}

fn names(sides: &[Side]) -> Vec<String> {
    sides.iter().map(|side| words::runs(&side.ids())).collect()
}

fn columns(first: &str, names: &[String], column: fn(&str) -> Column) -> Vec<Column> {
    let named = names.iter().map(|name| column(name));
    std::iter::once(Column::words(first)).chain(named).collect()
}

fn verdicts(sides: &[Side]) -> Document {
    let ids = in_order(sides, |run| {
        let verdicts = run.analysis.verdicts.iter();
        verdicts.map(|verdict| verdict.id.clone()).collect()
    });
    let rows = ids.into_iter().map(|id| {
        let cells = sides.iter().map(|side| verdict_cell(side, &id));
        let mut row = Row::new(std::iter::once(id.clone()).chain(cells));
        if outcomes_differ(sides, &id) {
            row.paint = Paint::Yellow;
            row.below.push("the verdicts differ".to_owned());
        }
        row
    });
    let columns = columns("claim", &names(sides), Column::words);
    heading("Verdicts") + table(columns, rows).or("No claims to compare.")
}

fn verdict<'a>(run: &'a Run, id: &str) -> Option<&'a Verdict> {
    let mut verdicts = run.analysis.verdicts.iter();
    verdicts.find(|verdict| verdict.id == id)
}

/// A side's verdict on a claim; for several runs, one sign each.
fn verdict_cell(side: &Side, id: &str) -> String {
    let [only] = side.runs() else {
        let verdicts = side.runs().iter().map(|run| verdict(run, id));
        let signs = verdicts.map(|one| one.map_or(format::NOTHING, words::sign));
        return signs.collect::<Vec<_>>().join(" ");
    };
    let Some(verdict) = verdict(only, id) else {
        return format::NOTHING.to_owned();
    };
    let sign = words::sign(verdict);
    match verdict.measured {
        Some(_) => format!("{sign} {}", format::measured(verdict)),
        None => format!("{sign} {}", words::state(verdict)),
    }
}

fn outcomes_differ(sides: &[Side], id: &str) -> bool {
    let runs = sides.iter().flat_map(Side::runs);
    let mut outcomes = runs.filter_map(|run| Some(verdict(run, id)?.outcome));
    let first = outcomes.next();
    outcomes.any(|outcome| Some(outcome) != first)
}

fn medians(sides: &[Side]) -> Document {
    let labels = in_order(sides, |run| {
        let treatments = run.analysis.treatments.iter();
        treatments
            .filter(|treatment| treatment.twin_of.is_none())
            .map(label)
            .collect()
    });
    let rows = labels.into_iter().map(|wanted| {
        let cells = sides.iter().map(|side| median(side, &wanted));
        Row::new(std::iter::once(wanted.clone()).chain(cells))
    });
    let metrics = in_order(sides, |run| {
        vec![metric_words(&run.analysis.primary_metric)]
    });
    let columns = columns("treatment", &names(sides), Column::numbers);
    let mut body = table(columns, rows).or("No treatments to compare.");
    if sides.iter().any(|side| side.runs().len() > 1) {
        let note = "for several runs: the geometric mean and the range of their medians";
        body += paragraph(note, 0, Paint::Dim);
    }
    heading(&format!("Medians, {}", metrics.join(" and "))) + body
}

/// The label with all levels. A short label would leave out factors that vary in only one run.
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

fn median(side: &Side, wanted: &str) -> String {
    let found = side.runs().iter().filter_map(|run| {
        let mut treatments = run.analysis.treatments.iter();
        let is_wanted = |one: &&TreatmentSummary| one.twin_of.is_none() && label(one) == wanted;
        Some((*run, treatments.find(is_wanted)?))
    });
    let found: Vec<(&Run, &TreatmentSummary)> = found.collect();
    let is_skipped = |(_, treatment): &(&Run, &TreatmentSummary)| treatment.skipped.is_some();
    match found.as_slice() {
        [] => format::NOTHING.to_owned(),
        all if all.iter().all(is_skipped) => "skipped".to_owned(),
        [(run, treatment)] if side.runs().len() == 1 => {
            words::median(treatment, &run.analysis.primary_metric, &run.analysis, true)
        }
        all => {
            let (run, _) = all[0];
            let metric = &run.analysis.primary_metric;
            let unit = words::unit(&run.analysis.metrics, metric);
            let treatments: Vec<_> = all.iter().map(|(_, treatment)| *treatment).collect();
            mean_of_medians(&treatments, metric).map_or_else(
                || format::NOTHING.to_owned(),
                // Brackets would suggest an interval.
                |mean| {
                    let (value, ends) = format::interval_parts(&mean, unit);
                    format!("{value} ({})", ends.trim_matches(['[', ']']))
                },
            )
        }
    }
}

/// The names from all runs, each once, in the order of first appearance.
fn in_order(sides: &[Side], names: impl Fn(&Run) -> Vec<String>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let runs = sides.iter().flat_map(Side::runs);
    let named = runs.flat_map(|run| names(run));
    named.filter(|name| seen.insert(name.clone())).collect()
}
