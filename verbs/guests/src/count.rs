//! `toll count`: counts the instructions of commands in guests.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use serde::Serialize;
use signal_hook::consts::SIGINT;
use toll_core::count::{
    CommandCount, CountComparison, CountedRun, Pairs, Programs, Symbols, executed, labels,
};
use toll_core::format;
use toll_core::spec::adhoc::needs_shell;
use toll_core::spec::quantity::{parse_duration, parse_size};
use toll_driver::gate::Condition;
use toll_host::environment::guest;
use toll_host::environment::guest::{Counted, GuestFailure, GuestPlace, GuestSpec};
use toll_host::environment::kernel;
use toll_host::environment::program_files;
use toll_host::environment::program_files::ProgramFiles;
use toll_host::trial::Probe;
use toll_stats::Decision;
use toll_system::interrupt::Interrupt;
use toll_system::{Failure, output};
use toll_wire::guest::CountedCommand;

use crate::count_formats;
use crate::count_report::of_commands as counted;

/// Functions shown without --all.
const FUNCTIONS_SHOWN: usize = 20;

const NOTES: &str = "\
Examples:
  toll count /bin/true
  toll count 'dd if=/dev/zero of=/dev/null bs=4k count=20000'
  toll count --file words 'sort words' 'sort -r words'
  toll count --by function 'cat words' 'cp words copy'
  toll count --fail-on regression=0.1% ./old ./new
  toll count --kernel toll,mine --by function 'cat words'

Each run of a command has its own guest. QEMU's translator counts every instruction that the guest's
only CPU executes from the command's exec to its end: those of the command, its threads, its child
processes and the kernel. Instructions are not time: one that misses a cache counts like any other,
and so does each repetition of a string instruction (rep movs).

A guest has the command's program with its interpreter and libraries, the files that its words name,
and those of --file and --tree. It has no network and no terminal, and its current directory has the
same path as here and is empty.

Runs of two commands are compared in pairs with the same seed. In at most one call of 20, a
difference or a function is shown that chance alone explains. A function whose difference may be 0 is
not listed; more runs find more functions.

Functions have the names of symbols in the kernel, programs and libraries. Those of the command's
own program have [program] after their name. A stripped program has only the functions that it
exports.";

#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub struct CountArguments {
    /// Commands, each in quotes; all others are compared with the first
    #[arg(value_name = "COMMAND", required = true)]
    commands: Vec<String>,
    /// Run each command N times [default: 2, or the fewest runs that can decide all comparisons: 6
    /// for one comparison]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100))]
    runs: Option<u64>,
    /// Seed of the guest's random numbers in the first run; each later run has the next seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Copy a file into the guests, to the same path or another one
    #[arg(long, value_name = "FILE[:GUEST_PATH]")]
    file: Vec<String>,
    /// Copy all files below a directory, to the same path or another one; symbolic
    /// links are followed
    #[arg(long, value_name = "DIR[:GUEST_PATH]")]
    tree: Vec<String>,
    /// Standard input of the commands [default: empty]
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// Kernels that the guests run (see `toll kernel list`); with several kernels, each command is
    /// compared with itself on the first kernel
    #[arg(
        long,
        value_name = "KERNEL[,KERNEL…]",
        default_value = "toll",
        value_delimiter = ','
    )]
    kernel: Vec<String>,
    /// Memory of a guest
    #[arg(long, value_name = "SIZE", default_value = "512MiB", value_parser = parse_size)]
    memory: u64,
    /// Time limit of a run, including the guest's boot
    #[arg(long, value_name = "TIME", default_value = "10min", value_parser = parse_duration)]
    timeout: Duration,
    /// Also count commands that fail
    #[arg(short = 'i', long)]
    ignore_failure: bool,
    /// Show the functions with the most instructions; with several commands or kernels, show the
    /// functions that differ from the first, and how much of the difference they explain
    #[arg(long, value_name = "function", value_parser = ["function"],
          conflicts_with_all = ["json", "format"])]
    by: Option<String>,
    /// Show all functions, not only the first 20
    #[arg(long, requires = "by")]
    all: bool,
    /// End with status 3 if a command executes more instructions than its reference, by
    /// more than a limit with its whole interval (regression=0.1%)
    #[arg(long, value_name = "CONDITION", value_parser = toll_driver::gate::parse)]
    fail_on: Option<Condition>,
    /// Print one JSON document
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Print in a format for another program
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    /// A table for a comment on a change
    Markdown,
    /// JSON of the tool customSmallerIsBetter
    GithubActionBenchmark,
    /// Bencher Metric Format
    Bencher,
}

#[derive(Debug, Serialize)]
struct Document<'a> {
    version: u32,
    commands: &'a [CommandCount],
    comparisons: &'a [CountComparison],
}

