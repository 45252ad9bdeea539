//! The command line: one file for each verb.
//!
//! Architecture invariant: only this module prints. Results go to standard
//! output; progress, notes and errors to standard error.

mod baseline;
mod compare;
mod completions;
mod doctor;
#[cfg(test)]
mod documented;
mod empty_region;
mod export;
mod import;
mod list;
mod man;
mod prices;
mod product;
mod report;
mod selftest;
mod show;
mod store_health;
mod why;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser, Subcommand};
use toll_driver::{RunArguments, WithStore, failure, spelling, spellings_of};
use toll_fleet as fleet;
use toll_grade as grade;
use toll_guests::kernel::{self, KernelArguments, KernelVerb};
use toll_guests::{count, guest};
use toll_system::{Failure, output};
use toll_trace as trace;
use toll_versions::{bisect, ci, history};

/// Measures what the operating system charges for moving bytes, and says which
/// published conclusions about it hold on this machine.
#[derive(Debug, Parser)]
#[command(name = "toll", version, max_term_width = 100)]
#[command(after_help = EXIT_CODES)]
struct Cli {
    /// File in which runs are kept [default: $TOLL_STORE, else
    /// $XDG_DATA_HOME/toll/runs.sqlite]
    #[arg(long, value_name = "FILE")]
    store: Option<PathBuf>,
    #[command(subcommand)]
    verb: Verb,
}

const EXIT_CODES: &str = "\
Exit status: 0 done, 1 runtime error, 2 wrong usage or experiment file, 3 a condition of --fail-on
is met or a submission fails, 4 a submission is undecided, 5 a prerequisite is missing, 6 a
self-test finds that comparisons are off, 129, 130 or 143 interrupted by SIGHUP, SIGINT or SIGTERM,
with all measurements so far kept.";

#[derive(Debug, Subcommand)]
enum Verb {
    /// Run experiments, or compare commands
    Run(Box<WithStore<RunArguments>>),
    /// List the stored runs and the built-in experiments
    List(WithStore<list::ListArguments>),
    /// Show a run: verdicts, treatments, noise, advice
    Show(WithStore<show::ShowArguments>),
    /// Find out why two treatments of a run differ: split the time into functions and waits
    Why(WithStore<why::WhyArguments>),
    /// Write a report of runs as one HTML file, or its plots
    Report(WithStore<report::ReportArguments>),
    /// Write runs as JSON, CSV, Markdown or Parquet, or for other tools
    Export(WithStore<export::ExportArguments>),
    /// Import runs that were exported on another machine
    Import(WithStore<import::ImportArguments>),
    /// Check submitted runs and their claims, by their data and by a run on this machine
    Grade(WithStore<grade::GradeArguments>),
    /// Compare runs of different times or machines, one or several per side
    Compare(WithStore<compare::CompareArguments>),
    /// Compare a commit with its base: build both, run them in turn, fail on a regression
    #[command(after_help = ci::NOTES)]
    Ci(Box<WithStore<ci::CiArguments>>),
    /// Find the commit of a git history that made a command slower or faster
    Bisect(WithStore<bisect::BisectArguments>),
    /// Keep measurements of commits, and find where they changed
    History(WithStore<history::HistoryVerb>),
    /// Measure on many machines, and report where claims hold
    #[command(subcommand)]
    Fleet(fleet::FleetVerb),
    /// Save, list and remove names of runs that others are compared with
    Baseline(WithStore<baseline::BaselineVerb>),
    /// Measure what this machine charges for calls, in about a minute
    Prices(WithStore<prices::PricesArguments>),
    /// Count a program's system calls and the bytes that they move, and price them
    Trace(Box<WithStore<trace::TraceArguments>>),
    /// Count the instructions that commands execute, including the kernel's
    Count(Box<count::CountArguments>),
    /// Show open devices, terminal sessions, DHCP leases and network interfaces
    #[command(disable_help_flag = true)]
    Observe(product::ProductArguments),
    /// Boot a virtual machine and run a command or a shell in it
    Guest(Box<guest::GuestArguments>),
    /// Mount a local directory, or a directory of another host, with FUSE
    #[command(disable_help_flag = true)]
    Mount(product::ProductArguments),
    /// Show what can run here, what cannot and why, and how noisy the machine is
    Doctor(WithStore<doctor::DoctorArguments>),
    /// Check whether comparisons on this machine can be trusted
    ///
    /// Compares identical work with itself and, as a positive control, with work that is 1, 2 and 5
    /// % longer by construction. Each comparison is a separate run, with the same kind of plan,
    /// stopping rule and verdicts as any other. The report shows how often identical work and each
    /// delay are called different, with exact intervals. It also shows the smallest difference that
    /// can be detected on this machine.
    ///
    /// The exit status is 6 if the 95 % interval of a rate lies wholly on the wrong side of its
    /// limit. Wrong verdicts, and intervals of identical work that exclude 1, must not be above 5
    /// %. Delays of 5 % that are called different must not be below 80 %. A delay of 1 % is never
    /// called different, because differences up to 1 % get no such verdict. A delay of 1 % counts
    /// as seen if the interval excludes 1.
    ///
    /// Identical work is compared 20 times, and 12 times more for each error, at most 125 times. So
    /// a false-alarm rate of 15 % is found in nine of ten self-tests.
    ///
    /// Takes about one minute on a quiet machine, and at most about ten minutes. With --full, takes
    /// about seven minutes, and at most about 25. A signal ends the self-test, which then reports
    /// the results so far.
    Selftest(WithStore<selftest::SelftestArguments>),
    /// Build, list and remove the kernels that guests run
    Kernel(KernelArguments),
    /// Print completions for a shell
    Completions(completions::CompletionsArguments),
    /// Print the manual page
    Man(man::ManArguments),
}

