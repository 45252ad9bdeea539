//! `bench-bisect`: shows how often a search among versions finds the one that introduced a
//! change.

use std::path::PathBuf;
use std::process::ExitCode;
use std::thread::available_parallelism;

use clap::Parser;
use toll_bench::bisect::{Effort, table};

/// Simulates searches for the version that introduced a change, and shows how often they find it
/// and how many trials they need. Nothing is measured.
#[derive(Parser)]
#[command(name = "bench-bisect")]
struct Arguments {
    /// Simulated searches of each kind
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Seed of all random draws
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Write bisect.md into this directory
    #[arg(long, value_name = "DIR", default_value = "bench/results")]
    out: PathBuf,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let effort = Effort {
        runs: arguments.runs.into(),
        seed: arguments.seed,
        threads: available_parallelism().map_or(1, std::num::NonZero::get),
    };
    let text = table(effort, &mut |what| tell(what));
    let file = arguments.out.join("bisect.md");
    let written =
        std::fs::create_dir_all(&arguments.out).and_then(|()| std::fs::write(&file, text));
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tell(&format!(
                "cannot write {}: {error}; name another directory with --out",
                file.display()
            ));
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stderr, reason = "progress and errors go there")]
fn tell(what: &str) {
    eprintln!("bench-bisect: {what}");
}
