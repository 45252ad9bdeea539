//! `bench-replay`: simulates which claims the plans of the built-in experiments can decide.

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread::available_parallelism;

use clap::Parser;
use toll_bench::replay::{Choice, Document, Effort, Noise, RECORDED_NOISE, render, replay};
use toll_core::spec::builtin::BUILTINS;

/// Simulates runs of the built-in experiments with recorded noise. Shows how often each claim is
/// supported, refuted or left open: at the published value, without an effect, and where verdicts
/// change.
///
/// The table goes to standard output, progress to standard error. Nothing is measured.
#[derive(Parser)]
#[command(name = "bench-replay")]
struct Arguments {
    /// Simulated runs for each claim and each assumed truth
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// A built-in experiment; may be repeated [default: all]
    #[arg(long, value_name = "NAME")]
    experiment: Vec<String>,
    /// quick, standard or full; may be repeated [default: quick and standard]
    #[arg(long, value_name = "PROFILE", value_parser = ["quick", "standard", "full"])]
    profile: Vec<String>,
    /// Only change the values of claims whose id begins with ID
    #[arg(long, value_name = "ID")]
    claim: Option<String>,
    /// Give claims their published values only, or their recorded values if none are published
    #[arg(long)]
    only_published: bool,
    /// Take the noise from a store, or from a run exported as JSON; may be repeated [default: the
    /// noise in bench/replay-noise.json]
    #[arg(long, value_name = "PATH")]
    store: Vec<PathBuf>,
    /// Write the noise of the stores to this file, and simulate nothing
    #[arg(long, value_name = "FILE", requires = "store")]
    write_noise: Option<PathBuf>,
    /// Seed of all simulated runs
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Simulate N claims at a time [default: one per CPU]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Simulate nothing: make the table again from earlier replay.json files; may be repeated
    #[arg(long, value_name = "FILE", conflicts_with = "store")]
    from: Vec<PathBuf>,
    /// Write replay.md and replay.json into this directory
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

fn main() -> ExitCode {
    match conclude(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            tell(&reason);
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stderr, reason = "progress and errors go there")]
fn tell(what: &str) {
    eprintln!("bench-replay: {what}");
}

fn conclude(arguments: &Arguments) -> Result<(), String> {
    if !arguments.from.is_empty() {
        return show(&Document::read(&arguments.from)?, arguments);
    }
    let noise = noise(arguments)?;
    if let Some(file) = &arguments.write_noise {
        let written = std::fs::write(file, noise.to_json());
        return written.map_err(|error| format!("cannot write {}: {error}", file.display()));
    }
    show(&simulated(arguments, &noise)?, arguments)
}

/// Writes the files before it writes standard output, whose reader may end early.
fn show(document: &Document, arguments: &Arguments) -> Result<(), String> {
    let text = render(document);
    if let Some(directory) = &arguments.out {
        write(directory, "replay.md", &text)?;
        write(directory, "replay.json", &document.to_json())?;
    }
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(format!("cannot write the table: {error}"))
        }
        _ => Ok(()),
    }
}

fn write(directory: &Path, name: &str, text: &str) -> Result<(), String> {
    let written = std::fs::create_dir_all(directory)
        .and_then(|()| std::fs::write(directory.join(name), text));
    written.map_err(|error| format!("cannot write into {}: {error}", directory.display()))
}

fn noise(arguments: &Arguments) -> Result<Noise, String> {
    if arguments.store.is_empty() {
        return Noise::of_json(RECORDED_NOISE);
    }
    let mut noise = Noise::default();
    for path in &arguments.store {
        noise.add(Noise::read(path)?);
    }
    Ok(noise)
}

fn simulated(arguments: &Arguments, noise: &Noise) -> Result<Document, String> {
    let or = |given: &[String], default: Vec<&str>| match given {
        [] => default.into_iter().map(String::from).collect(),
        given => given.to_vec(),
    };
    let all = BUILTINS.iter().map(|builtin| builtin.name).collect();
    let cpus = available_parallelism().map_or(1, std::num::NonZero::get);
    let choice = Choice {
        experiments: &or(&arguments.experiment, all),
        profiles: &or(&arguments.profile, vec!["quick", "standard"]),
        claim: arguments.claim.as_deref(),
        effort: Effort {
            runs: arguments.runs as usize,
            seed: arguments.seed,
            threads: arguments.threads.unwrap_or(cpus),
            only_published: arguments.only_published,
        },
    };
    replay(&choice, noise, &mut tell)
}