/// Says that an option belongs to `toll run`, if it does, instead of suggesting a similar one of
/// this verb.
fn with_verb_of_option(mut error: clap::Error) -> clap::Error {
    if error.kind() == ErrorKind::UnknownArgument
        && let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg)
        && spellings_of::<RunArguments>().contains(option)
    {
        let tip = StyledStr::from(format!(
            "{option} is an option of toll run, not of this command"
        ));
        // The usage names the similar option.
        error.remove(ContextKind::Usage);
        error.remove(ContextKind::SuggestedArg);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    }
    error
}

/// Runs the command line and returns its exit status.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse_from(spelling::normalise(std::env::args_os())) {
        Ok(cli) => cli,
        Err(instead) => return output::instead_of_work(&with_verb_of_option(instead)),
    };
    let store = cli.store;
    let result = match cli.verb {
        Verb::Run(verb) => verb.run(store, toll_driver::run),
        Verb::List(verb) => verb.run(store, list::run),
        Verb::Show(verb) => verb.run(store, show::run),
        Verb::Why(verb) => verb.run(store, why::run),
        Verb::Report(verb) => verb.run(store, report::run),
        Verb::Export(verb) => verb.run(store, export::run),
        Verb::Import(verb) => verb.run(store, import::run),
        Verb::Grade(verb) => verb.run(store, grade::run),
        Verb::Compare(verb) => verb.run(store, compare::run),
        Verb::Baseline(verb) => verb.run(store, baseline::run),
        Verb::Prices(verb) => verb.run(store, prices::run),
        Verb::Trace(verb) => verb.run(store, trace::run),
        Verb::Doctor(verb) => verb.run(store, doctor::run),
        Verb::Ci(verb) => verb.run(store, ci::run),
        Verb::Bisect(verb) => verb.run(store, bisect::run),
        Verb::History(verb) => verb.run(store, history::run),
        Verb::Selftest(verb) => verb.run(store, selftest::run),
        Verb::Kernel(KernelArguments {
            verb: KernelVerb::Ab(verb),
        }) => verb.run(store, kernel::compare),
        _ if store.is_some() => Err(Failure::Usage(
            "cannot use --store here: this command neither reads nor stores runs".into(),
        )
        .into()),
        Verb::Fleet(verb) => fleet::run(&verb),
        Verb::Count(arguments) => count::run(&arguments),
        Verb::Observe(arguments) => product::start("observe", &arguments),
        Verb::Guest(arguments) => guest::run(&arguments),
        Verb::Mount(arguments) => product::start("mount", &arguments),
        Verb::Kernel(arguments) => kernel::run(&arguments),
        Verb::Completions(arguments) => completions::run(&arguments, Cli::command()),
        Verb::Man(arguments) => man::run(&arguments, Cli::command()),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            output::error(&format!("{error:#}"));
            failure::exit_code(&error)
        }
    }
}
