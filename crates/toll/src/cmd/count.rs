//! `toll count`

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use serde::Serialize;
use signal_hook::consts::SIGINT;
use toll_wire::guest::CountedCommand;

use super::gate::Condition;
use super::{Failure, output};
use crate::count::{CommandCount, executed};
use crate::environment::guest::{self, Counted, GuestFailure, GuestPlace, GuestSpec};
use crate::environment::kernel;
use crate::environment::program_files::{self, ProgramFiles};
use crate::format;
use crate::report::terminal::counted;
use crate::spec::adhoc::needs_shell;
use crate::spec::quantity::{parse_duration, parse_size};
use crate::trial::{Interrupt, Probe};

/// Functions shown without --all.
const FUNCTIONS_SHOWN: usize = 20;

const NOTES: &str = "\
Examples:
  toll count /bin/true
  toll count 'dd if=/dev/zero of=/dev/null bs=4k count=20000'
  toll count --file words 'sort words' 'sort -r words'
  toll count --by function 'cat words' 'cp words copy'
  toll count --fail-on regression=0.1% ./old ./new

Each command runs in guests of its own, under QEMU's translator, which counts each instruction that
the guest's one CPU executes from the command's exec to its end: its own, its threads', its
children's and the kernel's. Instructions are not time: one that misses a cache counts as one that
does not, and so does each repetition of a string instruction (rep movs).

A guest has the command's program with its interpreter and libraries, files that its words name,
and what --file gives; no network, no terminal, and the same directory as here, empty.";

#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub(super) struct CountArguments {
    /// Commands, each in quotes; all others are compared with the first
    #[arg(value_name = "COMMAND", required = true)]
    commands: Vec<String>,
    /// Run each command so many times, and tell whether the runs agree
    #[arg(short, long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=100))]
    runs: u64,
    /// Copy a file into the guests, to the same path
    #[arg(long, value_name = "FILE")]
    file: Vec<PathBuf>,
    /// Standard input of the commands; empty without this
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// Kernel that the guests run (see `toll kernel list`)
    #[arg(long, value_name = "KERNEL", default_value = "toll")]
    kernel: String,
    /// Memory of a guest
    #[arg(long, value_name = "SIZE", default_value = "512MiB", value_parser = parse_size)]
    memory: u64,
    /// Longest time for a run, with the guest's boot
    #[arg(long, value_name = "TIME", default_value = "10min", value_parser = parse_duration)]
    timeout: Duration,
    /// Count commands that fail, too
    #[arg(short = 'i', long)]
    ignore_failure: bool,
    /// Show the kernel's functions with most instructions, or of several commands
    /// those that differ most from the first one's; programs are one row
    #[arg(long, value_name = "function", value_parser = ["function"])]
    by: Option<String>,
    /// Show all functions, not the first 20
    #[arg(long, requires = "by")]
    all: bool,
    /// End with status 3 if a command has more instructions than the first one by
    /// more than a limit, in every run (regression=0.1%)
    #[arg(long, value_name = "CONDITION", value_parser = super::gate::parse)]
    fail_on: Option<Condition>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Document<'a> {
    version: u32,
    /// Release of the guests' kernel.
    kernel: String,
    commands: &'a [CommandCount],
}

pub(super) fn run(arguments: &CountArguments) -> anyhow::Result<ExitCode> {
    output::check_standard_output()?;
    let limit = match arguments.fail_on {
        Some(Condition::Regression(limit)) if arguments.commands.len() > 1 => Some(limit),
        None => None,
        Some(_) => bail!(Failure::Usage(
            "cannot fail: --fail-on takes regression=LIMIT here, and two commands".into()
        )),
    };
    let interrupt = Interrupt::listen().context("cannot listen for signals")?;
    let mut counts = Vec::new();
    let mut release = String::new();
    for command in &arguments.commands {
        let spec = spec(arguments, command)?;
        let mut runs = Vec::new();
        for number in 1..=arguments.runs {
            output::note(&format!(
                "counting {command}, run {number} of {} …",
                arguments.runs
            ));
            let counted = count(arguments, &spec, number, &interrupt)?;
            check_end(arguments, command, &counted)?;
            let sum = executed(&counted.records, &counted.end.symbols);
            let sum = sum.map_err(anyhow::Error::msg)?;
            release.clone_from(&counted.end.kernel_release);
            runs.push((sum, [counted.end.minor_faults, counted.end.major_faults]));
        }
        counts.push(CommandCount::new(command.clone(), runs));
    }
    match arguments.json {
        true => output::json(&Document {
            version: 1,
            kernel: release,
            commands: &counts,
        })?,
        false => {
            let rows = match (arguments.by.is_some(), arguments.all) {
                (false, _) => 0,
                (true, false) => FUNCTIONS_SHOWN,
                (true, true) => usize::MAX,
            };
            output::result(&counted(&counts, rows, output::style()))?;
        }
    }
    judge(&counts, limit)
}

