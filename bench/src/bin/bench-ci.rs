//! `bench-ci`: shows how often `toll ci` fails a change that is slower, and one that is not.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use toll_bench::ci::{Case, Outcomes, Record, simulate};
use toll_core::spec::trees::REGRESSION_LIMIT;
use toll_host::store::exchange::RunDocument;
use toll_stats::median;

/// Simulates calls of toll ci with the noise of a recorded run. Nothing is measured.
#[derive(Parser)]
#[command(name = "bench-ci")]
struct Arguments {
    /// A run of one command under three names, written by toll export --json
    record: PathBuf,
    /// Simulated calls of each case
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Seed of all random draws
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Write ci.md into this directory
    #[arg(long, value_name = "DIR", default_value = "bench/results")]
    out: PathBuf,
}

fn main() -> ExitCode {
    match bench(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            tell(&why);
            ExitCode::FAILURE
        }
    }
}

fn bench(arguments: &Arguments) -> Result<(), String> {
    let cannot =
        |verb: &str, path: &Path, why: String| format!("cannot {verb} {}: {why}", path.display());
    let text = std::fs::read_to_string(&arguments.record)
        .map_err(|error| cannot("read", &arguments.record, error.to_string()))?;
    let run = RunDocument::parse(&text)
        .map_err(|error| cannot("read", &arguments.record, error.to_string()))?;
    let record = Record::from_run(&run)?;
    let (time_ns, noise) = record.time_and_noise();
    let mut table = format!(
        "# Calls of toll ci with a known truth\n\n`make bench-ci`: {} simulated calls per line, seed {}. \
         The noise is that of {} blocks of a command that takes {:.1} ms\n({}); the ratio of two runs in a \
         block scatters by {:.1} % (from its quartiles). Times include the trials and\n\
         everything between them, but no builds. The limit is 3 %.\n\n\
         | commands | change in one | time budget | failed | 95 % of calls end within | blocks, median |\n\
         |--:|--:|--:|--:|--:|--:|\n",
        arguments.runs,
        arguments.seed,
        record.blocks(),
        time_ns / 1e6,
        run.run.machine.cpu_model,
        1e2 * noise,
    );
    let cases = [
        (1, 0.0),
        (1, 0.03),
        (1, 0.05),
        (1, 0.1),
        (20, 0.0),
        (20, 0.05),
        (20, 0.1),
    ];
    for (benchmarks, change) in cases {
        for time_budget_s in [60.0, 600.0] {
            let case = Case {
                benchmarks,
                change,
                limit: REGRESSION_LIMIT,
                time_budget_s,
            };
            let outcomes = simulate(&record, case, arguments.runs as usize, arguments.seed);
            table += &row(case, outcomes);
            tell(&format!("{case:?}"));
        }
    }
    let file = arguments.out.join("ci.md");
    std::fs::create_dir_all(&arguments.out)
        .and_then(|()| std::fs::write(&file, table))
        .map_err(|error| cannot("write", &file, error.to_string()))
}

fn row(case: Case, mut outcomes: Outcomes) -> String {
    outcomes.seconds.sort_by(f64::total_cmp);
    let most = outcomes.seconds[(outcomes.runs * 95).div_ceil(100) - 1];
    format!(
        "| {} | {:.0} % | {:.0} s | {:.1} % | {:.0} s | {:.0} |\n",
        case.benchmarks,
        1e2 * case.change,
        case.time_budget_s,
        1e2 * outcomes.failed as f64 / outcomes.runs as f64,
        most,
        median(&outcomes.blocks)
    )
}

#[expect(clippy::print_stderr, reason = "progress and errors go there")]
fn tell(what: &str) {
    eprintln!("bench-ci: {what}");
}
