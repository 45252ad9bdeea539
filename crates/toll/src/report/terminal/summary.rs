//! Everything about one run, section by section.

use super::text::{Column, Paint, Row, heading, paragraph, table};
use super::{Style, advice_lines, verdicts};
use crate::claim::Run;
use crate::claim::model::{Analysis, Relation, Step, TreatmentSummary};
use crate::format;
use crate::report::words;
use crate::store::RunStatus;

pub fn of_run(reported: &Run, style: Style) -> String {
    let analysis = &reported.analysis;
    let mut sections = results(reported, style);
    sections.push(section("Derived", &derived(analysis, style), style));
    sections.push(section("Steps", &steps(analysis, style), style));
    if !analysis.verdicts.is_empty() {
        sections.push(verdicts::in_full(reported, style));
    }
    if !analysis.advice.is_empty() {
        sections.push(section("Advice", &advice_lines(reported, style), style));
    }
    sections.push(section(
        "Disturbances",
        &disturbances(analysis, style),
        style,
    ));
    sections.push(section("Warnings", &warnings(analysis, style), style));
    joined(sections)
}

/// What answers the question of a comparison of commands.
pub fn brief(reported: &Run, style: Style) -> String {
    let mut sections = results(reported, style);
    sections.push(section(
        "Warnings",
        &warnings(&reported.analysis, style),
        style,
    ));
    joined(sections)
}

fn results(reported: &Run, style: Style) -> Vec<String> {
    let analysis = &reported.analysis;
    vec![
        header(reported, style),
        section("Treatments", &treatments(analysis, style), style),
        section("Comparisons", &comparisons(analysis, style), style),
        section("Noise", &noise(analysis, style), style),
    ]
}

fn joined(mut sections: Vec<String>) -> String {
    sections.retain(|section| !section.is_empty());
    sections.join("\n")
}

/// A headed section, or nothing where there is nothing.
fn section(title: &str, body: &str, style: Style) -> String {
    if body.is_empty() {
        String::new()
    } else {
        format!("{}{body}", heading(title, style))
    }
}

fn header(reported: &Run, style: Style) -> String {
    let run = &reported.stored.run;
    let mut text = heading(&run.title, style);
    text.push_str(&paragraph(&run.question, 0, Paint::Plain, style));
    let origin = if run.imported { ", imported" } else { "" };
    let status = match run.status {
        RunStatus::Complete => "complete",
        RunStatus::Unfinished => "unfinished",
    };
    let stopped = run
        .stop_reason
        .as_ref()
        .map_or_else(String::new, |why| format!(": {why}"));
    let mut lines = vec![
        format!(
            "run {} ({}){origin}, {} profile, seed {}",
            run.id, run.uid, run.profile, run.seed
        ),
        format!(
            "{}, {status}{stopped}, {}",
            words::minute(&run.created_at),
            words::plural(reported.analysis.blocks, "block")
        ),
        words::machine_line(&run.machine),
    ];
    lines.extend(reported.analysis.guests.iter().map(words::guest_line));
    lines.push(format!("toll {}: {}", run.toll_version, run.command_line));
    for line in lines {
        text.push_str(&paragraph(&line, 0, Paint::Dim, style));
    }
    text
}

fn treatments(analysis: &Analysis, style: Style) -> String {
    if analysis.treatments.is_empty() {
        return String::new();
    }
    let columns = [
        Column::words("treatment"),
        Column::numbers("trials"),
        Column::numbers(&format!("median {}", analysis.primary_metric)),
    ];
    let rows: Vec<Row> = analysis
        .treatments
        .iter()
        .map(|one| treatment(one, analysis))
        .collect();
    table(&columns, &rows, style)
}

fn treatment(treatment: &TreatmentSummary, analysis: &Analysis) -> Row {
    let mut row = Row::new(vec![
        treatment.label.clone(),
        words::trials(treatment),
        words::median(treatment, analysis),
    ]);
    if let Some(reason) = &treatment.skipped {
        row.paint = Paint::Dim;
        row.below.push(format!("skipped: {reason}"));
    }
    if let Some(failure) = &treatment.first_failure {
        row.below.push(format!("first failure: {failure}"));
    }
    row.below.extend(treatment.notes.iter().cloned());
    row
}

