//! `toll prices`: measures and shows the price list of this machine.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use toll_driver::stores;
use toll_driver::{Launched, Purpose, command_line};
use toll_driver::{differences, price_lists};
use toll_host::store::Store;
use toll_host::store::exchange::{DOCUMENT_BYTES_MAX, RunDocument};
use toll_host::trial::SessionEnd;
use toll_report::{csv, html, terminal};
use toll_system::{Failure, exit_code_of, output};

use crate::claim::Run;
use crate::claim::between::{Side, compare_sides};
use crate::claim::model::Price;
use crate::spec::{Experiment, ROW, Row};

const NOTES: &str = "\
Examples:
  toll prices
  toll prices --group io_uring --group memory
  toll prices --last --html prices.html --csv prices.csv
  toll prices --json >here.json
  toll prices --last --compare there.json

Trials are randomised in blocks like those of any experiment, and the run is stored: toll list and
toll show name it `prices`, and toll trace prices calls by it. With 16 blocks, an interval reaches
from the fourth smallest to the fourth largest of 16 trials, which covers at least 95 %.";

/// Seconds after which no new block begins if the user sets the number of blocks.
const BUDGET_OF_BLOCKS_S: f64 = 3600.0;

#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub(super) struct PricesArguments {
    /// Measure nothing: show the newest list of this machine in the store
    #[arg(long, conflicts_with_all = ["blocks", "quiet", "work_dir"])]
    last: bool,
    /// Measure only these groups of rows; with --last, show only these
    #[arg(long = "group", value_name = "GROUP")]
    groups: Vec<String>,
    /// Measure only these rows; with --last, show only these
    #[arg(long = "row", value_name = "ROW")]
    rows: Vec<String>,
    /// Number of blocks to measure; with 6 or more, intervals cover 95 % [default: 16]
    #[arg(short = 'r', long, value_name = "BLOCKS")]
    blocks: Option<u32>,
    /// Also list rows that are measured for other purposes
    #[arg(long, conflicts_with_all = ["groups", "rows"])]
    all: bool,
    /// Compare with a list that `toll prices --json` wrote, here or on another machine
    #[arg(long, value_name = "FILE")]
    compare: Option<PathBuf>,
    /// Print the run as one JSON document, as toll export does; with --compare, the
    /// differences and the ratios
    #[arg(long)]
    json: bool,
    /// Write the list as CSV to this file, `-` for standard output
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Write the list as one HTML page to this file, `-` for standard output
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Show no progress
    #[arg(short, long)]
    quiet: bool,
    /// Directory for work files [default: $TOLL_WORK_DIR, else
    /// $XDG_CACHE_HOME/toll/work]
    #[arg(long, value_name = "DIR")]
    work_dir: Option<PathBuf>,
}

pub(super) fn run(arguments: &PricesArguments, store: &Path) -> anyhow::Result<ExitCode> {
    let experiment = chosen(arguments)?;
    // A missing file fails here, before a minute of measuring.
    let other = arguments.compare.as_deref().map(read).transpose()?;
    let (run, ended) = if arguments.last {
        (last(arguments, store)?, Ok(ExitCode::SUCCESS))
    } else {
        measure(arguments, experiment, store)?
    };
    show(arguments, &run, other.as_ref())?;
    ended
}

/// Returns the experiment with the rows and blocks of the command line.
fn chosen(arguments: &PricesArguments) -> anyhow::Result<Experiment> {
    let mut experiment = price_lists::experiment()?;
    choose_rows(&mut experiment, arguments)?;
    if let Some(blocks) = arguments.blocks {
        experiment.run.min_blocks = blocks;
        experiment.run.max_blocks = blocks;
        // The user set the number of blocks, so the time budget must not cut it.
        experiment.run.time_budget_s = experiment.run.time_budget_s.max(BUDGET_OF_BLOCKS_S);
    }
    experiment.check().map_err(Failure::Usage)?;
    Ok(experiment)
}

impl PricesArguments {
    fn names_some(&self) -> bool {
        !(self.groups.is_empty() && self.rows.is_empty())
    }

    /// Whether to show the line of a price.
    fn is_shown(&self, price: &Price) -> bool {
        match &price.group {
            _ if self.rows.contains(&price.name) => true,
            Some(group) => !self.names_some() || self.groups.contains(group),
            None => self.all,
        }
    }
}

