//! Describes the state of the store for `toll doctor`, and saves the readable runs of a damaged
//! store.

use std::path::Path;
use std::process::ExitCode;

use toll_document::plural;
use toll_driver::nearest;
use toll_host::store::{RunStatus, Store, StoreError, Survey, SurveyedRun};
use toll_system::output;

/// Maximum number of damages that are listed one by one.
const DAMAGES_MAX: usize = 5;

/// Describes the state of the store; an error describes its damage.
pub(super) fn state(store: &Path, work: &Path) -> Result<String, String> {
    match Store::survey(store) {
        Ok(survey) if !survey.is_whole => Err(damage(store, &survey)),
        Ok(_) => Ok(place(store, work)),
        Err(error) => match error.kind() {
            StoreError::Empty | StoreError::Blank => Ok(place(store, work)),
            StoreError::Damaged { what, .. } => {
                let damages = vec![what.clone()];
                let survey = Survey {
                    damages,
                    ..Survey::default()
                };
                Err(damage(store, &survey))
            }
            _ => Err(error.to_string()),
        },
    }
}

fn place(store: &Path, work: &Path) -> String {
    if toll_driver::same_device(&nearest(store), &nearest(work)) {
        format!(
            "{}; it is on the file system that the level `work` tests, so its commits between \
             trials use the same device",
            store.display()
        )
    } else {
        store.display().to_string()
    }
}

fn damage(store: &Path, survey: &Survey) -> String {
    let first = survey.damages.first().map_or("", String::as_str);
    if survey.runs.is_empty() {
        return format!(
            "{} is damaged ({first}); no run in it can be saved",
            store.display()
        );
    }
    format!(
        "{} is damaged ({first}); {}; `toll doctor --salvage FILE` copies them to a new store",
        store.display(),
        readable(survey)
    )
}

/// Says in a sentence how much can be read.
fn readable(survey: &Survey) -> String {
    let trials: usize = survey.runs.iter().map(|run| run.trials).sum();
    let samples: usize = survey.runs.iter().map(|run| run.samples).sum();
    format!(
        "{} of {} can be read, with {} and {}",
        survey.runs.len(),
        plural(survey.runs.len() + survey.lost_runs.len(), "run"),
        plural(trials, "trial"),
        plural(samples, "sample"),
    )
}

/// Copies the readable runs to a new store, and lists them.
pub(super) fn salvage(store: &Path, new: &Path, json: bool) -> anyhow::Result<ExitCode> {
    let survey = Store::salvage(store, new)?;
    if json {
        output::json(&survey)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut lines = vec![format!("{}: {}", store.display(), readable(&survey))];
    lines.extend(survey.runs.iter().map(run_line));
    let lost = survey.lost_runs.iter();
    lines.extend(lost.map(|id| format!("run {id}: lost; part of it cannot be read")));
    let damages = survey.damages.iter().take(DAMAGES_MAX);
    lines.extend(damages.map(|damage| format!("damage: {damage}")));
    if survey.damages.len() > DAMAGES_MAX {
        let more = survey.damages.len() - DAMAGES_MAX;
        lines.push(format!("damage: {more} more"));
    }
    lines.push(format!(
        "saved in {}; {} is unchanged",
        new.display(),
        store.display()
    ));
    for line in lines {
        output::line(&line)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn run_line(run: &SurveyedRun) -> String {
    let state = match run.status {
        RunStatus::Complete => "complete",
        RunStatus::Unfinished => "unfinished",
    };
    format!(
        "run {}, {} of {}: {} with {}; {state}",
        run.id,
        run.experiment,
        run.created_at,
        plural(run.trials, "trial"),
        plural(run.samples, "sample")
    )
}