/// A guest that counts a command, and the functions of the programs in the guest.
struct Counting {
    spec: GuestSpec,
    programs: Programs,
}

pub fn run(arguments: &CountArguments) -> anyhow::Result<ExitCode> {
    output::check_standard_output()?;
    check_kernels(&arguments.kernel)?;
    let pairs = Pairs::new(arguments.commands.len(), arguments.kernel.len());
    let runs = runs(arguments, &pairs);
    let limit = limit(arguments.fail_on, &pairs, runs)?;
    let interrupt = Interrupt::listen().context("cannot listen for signals")?;
    let mut counts = Vec::new();
    for command in &arguments.commands {
        for kernel in &arguments.kernel {
            let counting = counting(arguments, command, kernel)?;
            let count = |number| {
                output::note(&format!(
                    "counting {command} on kernel {kernel}, run {number} of {runs} …"
                ));
                let seed = arguments.seed.wrapping_add(number - 1);
                count(arguments, command, &counting, seed, &interrupt)
            };
            let runs = (1..=runs).map(count).collect::<anyhow::Result<Vec<_>>>()?;
            counts.push(CommandCount::new(command.clone(), kernel.clone(), &runs));
        }
    }
    let comparisons = pairs.compare(&counts);
    show(arguments, &pairs, &counts, &comparisons)?;
    judge(&counts, &comparisons, limit)
}

/// Returns how often each command runs.
fn runs(arguments: &CountArguments, pairs: &Pairs) -> u64 {
    let default = if pairs.is_empty() {
        // Two runs show whether counts repeat.
        2
    } else {
        pairs.runs_needed() as u64
    };
    arguments.runs.unwrap_or(default)
}

/// Returns the share of a regression with which the call fails.
fn limit(condition: Option<Condition>, pairs: &Pairs, runs: u64) -> anyhow::Result<Option<f64>> {
    let needed = pairs.runs_needed();
    match condition {
        None => Ok(None),
        Some(Condition::Regression(_)) if !pairs.is_empty() && runs < needed as u64 => {
            bail!(Failure::Usage(format!(
                "cannot use --fail-on with -r {runs}: these comparisons need {needed} runs of each \
                 command; use -r {needed}"
            )))
        }
        Some(Condition::Regression(limit)) if !pairs.is_empty() => Ok(Some(limit)),
        Some(_) => bail!(Failure::Usage(
            "cannot use --fail-on: here it takes regression=LIMIT and needs two commands or kernels"
                .into()
        )),
    }
}

fn check_kernels(names: &[String]) -> anyhow::Result<()> {
    for (index, name) in names.iter().enumerate() {
        kernel::require(name).map_err(Failure::Usage)?;
        if names[..index].contains(name) {
            bail!(Failure::Usage(format!(
                "cannot compare kernel {name} with itself; name each kernel once"
            )));
        }
        // A missing kernel fails here, before minutes are spent on counting with another kernel.
        kernel::find(name).map_err(Failure::Prerequisite)?;
    }
    Ok(())
}

fn show(
    arguments: &CountArguments,
    pairs: &Pairs,
    counts: &[CommandCount],
    comparisons: &[CountComparison],
) -> anyhow::Result<()> {
    match arguments.format {
        Some(Format::Markdown) => {
            return output::document(&count_formats::markdown(counts, comparisons));
        }
        Some(Format::GithubActionBenchmark) => {
            return output::json(&count_formats::github_action_benchmark(counts));
        }
        Some(Format::Bencher) => return output::json(&count_formats::bencher(counts)),
        None => {}
    }
    if arguments.json {
        return output::json(&Document {
            version: 1,
            commands: counts,
            comparisons,
        });
    }
    let rows = match (arguments.by.is_some(), arguments.all) {
        (false, _) => 0,
        (true, false) => FUNCTIONS_SHOWN,
        (true, true) => usize::MAX,
    };
    output::result(&counted(counts, comparisons, pairs.runs_needed(), rows))
}

fn judge(
    counts: &[CommandCount],
    comparisons: &[CountComparison],
    limit: Option<f64>,
) -> anyhow::Result<ExitCode> {
    let Some(limit) = limit else {
        return Ok(ExitCode::SUCCESS);
    };
    let labels = labels(counts);
    let worse: Vec<&str> = comparisons
        .iter()
        .filter(|one| one.judged().regression(limit) == Decision::Supported)
        .map(|one| labels[one.count].as_str())
        .collect();
    if worse.is_empty() {
        Ok(ExitCode::SUCCESS)
    } else {
        bail!(Failure::Judged(format!(
            "failed by --fail-on: over {} more instructions: {}",
            format::percent(limit),
            worse.join("; ")
        )))
    }
}