/// Keeps the named rows, and the rows from which quantities of named groups are derived.
fn choose_rows(experiment: &mut Experiment, arguments: &PricesArguments) -> anyhow::Result<()> {
    let rows = experiment.rows.clone();
    let groups: Vec<&String> = rows.iter().filter_map(|row| row.group.as_ref()).collect();
    let names: Vec<&String> = rows.iter().map(|row| &row.name).collect();
    require_known("group", &arguments.groups, groups)?;
    require_known("row", &arguments.rows, names)?;
    if !arguments.names_some() {
        return Ok(());
    }
    let is_listed = |group: &Option<String>| {
        let group = group.as_ref();
        group.is_some_and(|group| arguments.groups.contains(group))
    };
    experiment
        .derived
        .retain(|derived| is_listed(&derived.group));
    let derived = experiment.derived.clone();
    let is_needed = |row: &Row| {
        let mut sides = derived.iter().flat_map(|one| one.kind.sides());
        sides.any(|side| side.get(ROW).is_some_and(|level| level.text == row.name))
    };
    let kept = rows.iter().filter(|row| {
        arguments.rows.contains(&row.name) || is_listed(&row.group) || is_needed(row)
    });
    price_lists::keep_rows(experiment, kept.map(|row| row.name.as_str()))
}

fn require_known(what: &str, wanted: &[String], mut known: Vec<&String>) -> anyhow::Result<()> {
    let Some(wrong) = wanted.iter().find(|name| !known.contains(name)) else {
        return Ok(());
    };
    known.dedup();
    let known: Vec<String> = known.iter().map(|name| format!("{name:?}")).collect();
    bail!(Failure::Usage(format!(
        "cannot list {what} {wrong:?}: there is no such {what}; choose one of {}",
        known.join(", ")
    )));
}

/// Measures the chosen rows. Returns the run and how it ended, since an incomplete run is also kept
/// and shown.
fn measure(
    arguments: &PricesArguments,
    experiment: Experiment,
    store: &Path,
) -> anyhow::Result<(Run, anyhow::Result<ExitCode>)> {
    let mut store = stores::open_store(store)?;
    let purpose = if arguments.quiet {
        Purpose::Aside
    } else {
        Purpose::Shown { number: 1, of: 1 }
    };
    let how = (command_line(), purpose);
    let work_dir = arguments.work_dir.as_deref();
    let Launched { run_id, end } = price_lists::measure(&mut store, experiment, work_dir, how)?;
    let run = Run::from(store.load(run_id)?);
    if run.stored.trials.is_empty() {
        end?;
        bail!("cannot show prices: none was measured");
    }
    let ended = match end {
        Ok(SessionEnd::Complete(_)) => Ok(ExitCode::SUCCESS),
        Ok(SessionEnd::Interrupted(signal)) => {
            output::note("interrupted; the prices measured so far are kept and shown");
            Ok(exit_code_of(signal))
        }
        Err(failure) => Err(failure),
    };
    Ok((run, ended))
}

fn last(arguments: &PricesArguments, store: &Path) -> anyhow::Result<Run> {
    let store = Store::read(store)?;
    let here = price_lists::here(arguments.work_dir.as_deref())?;
    let newest = price_lists::newest_list(&store, &here)?.ok_or_else(|| {
        Failure::Usage(
            "cannot show prices: the store has no list of this machine and kernel; run `toll \
             prices`"
                .into(),
        )
    })?;
    Ok(newest)
}

/// Reads a price list of another machine, or an earlier list of this machine.
fn read(path: &Path) -> anyhow::Result<Run> {
    let bytes = output::read_file(path, DOCUMENT_BYTES_MAX)?;
    let stored = RunDocument::parse(&String::from_utf8_lossy(&bytes))
        .map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))?;
    let run = Run::from(stored);
    if run.analysis.prices.is_empty() {
        Err(Failure::Usage(format!(
            "cannot compare with {}: its run of {} has no prices; write them with `toll prices \
             --json`",
            path.display(),
            run.stored.run.experiment
        ))
        .into())
    } else {
        Ok(run)
    }
}

fn show(arguments: &PricesArguments, run: &Run, other: Option<&Run>) -> anyhow::Result<()> {
    let is_shown = |price: &Price| arguments.is_shown(price);
    if let Some(path) = &arguments.csv {
        output::write_file(path, csv::prices(run, &is_shown).as_bytes())?;
    }
    if let Some(path) = &arguments.html {
        output::write_file(path, html::page(std::slice::from_ref(run))?.as_bytes())?;
    }
    let is_document = |path: &Option<PathBuf>| path.as_ref().is_some_and(|p| p.as_os_str() == "-");
    let compared = other.map(|other| {
        let sides = [run, other].map(Side::from);
        let mut differences = differences::confounders(&sides);
        differences.retain(|difference| difference.what != "date");
        let comparison = compare_sides(&sides[0], &sides[1], &[]).swap_remove(0);
        (other, differences, comparison)
    });
    if arguments.json {
        if let Some((_, differences, comparison)) = &compared {
            let both = serde_json::json!({ "differences": differences, "comparison": comparison });
            return output::json(&both);
        }
        return output::json(&RunDocument::new(run.stored.clone(), run.analysis.clone()));
    }
    if is_document(&arguments.csv) || is_document(&arguments.html) {
        return Ok(());
    }
    output::result(&match &compared {
        None => terminal::prices(run, &is_shown),
        Some((other, differences, comparison)) => {
            terminal::prices_compared(run, other, differences, comparison)
        }
    })
}
