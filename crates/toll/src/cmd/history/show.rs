//! `toll history show`

use clap::Args;
use serde::Serialize;

use super::PlaceArguments;
use crate::cmd::output;
use crate::format;
use crate::history::{Candidate, RECORDS_MIN, Series, State};
use crate::report::words::plural;

#[derive(Debug, Args)]
pub(super) struct ShowArguments {
    #[command(flatten)]
    place: PlaceArguments,
    /// Branch or commit up to which to show, along first parents
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

pub(super) fn run(arguments: &ShowArguments) -> anyhow::Result<()> {
    let (_, series) = arguments.place.open()?.series(&arguments.branch)?;
    match arguments.json {
        true => output::json(&Document { series }),
        false => output::listing(&series.iter().flat_map(lines).collect::<Vec<String>>()),
    }
}

fn lines(series: &Series) -> Vec<String> {
    let last = series.values.last().expect("a series has a value");
    let mut lines = vec![
        format!("{}, by {}", series.benchmark, series.metric),
        format!("  {} on {}", series.experiment, series.machine),
        format!(
            "  {}, the latest {} at {}",
            plural(series.values.len(), "commit"),
            format::value(last.median, &series.unit),
            &last.commit[..12]
        ),
    ];
    match series.candidates.as_slice() {
        [] if series.values.len() < RECORDS_MIN => lines.push(format!(
            "  changes are looked for from {RECORDS_MIN} commits on"
        )),
        [] => lines.push("  no candidate for a change".into()),
        candidates => lines.extend(candidates.iter().flat_map(candidate)),
    }
    lines
}

/// What is known of a candidate, in two lines.
pub(super) fn candidate(candidate: &Candidate) -> Vec<String> {
    let state = match candidate.state {
        State::Unchecked => "candidate, not checked",
        State::Confirmed => "confirmed",
        State::Noise => "noise: the commits were compared",
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
