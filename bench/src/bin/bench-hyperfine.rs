//! `bench-hyperfine`: `toll run` side by side with hyperfine.

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use toll_bench::process::find;
use toll_bench::scratch::{Scratch, absolute, beside, interrupts};
use toll_bench::versus::measure::{Settings, run};
use toll_bench::versus::{CONDITIONS, Condition, Document, Stop, table};

/// Measures how often toll and hyperfine call two commands different, identical ones
/// among them, and how long each takes.
///
/// The table goes to standard output, progress to standard error. It wants a
/// quiet machine, and makes it a noisy one where it has to.
#[derive(Parser)]
#[command(name = "bench-hyperfine")]
struct Arguments {
    /// The program toll
    #[arg(
        long,
        value_name = "PATH",
        required_unless_present = "from",
        conflicts_with = "from"
    )]
    toll: Option<PathBuf>,
    /// The program hyperfine [default: the one in PATH]
    #[arg(long, value_name = "PATH")]
    hyperfine: Option<PathBuf>,
    /// The program bench-work [default: beside this program]
    #[arg(long, value_name = "PATH")]
    work: Option<PathBuf>,
    /// How long the shorter command takes, in milliseconds
    #[arg(long, value_name = "N", default_value_t = 10.0)]
    work_ms: f64,
    /// Identical pairs for each tool and condition [default: 100, with --quick 3]
    #[arg(long, value_name = "N")]
    identical: Option<usize>,
    /// Pairs for each tool, condition and difference [default: 24, with --quick 2]
    #[arg(long, value_name = "N")]
    different: Option<usize>,
    /// Only under these conditions [default: all]
    #[arg(long, value_name = "CONDITION")]
    condition: Vec<Condition>,
    /// Seed of the order of comparisons
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Begin no comparison after so many minutes [default: 120, with --quick 3]
    #[arg(long, value_name = "N")]
    minutes: Option<f64>,
    /// A first look, in which no rate means anything
    #[arg(long, conflicts_with = "from")]
    quick: bool,
    /// Write the table (.md) and all that was measured (.json) into this directory
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Measure nothing: make the table of an earlier run's .json file anew
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match conclude(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Stop::Interrupted) => {
            tell("interrupted");
            // As the shell has it: 128 and the number of SIGINT.
            ExitCode::from(130)
        }
        Err(Stop::Failed(reason)) => {
            tell(&reason);
            ExitCode::FAILURE
        }
    }
}

/// The files come before standard output, whose reader may leave early.
fn conclude(arguments: &Arguments) -> Result<(), Stop> {
    let document = match &arguments.from {
        Some(file) => Document::read(file)?,
        None => measure(arguments)?,
    };
    if let Some(directory) = &arguments.out {
        document.write(directory)?;
    }
    match std::io::stdout().write_all(table::render(&document).as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Stop::Failed(format!("cannot write the table: {error}")))
        }
        _ => Ok(()),
    }
}

#[expect(clippy::print_stderr, reason = "progress and errors go there")]
fn tell(what: &str) {
    eprintln!("bench-hyperfine: {what}");
}

fn measure(arguments: &Arguments) -> Result<Document, Stop> {
    let directory = Scratch::make(&std::env::temp_dir(), "toll-bench-hyperfine")?;
    let settings = settings(arguments, directory.path())?;
    run(&settings, &mut tell)
}

fn settings(arguments: &Arguments, directory: &Path) -> Result<Settings, String> {
    let interrupted = interrupts()?;
    let (identical, different, minutes) = match arguments.quick {
        true => (3, 2, 3.0),
        false => (100, 24, 120.0),
    };
    let work = match &arguments.work {
        Some(work) => work.clone(),
        None => beside("bench-work")?,
    };
    let hyperfine = arguments.hyperfine.clone().or_else(|| find("hyperfine"));
    let hyperfine = hyperfine.ok_or("hyperfine is missing; name it with --hyperfine")?;
    let minutes = arguments.minutes.unwrap_or(minutes);
    let words: Vec<String> = std::env::args().collect();
    Ok(Settings {
        toll: absolute(arguments.toll.as_deref().unwrap_or(Path::new("toll")))?,
        hyperfine: absolute(&hyperfine)?,
        work: absolute(&work)?,
        work_ms: arguments.work_ms,
        identical: arguments.identical.unwrap_or(identical),
        different: arguments.different.unwrap_or(different),
        conditions: match arguments.condition.as_slice() {
            [] => CONDITIONS.to_vec(),
            named => named.to_vec(),
        },
        limit: Duration::try_from_secs_f64(60.0 * minutes)
            .map_err(|error| format!("cannot run for {minutes} minutes: {error}"))?,
        seed: arguments.seed,
        directory: directory.to_owned(),
        command_line: words.join(" "),
        interrupted,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        use clap::CommandFactory;
        Arguments::command().debug_assert();
    }
}
