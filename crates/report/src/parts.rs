//! Parts of the published report, where the experiment covers each, and the verdicts.

use serde::Serialize;

use super::words;
use crate::claim::Run;
use crate::spec::ReportPart;

/// One part of a report.
#[derive(Debug, Serialize)]
pub(super) struct Part {
    /// The report's statement, in our words.
    pub says: String,
    pub places: Vec<Place>,
}

/// A claim, figure, program or other place that covers a part.
#[derive(Debug, Serialize)]
pub(super) struct Place {
    pub text: String,
    /// Whether the text is the name of a claim or a program.
    pub is_name: bool,
    /// Verdict on this machine; empty if the place is not judged.
    pub verdict: String,
}

pub(super) fn of_run(run: &Run) -> Vec<Part> {
    let parts = run.stored.experiment.parts.iter();
    parts.map(|part| of_part(run, part)).collect()
}

fn of_part(run: &Run, part: &ReportPart) -> Part {
    let claims = part.claims.iter().map(|id| Place {
        text: id.clone(),
        is_name: true,
        verdict: verdict(run, id),
    });
    let shown = part
        .shown
        .iter()
        .map(|title| place(format!("“{title}”"), false));
    let programs = part.programs.iter().map(|name| place(name.clone(), true));
    let elsewhere = part.elsewhere.iter().map(|text| place(text.clone(), false));
    Part {
        says: part.says.clone(),
        places: claims
            .chain(shown)
            .chain(programs)
            .chain(elsewhere)
            .collect(),
    }
}

fn place(text: String, is_name: bool) -> Place {
    Place {
        text,
        is_name,
        verdict: String::new(),
    }
}

fn verdict(run: &Run, id: &str) -> String {
    let is_it = |one: &&crate::claim::model::Verdict| one.id == id;
    let analysis = &run.analysis;
    let judged = analysis.verdicts.iter().find(is_it);
    let judged = judged.map(|one| format!("{} {}", words::sign(one), words::state(one)));
    let checked = || {
        let check = analysis.checks.iter().find(is_it)?;
        Some(format!(
            "{} {}",
            words::symbol(check.outcome),
            words::check_state(check)
        ))
    };
    judged.or_else(checked).unwrap_or_default()
}
