//! One run: first the answer to its question, then the data behind it.

use toll_core::run::RunStatus;
use toll_document::{
    Column, Document, Paint, Row, heading, notes, paragraph, paragraphs, section, table,
};

use super::{explanation, verdicts};
use crate::claim::Run;
use crate::claim::metric_words;
use crate::claim::model::{Analysis, Step};
use crate::comparison;
use crate::format;
use crate::plots::small;
use crate::twins::twins;
use crate::words;

/// Shows everything about a run.
pub fn of_run(reported: &Run) -> Document {
    let analysis = &reported.analysis;
    let mut sections = explanations(analysis);
    sections.push(if analysis.verdicts.is_empty() {
        compared(reported)
    } else {
        verdicts::of_run(reported, true)
    });
    sections.push(checks(analysis));
    sections.extend(advice_and_plot(reported));
    sections.push(section("Derived", derived(analysis)));
    sections.push(section("Steps", steps(analysis)));
    if !analysis.verdicts.is_empty() {
        sections.push(section("Treatments", treatments(reported)));
    }
    sections.push(section("Noise", twins(analysis)));
    sections.push(section("Disturbances", disturbances(analysis)));
    sections.push(caveats(analysis, true));
    sections.push(section("This run", origin(reported)));
    Document::sections(sections)
}

/// Shows the answer to a run's question; `is_quiet` leaves out notes that always apply.
pub fn result(reported: &Run, is_quiet: bool) -> Document {
    let analysis = &reported.analysis;
    let mut sections = explanations(analysis);
    sections.extend([answer(reported), checks(analysis)]);
    sections.extend(advice_and_plot(reported));
    if analysis.verdicts.is_empty() {
        sections.push(section("Noise", twins(analysis)));
    }
    sections.push(caveats(analysis, !is_quiet));
    Document::sections(sections)
}

/// The verdicts, or the comparison of a run that has no claims.
pub fn answer(reported: &Run) -> Document {
    if reported.analysis.verdicts.is_empty() {
        compared(reported)
    } else {
        verdicts::of_run(reported, false)
    }
}

fn explanations(analysis: &Analysis) -> Vec<Document> {
    let explanations = analysis.explanations.iter();
    explanations.map(explanation).collect()
}

fn checks(analysis: &Analysis) -> Document {
    let body = verdicts::checks(&analysis.checks);
    section("Checks of the machine and the instrument", body)
}

fn compared(reported: &Run) -> Document {
    let run = &reported.stored.run;
    let mut text = heading(&run.title);
    text += treatments(reported);
    text
}

fn advice_and_plot(reported: &Run) -> [Document; 2] {
    let advice = section("What to do", advice_lines(reported));
    [advice, small::of_run(&reported.analysis)]
}

fn advice_lines(run: &Run) -> Document {
    let each = run.analysis.advice.iter().map(|advice| {
        let topic = if advice.decided {
            advice.topic.clone()
        } else {
            format!("{} (undecided)", advice.topic)
        };
        let text = paragraph(&topic, 0, Paint::Dim) + paragraph(&advice.text, 2, Paint::Bold);
        let evidence = advice.evidence.iter();
        let evidence = evidence.map(|evidence| format!("· {evidence}"));
        text + paragraphs(evidence, 4, Paint::Plain)
    });
    Document::sections(each)
}

/// Where, when and how the run was made.
fn origin(reported: &Run) -> Document {
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
    paragraphs(lines, 0, Paint::Dim)
}

fn treatments(reported: &Run) -> Document {
    comparison::table(reported).document().or("No treatments.")
}

fn derived(analysis: &Analysis) -> Document {
    let columns = [Column::words("quantity"), Column::numbers("value")];
    let rows = analysis.derived.iter().map(|derived| {
        let value = derived.estimate.as_ref().map_or_else(
            || format::NOTHING.to_owned(),
            |value| format::derived(value, &derived.unit),
        );
        let mut row = Row::new([format!("{} ({})", derived.text, derived.id), value]);
        row.below.extend(derived.note.clone());
        for (name, value) in &derived.details {
            row.below
                .push(format!("{name} {}", format::significant(*value)));
        }
        row
    });
    table(columns, rows)
}

fn steps(analysis: &Analysis) -> Document {
    let columns = || {
        [
            Column::words("step"),
            Column::numbers("where"),
            Column::numbers("before"),
            Column::numbers("after"),
            Column::numbers("rise"),
        ]
    };
    let tables = analysis.staircases.iter().map(|staircase| {
        let row = |step: &Step| {
            let mut row = Row::new([
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
        let rows = staircase.steps.iter().map(row);
        let title = words::staircase(staircase);
        paragraph(&title, 0, Paint::Dim) + table(columns(), rows)
    });
    Document::sections(tables)
}

fn disturbances(analysis: &Analysis) -> Document {
    let columns = [
        Column::words("disturbance"),
        Column::numbers("trials affected"),
        Column::numbers("median"),
        Column::numbers("largest"),
    ];
    let rows = analysis.disturbances.iter().map(|disturbance| {
        let unit = words::disturbance_unit(&disturbance.name);
        let mut row = Row::new([
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
    });
    table(columns, rows)
}

/// The warnings, and with `has_notes` also the notes that always apply.
fn caveats(analysis: &Analysis, has_notes: bool) -> Document {
    let mut body = notes(&analysis.warnings, Paint::Yellow);
    if has_notes {
        body += notes(&analysis.notes, Paint::Dim);
    }
    let title = if analysis.warnings.is_empty() {
        "Notes"
    } else {
        "Warnings"
    };
    section(title, body)
}
