//! `bench-device`: the virtual device beside a connection of two programs.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use toll_bench::device::Document;
use toll_bench::kept::{Options, conclude};
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
    #[arg(
        long,
        value_name = "PATH",
        required_unless_present = "from",
        conflicts_with = "from"
    )]
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
    #[command(flatten)]
    kept: Options,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    conclude(&arguments.kept, || measure(&arguments))
}

fn measure(arguments: &Arguments) -> Result<Document, Stop> {
    let machine = Machine::inspect(&std::env::temp_dir());
    let toll = Toll::new(arguments.toll.as_deref().unwrap_or(Path::new("toll")))?;
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
    Ok(Document::of_run(&json, machine)?)
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
