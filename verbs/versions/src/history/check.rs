//! `toll history check`: measures both sides of each candidate.

use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use toll_core::claim::ALPHA;
use toll_driver::listen;
use toll_driver::measuring_lock;
use toll_driver::stores;
use toll_report::words::plural;
use toll_system::{Failure, exit_code_of, output};

use super::lines::{Place, PlaceArguments};
use super::show::candidate as shown;
use crate::bisect::{BisectArguments, compare_ends, show::ratio};
use crate::search::Effect;
use crate::series::{Candidate, Check, Line, Series, State};

/// Maximum number of benchmarks that an error names.
const NAMED_MAX: usize = 5;

#[derive(Debug, Args)]
pub struct CheckArguments {
    /// Command to measure, with {tree} for the directory of a commit
    command: String,
    /// Command that builds a commit, run in its directory by sh
    #[arg(long, value_name = "COMMAND")]
    build: Option<String>,
    /// Benchmark that the command belongs to; needed if there are several benchmarks
    #[arg(long, value_name = "LABEL")]
    benchmark: Option<String>,
    /// Metric to compare; needed if the benchmark has several metrics
    #[arg(long, value_name = "NAME")]
    metric: Option<String>,
    /// Last commit or branch to check, along first parents
    #[arg(long, value_name = "REV", default_value = "HEAD")]
    branch: String,
    /// Fail if another run is measuring on this machine, instead of waiting for its end
    #[arg(long)]
    no_wait: bool,
    #[command(flatten)]
    place: PlaceArguments,
}

pub fn run(arguments: &CheckArguments, store: &Path) -> anyhow::Result<ExitCode> {
    let place = arguments.place.open()?;
    let (_, all) = place.series(&arguments.branch)?;
    let series = chosen(arguments, &all)?;
    let open = unchecked(&series);
    let measuring = |candidate: &Candidate| BisectArguments {
        range: (candidate.before.clone(), candidate.commit.clone()),
        command: arguments.command.clone(),
        tree: arguments.place.tree.clone(),
        build: arguments.build.clone(),
        kernel: false,
        metric: Some(series[0].metric.clone()),
        no_wait: arguments.no_wait,
    };
    let Some(first) = open.first() else {
        output::line("nothing to check: no candidate is open")?;
        return Ok(ExitCode::SUCCESS);
    };
    measuring(first).check()?;
    let _lock = measuring_lock::take_or_wait(!arguments.no_wait, "leave out --no-wait to wait")?;
    let interrupt = listen()?;
    let mut store = stores::open_store(store)?;
    // Error of each check (Bonferroni): the probability of any wrong verdict is ALPHA.
    let error = ALPHA / open.len() as f64;
    for candidate in &open {
        let version = |hash: &str| place.repository.version(hash);
        let versions = [
            version(&candidate.before).map_err(anyhow::Error::msg)?,
            version(&candidate.commit).map_err(anyhow::Error::msg)?,
        ];
        let measuring = measuring(candidate);
        let effect = compare_ends(
            &measuring,
            &place.repository,
            &versions,
            error,
            &mut store,
            &interrupt,
        )?;
        match (effect, interrupt.signal()) {
            (_, Some(signal)) => {
                output::note("interrupted; run the same command again to continue");
                return Ok(exit_code_of(signal));
            }
            (None, None) => anyhow::bail!("cannot compare the commits: nothing was measured"),
            (Some(effect), None) => keep(&place, series[0], candidate, &effect)?,
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Selects the series of the benchmark to check, one for each machine.
fn chosen<'a>(arguments: &CheckArguments, all: &'a [Series]) -> anyhow::Result<Vec<&'a Series>> {
    let is_wanted =
        |wanted: &Option<String>, name: &str| wanted.as_ref().is_none_or(|wanted| wanted == name);
    let series: Vec<&Series> = all
        .iter()
        .filter(|one| is_wanted(&arguments.benchmark, &one.benchmark))
        .filter(|one| is_wanted(&arguments.metric, &one.metric))
        .collect();
    let name = |one: &Series| format!("{} by {}", one.benchmark, one.metric);
    let key = |one: &Series| (one.experiment.clone(), name(one));
    match series.first() {
        Some(first) if series.iter().all(|one| key(one) == key(first)) => Ok(series),
        found => {
            let mut known: Vec<String> = all.iter().map(name).collect();
            known.sort();
            known.dedup();
            let more = known.len().saturating_sub(NAMED_MAX);
            known.truncate(NAMED_MAX);
            if more > 0 {
                known.push(format!("and {more} more (toll history show)"));
            }
            let what = match found {
                Some(_) => "cannot tell which benchmark the command is",
                None => "cannot find this benchmark",
            };
            Err(Failure::Usage(format!(
                "{what}: there is {}; name one with --benchmark and --metric",
                known.join("; ")
            ))
            .into())
        }
    }
}

/// The unchecked candidates of all machines, each once.
fn unchecked(series: &[&Series]) -> Vec<Candidate> {
    let mut open: Vec<Candidate> = Vec::new();
    for one in series.iter().flat_map(|one| &one.candidates) {
        let is_same =
            |other: &Candidate| (&other.before, &other.commit) == (&one.before, &one.commit);
        if one.state == State::Unchecked && !open.iter().any(is_same) {
            open.push(one.clone());
        }
    }
    open
}

/// Stores the result of a check and prints it.
fn keep(
    place: &Place,
    series: &Series,
    candidate: &Candidate,
    effect: &Effect,
) -> anyhow::Result<()> {
    let check = Check {
        before: candidate.before.clone(),
        commit: candidate.commit.clone(),
        experiment: series.experiment.clone(),
        benchmark: series.benchmark.clone(),
        metric: series.metric.clone(),
        toll_version: env!("CARGO_PKG_VERSION").into(),
        created_at: jiff::Timestamp::now().to_string(),
        ratio: effect.ratio,
        blocks: effect.blocks,
        confirmed: effect.relation.differs(),
    };
    let state = if check.confirmed {
        State::Confirmed
    } else {
        State::Noise
    };
    place.append(&Line::Check(check))?;
    let mut lines = shown(&Candidate {
        state,
        ..candidate.clone()
    });
    let blocks = plural(effect.blocks, "block");
    lines.push(format!(
        "    side by side: {} in {blocks}",
        ratio(&effect.ratio)
    ));
    output::listing(&lines)
}
