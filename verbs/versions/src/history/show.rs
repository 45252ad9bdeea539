//! `toll history show`: prints the series of a branch and their candidates.

use clap::Args;
use serde::Serialize;
use toll_core::format;
use toll_report::words::plural;
use toll_system::output;

use super::lines::PlaceArguments;
use crate::series::{Candidate, RECORDS_MIN, Series, State};

#[derive(Debug, Args)]
pub struct ShowArguments {
    #[command(flatten)]
    place: PlaceArguments,
    /// Last commit or branch to show, along first parents
    #[arg(long, value_name = "REV", default_value = "HEAD")]
    branch: String,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Document {
    series: Vec<Series>,
}

pub fn run(arguments: &ShowArguments) -> anyhow::Result<()> {
    let (_, series) = arguments.place.open()?.series(&arguments.branch)?;
    if arguments.json {
        output::json(&Document { series })
    } else {
        output::listing(&lines(&series))
    }
}

/// Formats a line for each series, under its experiment and machine, with its candidates.
fn lines(all: &[Series]) -> Vec<String> {
    let mut lines = Vec::new();
    for group in all.chunk_by(|one, next| place(one) == place(next)) {
        let (experiment, machine) = place(&group[0]);
        lines.push(format!("{experiment} on {machine}"));
        for series in group {
            let last = series.values.last().expect("a series has a value");
            lines.push(format!(
                "  {}, by {}: {}, the latest {} at {}",
                series.benchmark,
                series.metric,
                plural(series.values.len(), "commit"),
                format::value(last.median, &series.unit),
                &last.commit[..12]
            ));
            let candidates = series.candidates.iter().flat_map(candidate);
            lines.extend(candidates.map(|line| format!("  {line}")));
        }
    }
    let changed = all.iter().filter(|one| !one.candidates.is_empty());
    lines.push(format!(
        "candidates for a change: in {} of {} series",
        changed.count(),
        all.len()
    ));
    let is_short = |one: &Series| one.values.len() < RECORDS_MIN;
    if let short @ 1.. = all.iter().filter(|one| is_short(one)).count() {
        lines.push(format!(
            "{short} of them are too short: a search needs {RECORDS_MIN} commits"
        ));
    }
    lines
}

fn place(series: &Series) -> (&str, &str) {
    (&series.experiment, &series.machine)
}

/// Describes a candidate in two lines. A third line follows if one of several commits may be the
/// change.
pub fn candidate(candidate: &Candidate) -> Vec<String> {
    let state = match candidate.state {
        State::Unchecked => "candidate, not checked",
        State::Confirmed => "confirmed",
        State::Noise => "noise: compared side by side, the commits do not differ",
    };
    let (before, commit) = (&candidate.before[..12], &candidate.commit[..12]);
    let ratio = format::ratio(candidate.ratio);
    let subject: String = candidate.subject.chars().take(60).collect();
    let mut lines = vec![
        format!("  {commit} {ratio}: {state}"),
        format!("    {subject}"),
    ];
    if candidate.suspects > 1 {
        let which = plural(candidate.suspects, "commit");
        lines.push(format!(
            "    one of {which}: toll bisect {before}..{commit} finds it"
        ));
    }
    lines
}