fn judge(counts: &[CommandCount], limit: Option<f64>) -> anyhow::Result<ExitCode> {
    let (Some(limit), Some((reference, others))) = (limit, counts.split_first()) else {
        return Ok(ExitCode::SUCCESS);
    };
    let worse: Vec<&str> = others
        .iter()
        .filter(|one| one.is_regression(reference, limit))
        .map(|one| one.command.as_str())
        .collect();
    match worse.is_empty() {
        true => Ok(ExitCode::SUCCESS),
        false => bail!(Failure::Judged(format!(
            "failed by --fail-on: over {} more instructions: {}",
            format::percent(limit),
            worse.join("; ")
        ))),
    }
}

fn spec(arguments: &CountArguments, command: &str) -> anyhow::Result<GuestSpec> {
    let usage = |why: String| Failure::Usage(why);
    let mut files = ProgramFiles::new();
    let split = shlex::split(command).ok_or_else(|| {
        usage(format!(
            "cannot count {command}: a quote or escape has no end"
        ))
    })?;
    let words = match needs_shell(command) {
        true => {
            // What a shell starts is found out by trying: a word too many does no harm.
            for word in
                command.split(|sign: char| !sign.is_alphanumeric() && !"/._+-".contains(sign))
            {
                let _ = program_files::add_program(word, &mut files);
            }
            vec!["sh".to_owned(), "-c".to_owned(), command.to_owned()]
        }
        false => split,
    };
    let name = words
        .first()
        .ok_or_else(|| usage("cannot count: a command is empty".into()))?;
    let program = program_files::add_program(name, &mut files).map_err(usage)?;
    let absolute = |path: &PathBuf| std::path::absolute(path).context("cannot find a file");
    let named = words
        .iter()
        .skip(1)
        .map(PathBuf::from)
        .filter(|path| path.is_file());
    let asked = arguments.file.iter().chain(&arguments.input).cloned();
    for file in named.chain(asked) {
        let file = absolute(&file)?;
        files.insert(file.clone(), file);
    }
    let input = arguments.input.as_ref().map(absolute).transpose()?;
    let probe = Probe::find().map_err(Failure::Prerequisite)?;
    kernel::require(&arguments.kernel).map_err(usage)?;
    let kernel = kernel::find(&arguments.kernel).map_err(Failure::Prerequisite)?;
    let environment = [
        (
            "PATH",
            "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        ),
        ("HOME", "/"),
        ("LC_ALL", "C"),
    ];
    let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned()));
    Ok(GuestSpec {
        memory_bytes: arguments.memory,
        command_line: "norandmaps".into(),
        extra_files: files
            .into_iter()
            .map(|(guest, host)| (host, guest))
            .collect(),
        counted: Some(CountedCommand {
            program,
            words,
            environment: BTreeMap::from(environment),
            directory: std::env::current_dir().context("cannot find the directory")?,
            input: input.unwrap_or_else(|| "/dev/null".into()),
            seed: 0,
        }),
        ..GuestSpec::new(kernel, probe.path().to_owned())
    })
}

fn count(
    arguments: &CountArguments,
    spec: &GuestSpec,
    seed: u64,
    interrupt: &Interrupt,
) -> anyhow::Result<Counted> {
    let place = GuestPlace::make().map_err(anyhow::Error::msg)?;
    let interrupted = || interrupt.signal().is_some();
    // Another seed each, so that a command that uses random numbers is seen to vary.
    let mut spec = spec.clone();
    spec.seed = seed;
    if let Some(counted) = &mut spec.counted {
        counted.seed = seed;
    }
    let counted = guest::count(&spec, place.directory(), arguments.timeout, &interrupted);
    counted.map_err(|failure| match failure {
        GuestFailure::Interrupted => {
            Failure::Interrupted(interrupt.signal().unwrap_or(SIGINT)).into()
        }
        GuestFailure::Missing(why) => Failure::Prerequisite(why).into(),
        GuestFailure::Failed(why) => anyhow::Error::msg(why),
    })
}

fn check_end(arguments: &CountArguments, command: &str, counted: &Counted) -> anyhow::Result<()> {
    let end = &counted.end.end;
    if end.status == Some(0) || arguments.ignore_failure {
        return Ok(());
    }
    let how = match (end.signal, end.status) {
        (Some(signal), _) => format!("signal {signal} ended it"),
        (None, status) => format!("it ended with status {}", status.unwrap_or_default()),
    };
    let errors = String::from_utf8_lossy(&counted.errors);
    let last = errors.lines().rev().find(|line| !line.trim().is_empty());
    let last = last.map_or_else(String::new, |line| format!(": {}", line.trim()));
    bail!(
        "cannot count {command}: {how}{last}; add what it needs with --file, or say \
         --ignore-failure"
    )
}
