//! `toll selftest`: comparisons with known answers.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clap::Args;
use serde::Serialize;
use toll_driver::progress::Steps;
use toll_driver::stores;
use toll_driver::{Launch, Purpose, WorkDirectories, launch, random_seed};
use toll_driver::{failure, measuring_lock};
use toll_host::environment::inspect;
use toll_host::store::Store;
use toll_host::trial::{SessionEnd, TimeLimit};
use toll_report::terminal;
use toll_system::{exit_code_of, output, paths};

use crate::claim::Run;
use crate::claim::model::SelftestReport;
use crate::claim::selftest::{self, Compared, Size};
use crate::run::Machine;

/// Exit status if a rate is on the wrong side of its limit.
const EXIT_OFF: u8 = 6;

#[derive(Debug, Args)]
pub(super) struct SelftestArguments {
    /// Make 200 comparisons of identical work, instead of 20 to 125, and 50 of each delay, instead
    /// of 10
    #[arg(long)]
    full: bool,
    /// Keep the runs in the store [default: only in memory]
    #[arg(long)]
    keep: bool,
    /// Seed of the order of comparisons and of their plans [default: random]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Directory for work files
    #[arg(long, value_name = "DIR")]
    work_dir: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Document<'a> {
    machine: &'a Machine,
    ok: bool,
    #[serde(flatten)]
    report: &'a SelftestReport,
}

pub(super) fn run(arguments: &SelftestArguments, store: &Path) -> anyhow::Result<ExitCode> {
    let begin = Instant::now();
    let seed = match arguments.seed {
        Some(seed) => seed,
        None => random_seed()?,
    };
    let size = if arguments.full {
        Size::FULL
    } else {
        Size::QUICK
    };
    let schedule = size.schedule(seed);
    let _lock = measuring_lock::take()?;
    let mut store = if arguments.keep {
        stores::open_store(store)?
    } else {
        Store::in_memory()?
    };
    let mut made = Vec::new();
    let mut progress = Steps::new("selftest", size.planned(&made));
    let mut trials = 0;
    let mut signal = None;
    while made.len() < size.planned(&made) {
        let index = made.len();
        progress.step(index, size.planned(&made));
        let delay_percent = schedule.get(index).copied().unwrap_or(0);
        // Each comparison has its own seed, so that comparisons do not share the order of trials.
        let own_seed = seed.wrapping_add(1 + index as u64);
        match compare(&mut store, arguments, delay_percent, own_seed)? {
            Ok((compared, count)) => {
                made.push(compared);
                trials += count;
            }
            Err(interrupted) => {
                signal = Some(interrupted);
                break;
            }
        }
    }
    progress.finish();
    let wall_s = begin.elapsed().as_secs_f64();
    let report = selftest::report(seed, size, &made, trials, wall_s);
    print(arguments, &report)?;
    Ok(match (signal, report.problems.is_empty()) {
        (Some(signal), _) => exit_code_of(signal),
        (None, true) => ExitCode::SUCCESS,
        (None, false) => ExitCode::from(EXIT_OFF),
    })
}

/// Makes one comparison. Returns the comparison with its number of trials, or the signal that
/// interrupted it.
fn compare(
    store: &mut Store,
    arguments: &SelftestArguments,
    delay_percent: u32,
    seed: u64,
) -> anyhow::Result<Result<(Compared, usize), i32>> {
    let launched = launch(
        store,
        Launch {
            experiment: selftest::experiment(delay_percent)?,
            seed,
            directories: WorkDirectories::at(arguments.work_dir.clone()),
            command_line: "toll selftest".into(),
            purpose: Purpose::Aside,
            time_limit: TimeLimit::Fixed,
        },
    );
    if let Some(signal) = launched.as_ref().err().and_then(failure::signal) {
        return Ok(Err(signal));
    }
    let launched = launched?;
    if let SessionEnd::Interrupted(signal) = launched.end? {
        return Ok(Err(signal));
    }
    let run = Run::from(store.load(launched.run_id)?);
    let compared = selftest::compared(delay_percent, &run.analysis);
    let trials = run.stored.trials.len();
    Ok(Ok((compared.map_err(anyhow::Error::msg)?, trials)))
}

fn print(arguments: &SelftestArguments, report: &SelftestReport) -> anyhow::Result<()> {
    let work = paths::work(arguments.work_dir.as_deref()).map_err(anyhow::Error::msg)?;
    let machine = inspect(&work.unchecked_path());
    if arguments.json {
        output::json(&Document {
            machine: &machine,
            ok: report.problems.is_empty() && report.made == report.planned,
            report,
        })
    } else {
        output::result(&terminal::selftest(report, &machine))
    }
}
