//! `bench-device`: the virtual device beside a connection of two programs.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use toll_bench::device::Document;
use toll_bench::kept::{Kept, conclude};
use toll_bench::machine::Machine;
use toll_bench::run::Stop;
use toll_bench::toll::Toll;

/// The experiment, beside the sources of this program.
const EXPERIMENT: &str = include_str!("../../device.toml");

/// Compares the virtual device with a connection of two programs, in guests.
///
/// The table goes to standard output, progress to standard error.
#[derive(Parser)]
#[command(name = "bench-device")]
struct Arguments {
    /// The program toll, with a kernel built by `toll kernel build`
    #[arg(long, value_name = "PATH", required_unless_present = "from")]
    toll: Option<PathBuf>,
    /// Blocks; fewer than 6 decide nothing
    #[arg(long, value_name = "N", default_value_t = 10)]
    blocks: u32,
    /// Begin no block after so many minutes
    #[arg(long, value_name = "N", default_value_t = 30)]
    minutes: u32,
    /// Seed of the order of trials
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Write device.md and device.json into this directory
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Measure nothing: make the table of an earlier run's device.json anew
    #[arg(long, value_name = "FILE", conflicts_with = "toll")]
    from: Option<PathBuf>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let made = match (&arguments.from, &arguments.toll) {
        (Some(path), _) => Document::read(path),
        (None, Some(toll)) => measure(toll, &arguments).map_err(Stop::Failed),
        (None, None) => unreachable!("one of both is required"),
    };
    conclude(made, arguments.out.as_deref())
}

fn measure(toll: &Path, arguments: &Arguments) -> Result<Document, String> {
    let machine = Machine::inspect(&std::env::temp_dir());
    let toll = Toll::new(toll)?;
    let (blocks, minutes) = (
        arguments.blocks.to_string(),
        format!("{}min", arguments.minutes),
    );
    let seed = arguments.seed.to_string();
    let json = toll.run(
        EXPERIMENT,
        &[
            "--runs",
            &blocks,
            "--time-budget",
            &minutes,
            "--seed",
            &seed,
        ],
    )?;
    Document::of_run(&json, machine)
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
