//! One run: first the answer to its question, then the data behind it.

use toll_core::run::RunStatus;
use toll_document::Style;
use toll_document::text::{Column, Paint, Row, Text, heading, paragraph, table, widths};

use super::paint::paint_of_relation;
use super::{explanation, verdicts};
use crate::claim::Run;
use crate::claim::metric_words;
use crate::claim::model::{Analysis, Step};
use crate::comparison;
use crate::comparison_table::ComparisonTable;
use crate::format;
use crate::plots::small;
use crate::words;

/// Shows everything about a run.
pub fn of_run(reported: &Run, style: Style) -> Text {
    let analysis = &reported.analysis;
    let mut sections = explanations(analysis, style);
    sections.push(if analysis.verdicts.is_empty() {
        compared(reported, style)
    } else {
        verdicts::of_run(reported, true, style)
    });
    sections.push(checks(analysis, style));
    sections.extend(advice_and_plot(reported, style));
    sections.push(section("Derived", derived(analysis, style), style));
    sections.push(section("Steps", steps(analysis, style), style));
    if !analysis.verdicts.is_empty() {
        sections.push(section("Treatments", treatments(reported, style), style));
    }
    sections.push(section("Noise", noise(analysis, style), style));
    sections.push(section(
        "Disturbances",
        disturbances(analysis, style),
        style,
    ));
    sections.push(caveats(analysis, true, style));
    sections.push(section("This run", origin(reported, style), style));
    Text::sections(sections)
}

/// Shows the answer to a run's question; `is_quiet` leaves out notes that always apply.
pub fn result(reported: &Run, is_quiet: bool, style: Style) -> Text {
    let analysis = &reported.analysis;
    let mut sections = explanations(analysis, style);
    sections.extend([answer(reported, style), checks(analysis, style)]);
    sections.extend(advice_and_plot(reported, style));
    if analysis.verdicts.is_empty() {
        sections.push(section("Noise", noise(analysis, style), style));
    }
    sections.push(caveats(analysis, !is_quiet, style));
    Text::sections(sections)
}

/// The verdicts, or the comparison of a run that has no claims.
pub fn answer(reported: &Run, style: Style) -> Text {
    if reported.analysis.verdicts.is_empty() {
        compared(reported, style)
    } else {
        verdicts::of_run(reported, false, style)
    }
}

fn explanations(analysis: &Analysis, style: Style) -> Vec<Text> {
    let explanations = analysis.explanations.iter();
    explanations.map(|one| explanation(one, style)).collect()
}

fn checks(analysis: &Analysis, style: Style) -> Text {
    let body = verdicts::checks(&analysis.checks, style);
    section("Checks of the machine and the instrument", body, style)
}

fn compared(reported: &Run, style: Style) -> Text {
    let run = &reported.stored.run;
    let mut text = heading(&run.title, style);
    text += treatments(reported, style);
    text
}

fn advice_and_plot(reported: &Run, style: Style) -> [Text; 2] {
    let advice = section("What to do", advice_lines(reported, style), style);
    let plot = small_plot(reported, style).map(|plot| Text::drawn(plot.trim_end()));
    [advice, plot.unwrap_or_default()]
}

fn advice_lines(run: &Run, style: Style) -> Text {
    let mut text = Text::default();
    for (index, advice) in run.analysis.advice.iter().enumerate() {
        let topic = if advice.decided {
            advice.topic.clone()
        } else {
            format!("{} (undecided)", advice.topic)
        };
        if index > 0 {
            text.gap();
        }
        text += paragraph(&topic, 0, Paint::Dim, style);
        text += paragraph(&advice.text, 2, Paint::Bold, style);
        for evidence in &advice.evidence {
            text += paragraph(&format!("· {evidence}"), 4, Paint::Plain, style);
        }
    }
    text
}

/// The first curve of a run, or its claims, as a plot of characters; `None` if
/// there is nothing to draw or no room, or if the terminal is limited to ASCII.
pub fn small_plot(run: &Run, style: Style) -> Option<String> {
    if !style.unicode {
        return None;
    }
    small::draw(&run.analysis, style.width, style.color)
}

