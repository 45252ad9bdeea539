//! `bench-toll`: what `toll` itself costs.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use toll_bench::kept::{Options, conclude, tell};
use toll_bench::own::Document;
use toll_bench::own::measure::{Settings, run};
use toll_bench::run::Stop;
use toll_bench::scratch::{Scratch, absolute, beside, interrupts};

/// Directory in memory on every Linux (shm_overview(7)).
const MEMORY: &str = "/dev/shm";
/// How long the command takes of whose run the unmeasured share is told.
const WORK_MS: f64 = 100.0;

/// Measures what toll itself costs: its part of a trial, the clock, what of a run
/// is not measured, reports and comparisons of many samples.
///
/// The table goes to standard output, progress to standard error. It wants a
/// quiet machine, and 1 GB in the directory for temporary files.
#[derive(Parser)]
#[command(name = "bench-toll")]
struct Arguments {
    /// The program toll
    #[arg(
        long,
        value_name = "PATH",
        required_unless_present = "from",
        conflicts_with = "from"
    )]
    toll: Option<PathBuf>,
    /// The program bench-work [default: beside this program]
    #[arg(long, value_name = "PATH")]
    work: Option<PathBuf>,
    /// Blocks
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(2..))]
    blocks: u16,
    /// Seed of the order
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
    let work = match &arguments.work {
        Some(work) => work.clone(),
        None => beside("bench-work")?,
    };
    let toll = absolute(arguments.toll.as_deref().unwrap_or(Path::new("toll")))?;
    let work = absolute(&work)?;
    let interrupted = interrupts()?;
    let disk = Scratch::make(&std::env::temp_dir(), "toll-bench-toll")?;
    let memory = Scratch::make(Path::new(MEMORY), "toll-bench-toll")?;
    let words: Vec<String> = std::env::args().collect();
    let settings = Settings {
        toll,
        work,
        work_ms: WORK_MS,
        blocks: usize::from(arguments.blocks),
        seed: arguments.seed,
        directory: disk.path().to_owned(),
        memory: memory.path().to_owned(),
        command_line: words.join(" "),
        interrupted,
    };
    run(&settings, &mut tell::<Document>)
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