fn noise(analysis: &Analysis, style: Style) -> String {
    if analysis.twins.is_empty() {
        return String::new();
    }
    let columns = [
        Column::words("A/A twin"),
        Column::words("metric"),
        Column::numbers("twin over original"),
        Column::numbers("band"),
    ];
    let rows: Vec<Row> = analysis
        .twins
        .iter()
        .map(|twin| {
            Row::new(vec![
                twin.label.clone(),
                twin.metric.clone(),
                format::ratio_interval(&twin.ratio),
                format!("±{}", format::percent(twin.band)),
            ])
        })
        .collect();
    table(&columns, &rows, style)
}

fn derived(analysis: &Analysis, style: Style) -> String {
    if analysis.derived.is_empty() {
        return String::new();
    }
    let columns = [Column::words("quantity"), Column::numbers("value")];
    let rows: Vec<Row> = analysis
        .derived
        .iter()
        .map(|derived| {
            let value = derived.estimate.as_ref().map_or_else(
                || format::NOTHING.to_owned(),
                |value| format::derived(value, &derived.unit),
            );
            let mut row = Row::new(vec![format!("{} ({})", derived.text, derived.id), value]);
            row.below.extend(derived.note.clone());
            for (name, value) in &derived.details {
                row.below
                    .push(format!("{name} {}", format::significant(*value)));
            }
            row
        })
        .collect();
    table(&columns, &rows, style)
}

fn steps(analysis: &Analysis, style: Style) -> String {
    let columns = [
        Column::words("step"),
        Column::numbers("where"),
        Column::numbers("before"),
        Column::numbers("after"),
        Column::numbers("rise"),
    ];
    let tables = analysis.staircases.iter().map(|staircase| {
        let row = |step: &Step| {
            let mut row = Row::new(vec![
                step.text.clone(),
                format::derived(&step.at, &staircase.factor_unit),
                format::value(step.before.value, &staircase.unit),
                format::value(step.after.value, &staircase.unit),
                format::ratio(step.rise),
            ]);
            let cache = words::nearest_cache(step.nearest_cache.as_ref());
            row.below.push(format!("nearest cache: {cache}"));
            row
        };
        let rows: Vec<Row> = staircase.steps.iter().map(row).collect();
        let title = words::staircase(staircase);
        paragraph(&title, 0, Paint::Dim, style) + &table(&columns, &rows, style)
    });
    tables.collect::<Vec<String>>().join("\n")
}

fn comparisons(analysis: &Analysis, style: Style) -> String {
    let Some(first) = analysis.comparisons.first() else {
        return String::new();
    };
    let reference = words::treatment_label(analysis, first.reference);
    let mut text = paragraph(&format!("over {reference}"), 0, Paint::Dim, style);
    let columns = [
        Column::words("treatment"),
        Column::words("metric"),
        Column::numbers("ratio"),
        Column::words("which is"),
    ];
    let rows: Vec<Row> = analysis
        .comparisons
        .iter()
        .map(|comparison| {
            let mut row = Row::new(vec![
                words::treatment_label(analysis, comparison.treatment),
                comparison.metric.clone(),
                format::ratio_interval(&comparison.ratio),
                words::relation(comparison.relation).to_owned(),
            ]);
            row.paint = paint(comparison.relation);
            row
        })
        .collect();
    text.push_str(&table(&columns, &rows, style));
    text
}

/// The colour in which a relation is shown.
pub fn paint(relation: Relation) -> Paint {
    match relation {
        Relation::Better => Paint::Green,
        Relation::Worse => Paint::Red,
        Relation::Different | Relation::Same | Relation::Undecided => Paint::Plain,
    }
}

fn disturbances(analysis: &Analysis, style: Style) -> String {
    if analysis.disturbances.is_empty() {
        return String::new();
    }
    let columns = [
        Column::words("disturbance"),
        Column::numbers("trials affected"),
        Column::numbers("median"),
        Column::numbers("largest"),
    ];
    let rows: Vec<Row> = analysis
        .disturbances
        .iter()
        .map(|disturbance| {
            let unit = words::disturbance_unit(&disturbance.name);
            let mut row = Row::new(vec![
                disturbance.name.clone(),
                format!(
                    "{} of {}",
                    disturbance.trials_affected, disturbance.trials_recorded
                ),
                format::value(disturbance.median, unit),
                format::value(disturbance.maximum, unit),
            ]);
            row.below.push(disturbance.text.clone());
            row
        })
        .collect();
    table(&columns, &rows, style)
}

fn warnings(analysis: &Analysis, style: Style) -> String {
    analysis
        .warnings
        .iter()
        .map(|warning| paragraph(&format!("· {warning}"), 0, Paint::Yellow, style))
        .collect()
}
