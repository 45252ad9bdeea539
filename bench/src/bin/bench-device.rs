//! `bench-device`: the virtual device beside a connection of two programs.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use toll_bench::device::{Document, render};
use toll_bench::machine::Machine;
use toll_bench::publish::publish;
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
        (Some(path), _) => read(path),
        (None, Some(toll)) => measure(toll, &arguments),
        (None, None) => unreachable!("one of both is required"),
    };
    match made.and_then(|document| put(&document, arguments.out.as_deref())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            tell(&reason);
            ExitCode::FAILURE
        }
    }
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

fn read(path: &Path) -> Result<Document, String> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    Document::parse(&text)
}

fn put(document: &Document, directory: Option<&Path>) -> Result<(), String> {
    publish("device", &render(document), &document.to_json(), directory)
}

#[expect(clippy::print_stderr, reason = "errors go there")]
fn tell(what: &str) {
    eprintln!("bench-device: {what}");
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