/// A section with a heading; nothing if the body is empty.
fn section(title: &str, body: Text, style: Style) -> Text {
    if body.is_empty() {
        body
    } else {
        heading(title, style) + body
    }
}

/// Where, when and how the run was made.
fn origin(reported: &Run, style: Style) -> Text {
    let run = &reported.stored.run;
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
        run.question.clone(),
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
    lines.retain(|line| !line.is_empty());
    lines
        .iter()
        .map(|line| paragraph(line, 0, Paint::Dim, style))
        .collect()
}

/// The treatments by the run's metrics, compared with the reference.
fn treatments(reported: &Run, style: Style) -> Text {
    let table = comparison::table(reported);
    comparison_table(&table, style)
}

fn comparison_table(compared: &ComparisonTable, style: Style) -> Text {
    if compared.rows.is_empty() && !compared.is_list {
        return paragraph("No treatments.", 0, Paint::Plain, style);
    }
    let (first, others) = compared.columns.split_first().expect("a column of labels");
    let mut columns = vec![Column::words(first)];
    columns.extend(others.iter().map(|title| Column::numbers(title)));
    let mut rows: Vec<Row> = compared
        .rows
        .iter()
        .map(|one| {
            let label = format!("{} {}", one.label, one.marks).trim_end().to_owned();
            let cells = std::iter::once(label).chain(one.cells.iter().cloned());
            let mut row = Row::new(cells.collect());
            row.paint = if one.is_skipped {
                Paint::Dim
            } else {
                one.relation.map_or(Paint::Plain, paint_of_relation)
            };
            row.below.clone_from(&one.notes);
            row
        })
        .collect();
    // If the table is too wide, metrics that the user did not name give way, the last first.
    let named = columns.len() - compared.unnamed_columns;
    while columns.len() > named && widths(&columns, &rows, style).is_none() {
        columns.pop();
        rows.iter_mut()
            .for_each(|row| row.cells.truncate(columns.len()));
    }
    let sentence = compared.sentence.iter();
    let sentence: Text = sentence
        .map(|text| paragraph(text, 0, Paint::Bold, style))
        .collect();
    let table = if rows.is_empty() {
        Text::default()
    } else {
        table(&columns, &rows, style)
    };
    let notes = compared.footnotes.iter();
    let notes: Text = notes
        .map(|note| paragraph(note, 0, Paint::Dim, style))
        .collect();
    if compared.is_list {
        Text::sections([sentence, table, notes])
    } else {
        Text::sections([table + notes, sentence])
    }
}

fn noise(analysis: &Analysis, style: Style) -> Text {
    if analysis.twins.is_empty() {
        return Text::default();
    }
    let columns = [
        Column::words("A/A twin"),
        Column::words("by"),
        Column::numbers("twin over original"),
    ];
    let rows: Vec<Row> = analysis
        .twins
        .iter()
        .map(|twin| {
            Row::new(vec![
                twin.label.clone(),
                metric_words(&twin.metric),
                format::ratio_interval(&twin.ratio),
            ])
        })
        .collect();
    table(&columns, &rows, style)
}

fn derived(analysis: &Analysis, style: Style) -> Text {
    if analysis.derived.is_empty() {
        return Text::default();
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

fn steps(analysis: &Analysis, style: Style) -> Text {
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
        paragraph(&title, 0, Paint::Dim, style) + table(&columns, &rows, style)
    });
    Text::sections(tables)
}

fn disturbances(analysis: &Analysis, style: Style) -> Text {
    if analysis.disturbances.is_empty() {
        return Text::default();
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
                metric_words(&disturbance.name),
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

/// The warnings, and with `has_notes` also the notes that always apply.
fn caveats(analysis: &Analysis, has_notes: bool, style: Style) -> Text {
    let line = |text: &String, paint| paragraph(&format!("· {text}"), 0, paint, style);
    let warnings = analysis.warnings.iter().map(|one| line(one, Paint::Yellow));
    let notes = analysis.notes.iter().filter(|_| has_notes);
    let body: Text = warnings
        .chain(notes.map(|one| line(one, Paint::Dim)))
        .collect();
    let title = if analysis.warnings.is_empty() {
        "Notes"
    } else {
        "Warnings"
    };
    section(title, body, style)
}
