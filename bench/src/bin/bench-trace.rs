//! `bench-trace`: whether what `toll trace` predicts is what is saved.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use toll_bench::kept::{Options, conclude, tell};
use toll_bench::predicted::Document;
use toll_bench::predicted::measure::{Settings, run};
use toll_bench::run::Stop;
use toll_bench::scratch::{Scratch, absolute, interrupts};

/// Measures whether what `toll trace` predicts is what is saved: of copies in
/// small pieces, beside the same copies by the buffer that it advises.
///
/// The table goes to standard output, progress to standard error. It needs
/// strace and a quiet machine.
#[derive(Parser)]
#[command(name = "bench-trace")]
struct Arguments {
    /// The program toll; toll-probe lies beside it
    #[arg(
        long,
        value_name = "PATH",
        required_unless_present = "from",
        conflicts_with = "from"
    )]
    toll: Option<PathBuf>,
    /// Rounds, of about 12 seconds each; fewer than 6 decide nothing
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// Seed of the order of cases
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
    let toll = absolute(arguments.toll.as_deref().unwrap_or(Path::new("toll")))?;
    let interrupted = interrupts()?;
    let scratch = Scratch::make(&std::env::temp_dir(), "toll-bench-trace")?;
    let words: Vec<String> = std::env::args().collect();
    let settings = Settings {
        toll,
        rounds: usize::from(arguments.rounds),
        seed: arguments.seed,
        directory: scratch.path().to_owned(),
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
