//! Shows graded submissions as text: one line for each, then the details of each.

use toll_core::claim::model::Verdict;
use toll_core::claim::work::Difference;
use toll_core::format;
use toll_core::run::RunStatus;
use toll_document::{Column, Document, Paint, Row, heading, paragraph, paragraphs, table};
use toll_report::words;

use crate::grading::model::{
    ClaimResult, Grade, GradeReport, GradeResult, GradedClaim, GradedFile,
};

/// Formats an overview if there are several files, then each file in detail.
pub fn of_report(report: &GradeReport) -> Document {
    let overview = match report.files.len() {
        1 => Document::default(),
        _ => overview(&report.files),
    };
    let details = report.files.iter();
    let details = details.filter_map(|file| Some(detail(file, file.grade.as_ref()?)));
    Document::sections(std::iter::once(overview).chain(details))
}

fn overview(files: &[GradedFile]) -> Document {
    let title = words::plural(files.len(), "submission");
    let lines = files.iter().map(verdict);
    heading(&title) + lines.collect()
}

fn verdict(file: &GradedFile) -> Document {
    let (sign, word, paint) = sign(file.result);
    let line = format!("{sign} {}: {word}: {}", file.file, file.reason);
    paragraph(&line, 0, paint)
}

fn sign(result: GradeResult) -> (&'static str, &'static str, Paint) {
    match result {
        GradeResult::Holds => ("✔", "holds", Paint::Green),
        GradeResult::Undecided => ("?", "undecided", Paint::Yellow),
        GradeResult::Refuted => ("✘", "refuted", Paint::Red),
        GradeResult::Changed => ("✘", "changed", Paint::Red),
        GradeResult::Contradicted => ("✘", "contradicted", Paint::Red),
        GradeResult::Ungraded => ("–", "not graded", Paint::Dim),
    }
}

fn detail(file: &GradedFile, grade: &Grade) -> Document {
    let run = &grade.run;
    let title = format!("{}: {}", file.file, run.title);
    let submitted = format!(
        "submitted: {}, {}{}, {}; {}",
        words::minute(&run.created_at),
        words::plural(grade.blocks, "block"),
        match run.status {
            RunStatus::Complete => "",
            RunStatus::Unfinished => ", unfinished",
        },
        run.profile,
        words::machine_line(&run.machine)
    );
    let here = match (&grade.here, &grade.why_not_here) {
        (Some(here), _) => format!(
            "here: run {}, {}, {}; {}",
            here.run.id,
            words::minute(&here.run.created_at),
            words::plural(here.blocks, "block"),
            words::machine_line(&here.run.machine)
        ),
        (None, why) => format!("here: {}", why.as_deref().unwrap_or(format::NOTHING)),
    };
    let head = heading(&title) + paragraphs([submitted, here], 0, Paint::Plain);
    let own = "How the submitted experiment differs from yours";
    let own = differences(own, ["yours", "submitted"], &grade.experiment_differences);
    let mut sections = vec![head, claims(&grade.claims), data(grade), own];
    if let Some(here) = &grade.here {
        let columns = ["here", "submitted"];
        let work = "The runs did different work";
        sections.push(differences(work, columns, &here.work_differences));
        let machines = "How the machines differ";
        sections.push(differences(machines, columns, &here.machine_differences));
    }
    sections.push(verdict(file));
    Document::sections(sections)
}

fn claims(claims: &[GradedClaim]) -> Document {
    let columns = [
        Column::words("claim"),
        Column::words("claimed"),
        Column::words("submitted"),
        Column::words("here"),
    ];
    let row = |claim: &GradedClaim| {
        let verdict = &claim.submitted;
        let outcome =
            |one: &Verdict| format!("{} {}", words::sign(one), words::outcome(one.outcome));
        let here = claim.here.as_ref();
        let mut row = Row::new([
            verdict.id.clone(),
            words::bound(verdict),
            outcome(verdict),
            here.map_or(format::NOTHING.to_owned(), outcome),
        ]);
        row.paint = match claim.result {
            ClaimResult::Holds => Paint::Green,
            ClaimResult::Undecided => Paint::Yellow,
            ClaimResult::RefutedBySubmission | ClaimResult::RefutedHere => Paint::Red,
        };
        row.text = Some(verdict.text.clone());
        row.below.push(claim.explanation.clone());
        row
    };
    table(columns, claims.iter().map(row))
}

/// Formats the checks of the data. Failed checks have their reasons; the other checks only have
/// names.
fn data(grade: &Grade) -> Document {
    let mut text = Document::default();
    for check in grade.failed_checks() {
        let sentence = format!(
            "✘ {}: {}. This counts because {}.",
            check.id,
            check.contradictions.join("; "),
            check.reason
        );
        text += paragraph(&sentence, 0, Paint::Red);
    }
    let made = grade.checks.iter().filter(|check| check.not_made.is_none());
    let passed = made.filter(|check| check.contradictions.is_empty());
    let passed: Vec<&str> = passed.map(|check| check.id.as_str()).collect();
    if !passed.is_empty() {
        let sentence = format!("checks passed by the submitted data: {}", passed.join(", "));
        text += paragraph(&sentence, 0, Paint::Plain);
    }
    for check in &grade.checks {
        if let Some(why) = &check.not_made {
            let sentence = format!("not checked: {}: {why}", check.id);
            text += paragraph(&sentence, 0, Paint::Yellow);
        }
    }
    text
}

fn differences(title: &str, sides: [&str; 2], all: &[Difference]) -> Document {
    if all.is_empty() {
        return Document::default();
    }
    let sentences = all.iter().map(|one| {
        let values = sides.iter().zip(&one.values);
        let values: Vec<String> = values
            .map(|(side, value)| format!("{side} {value}"))
            .collect();
        format!("{}: {}", one.what, values.join("; "))
    });
    paragraph(title, 0, Paint::Bold) + paragraphs(sentences, 2, Paint::Plain)
}