fn counting(arguments: &CountArguments, command: &str, kernel: &str) -> anyhow::Result<Counting> {
    let usage = |why: String| Failure::Usage(why);
    let mut files = ProgramFiles::new();
    let split = shlex::split(command).ok_or_else(|| {
        usage(format!(
            "cannot count {command}: a quote or escape is not closed"
        ))
    })?;
    if split.is_empty() {
        bail!(usage("cannot count: a command is empty".into()));
    }
    let words = if needs_shell(command) {
        // A shell may start any word as a program. Trying all words does no harm.
        for word in command.split(|sign: char| !sign.is_alphanumeric() && !"/._+-".contains(sign)) {
            let _ = program_files::add_program(word, &mut files);
        }
        vec!["sh".to_owned(), "-c".to_owned(), command.to_owned()]
    } else {
        split
    };
    let program = program_files::add_program(&words[0], &mut files).map_err(usage)?;
    let absolute = |path: &PathBuf| std::path::absolute(path).context("cannot find a file");
    let named = words
        .iter()
        .skip(1)
        .map(PathBuf::from)
        .filter(|path| path.is_file());
    for file in named.chain(arguments.input.clone()) {
        let file = absolute(&file)?;
        files.insert(file.clone(), file);
    }
    program_files::add_copied(&arguments.file, &arguments.tree, &mut files).map_err(usage)?;
    check_memory(command, arguments.memory, &files)?;
    let input = arguments.input.as_ref().map(absolute).transpose()?;
    let probe = Probe::find().map_err(Failure::Prerequisite)?;
    let kernel = kernel::find(kernel).map_err(Failure::Prerequisite)?;
    // The functions of a shell do not belong to the user's program.
    let main = Some(&program).filter(|_| !needs_shell(command));
    let main = main.map(PathBuf::as_path);
    let programs = program_files::functions(&files, main, probe.path()).map_err(usage)?;
    // Programs that a shell starts have the same paths in the guest as here.
    let path = std::env::var("PATH").unwrap_or_else(|_| "/usr/bin:/bin".to_owned());
    let environment = [("PATH", path.as_str()), ("HOME", "/"), ("LC_ALL", "C")];
    let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let spec = GuestSpec {
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
            directory: std::env::current_dir().context("cannot find the current directory")?,
            input: input.unwrap_or_else(|| "/dev/null".into()),
            seed: 0,
        }),
        ..GuestSpec::new(kernel, probe.path().to_owned())
    };
    Ok(Counting { spec, programs })
}

/// Refuses files that do not fit into a guest's memory. While it starts, a guest holds them
/// twice: in the archive and unpacked.
fn check_memory(command: &str, memory_bytes: u64, files: &ProgramFiles) -> anyhow::Result<()> {
    const KERNEL_BYTES: u64 = 128 << 20;
    let length = |host: &PathBuf| std::fs::metadata(host).map_or(0, |file| file.len());
    let bytes: u64 = files.values().map(length).sum();
    let needed = KERNEL_BYTES + 2 * bytes;
    if needed > memory_bytes {
        bail!(Failure::Usage(format!(
            "cannot count {command}: its files take {} of a guest's memory; use --memory {}MiB",
            format::bytes(2.0 * bytes as f64),
            needed.div_ceil(64 << 20) * 64
        )));
    }
    Ok(())
}

fn count(
    arguments: &CountArguments,
    command: &str,
    counting: &Counting,
    seed: u64,
    interrupt: &Interrupt,
) -> anyhow::Result<CountedRun> {
    let place = GuestPlace::make().map_err(anyhow::Error::msg)?;
    let interrupted = || interrupt.signal().is_some();
    // Each run has another seed. So a command that uses random numbers shows its variation.
    let mut spec = counting.spec.clone();
    spec.seed = seed;
    if let Some(counted) = &mut spec.counted {
        counted.seed = seed;
    }
    let counted = guest::count(&spec, place.directory(), arguments.timeout, &interrupted);
    let counted = counted.map_err(|failure| match failure {
        GuestFailure::Interrupted => {
            Failure::Interrupted(interrupt.signal().unwrap_or(SIGINT)).into()
        }
        GuestFailure::Missing(why) => Failure::Prerequisite(why).into(),
        GuestFailure::Failed(why) => anyhow::Error::msg(why),
    })?;
    check_end(arguments, command, &counted)?;
    let end = counted.end;
    let symbols = Symbols::read(&end.symbols);
    let executed = executed(&counted.records, &symbols, &counting.programs);
    Ok(CountedRun {
        executed: executed.map_err(anyhow::Error::msg)?,
        minor_faults: end.minor_faults,
        major_faults: end.major_faults,
        kernel_release: end.kernel_release,
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
        "cannot count {command}: {how}{last}; add what it needs with --file, or use \
         --ignore-failure"
    )
}
