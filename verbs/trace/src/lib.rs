//! `toll trace`: counts and prices the system calls of a program.

mod call_list;
mod costs;
mod lines;
mod observation;
mod report;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use toll_calls::costs::Costs;
use toll_calls::model::{Ended, TraceReport};
use toll_calls::price::{self, Traced};
use toll_core::spec::quantity::parse_duration;
use toll_system::output;
use toll_system::strace::{TraceEnd, unstartable};

use call_list::CallList;
use costs::Prices;
use observation::{Source, With};
use report::Shown as TraceShown;

const NOTES: &str = "\
Examples:
  toll trace dd if=big of=/dev/null bs=512
  toll trace -o summary.txt grep -r needle src
  toll trace --json -o trace.json -- sh -c 'sort words | uniq -c'
  toll trace --all --no-prices cargo --version
  toll trace --pid 1234 --for 10s
  toll trace --cgroup system.slice/nginx.service --for 10s
  toll trace --calls --no-prices -o calls.txt cat /etc/hostname

The system calls of the command, its threads and its child processes are counted. The command has
this terminal, its input and its output to itself; the summary goes to standard error, or to a file
with -o. As root, the kernel counts (BPF), which takes a program with many small calls about twice
as long. Otherwise strace counts, which slows it down by a factor of ten to a hundred; --calls needs
strace. Prices are not affected: calls are priced by separate measurements, made once and stored.

--pid traces a running process from now on. Files that it opened before are recognized, too. ^C or
the end of --for ends the trace, not the process.

--cgroup traces a container or a service: a process counts from its first call in the control group,
or in a group below it, to its last call there, whether it was there before, moved in or was forked.
The trace of an empty group waits for a process. PATH is a directory of cgroup v2, or a path below
its mount point.

--calls lists calls and signals as strace does, in the order in which the calls return, before the
summary. A call's line shows when it began (since the first call), its arguments, what it returned
and how long it took under trace. A signal's line shows when it came, and its source or its effect.
From the second thread on, lines have the thread's number. In a file or a pipe, each call is one
line; on a terminal, long lines are folded. Lines are written at once, so that their number is not
limited. If the command writes to this terminal too, use -o.

Exit status: that of the command, 128 + n if signal n ended it, 126 if it cannot be executed, 127 if
there is no such program; 0 with --pid and --cgroup; 5 if neither BPF nor strace may trace, 1 or 2
if toll fails.";

#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub struct TraceArguments {
    /// Command to trace, and its arguments
    #[arg(
        value_name = "COMMAND",
        required_unless_present = "running",
        trailing_var_arg = true
    )]
    command: Vec<OsString>,
    /// Trace this running process instead, with its threads and child processes, until it
    /// ends or ^C; needs BPF
    #[arg(long, value_name = "PID", group = "running", conflicts_with_all = ["command", "calls"])]
    pid: Option<u32>,
    /// Trace all processes of this control group instead, such as a container's or
    /// system.slice/NAME.service, until the last one ends or ^C; needs BPF and cgroup v2
    #[arg(long, value_name = "PATH", group = "running", conflicts_with_all = ["command", "calls"])]
    cgroup: Option<PathBuf>,
    /// How long to trace, for example 10s
    #[arg(long = "for", value_name = "TIME", value_parser = parse_duration, requires = "running", conflicts_with = "command")]
    time: Option<Duration>,
    /// What counts the calls [default: bpf if it is permitted, else strace]
    #[arg(long, value_enum)]
    with: Option<With>,
    /// Write the summary, and the list of --calls, to this file (`-`: standard
    /// output) instead of standard error
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write the summary as one JSON document
    #[arg(long)]
    json: bool,
    /// List every call with its arguments and return value, and every signal,
    /// before the summary; strings are cut at 32 bytes. Counts all calls, as --all
    /// does
    #[arg(long)]
    calls: bool,
    /// Show the sizes of calls on at most N files
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// Also show programs with less than 5 % of the time under trace, and the
    /// files that only they used
    #[arg(long)]
    helpers: bool,
    /// Count every system call, not only those that move bytes; slower with strace
    #[arg(long)]
    all: bool,
    /// Price calls by this run of `toll prices` [default: this machine's newest one
    /// that was measured while it was quiet; without one, the necessary rows are
    /// measured]
    #[arg(long, value_name = "RUN", conflicts_with = "measure")]
    cost_model: Option<String>,
    /// Measure again what calls cost here, which takes a few seconds
    #[arg(long)]
    measure: bool,
    /// Do not price the calls
    #[arg(long, conflicts_with_all = ["cost_model", "measure"])]
    no_prices: bool,
    /// Directory for the files whose reads and writes are measured [default:
    /// $TOLL_WORK_DIR, else $XDG_CACHE_HOME/toll/work]
    #[arg(long, value_name = "DIR")]
    work_dir: Option<PathBuf>,
}

pub fn run(arguments: &TraceArguments, store: &Path) -> anyhow::Result<ExitCode> {
    if let Some(code) = arguments.command.first().and_then(|name| unstartable(name)) {
        return Ok(code);
    }
    arguments
        .output
        .as_deref()
        .map_or(Ok(()), output::check_file)?;
    let source = Source::find(arguments)?;
    let work_dir = arguments.work_dir.as_deref();
    // Reports a missing run before the command runs.
    let stored = match (arguments.no_prices, arguments.measure) {
        (true, _) => Prices::NotWanted,
        (false, true) => Prices::Missing,
        (false, false) => costs::stored(arguments.cost_model.as_deref(), store, work_dir)?,
    };
    let mut list = if arguments.calls {
        Some(CallList::begin(
            arguments.output.as_deref(),
            arguments.json,
            output::style_aside(arguments.output.as_deref()),
        )?)
    } else {
        None
    };
    let observation = source.observe(arguments, list.as_mut())?;
    let mut notes = observation.notes;
    let costs = match stored {
        Prices::NotWanted => None,
        Prices::Found(costs) => Some(*costs),
        Prices::Missing if observation.was_interrupted => {
            notes.push(
                "there are no prices: the cost of calls is not measured after an interrupt".into(),
            );
            None
        }
        Prices::Missing => match measure(arguments, store) {
            Ok(costs) => Some(costs),
            Err(failure) => {
                notes.push(format!("there are no prices: {failure}"));
                None
            }
        },
    };
    let traced = Traced {
        command: observation.command,
        ended: observation.ended,
        counting: observation.counting,
        wall_ns: u64::try_from(observation.wall.as_nanos()).unwrap_or(u64::MAX),
        notes,
    };
    show(
        arguments,
        &price::report(traced, &observation.tally, costs),
        list,
    )?;
    Ok(exit_code(observation.ended))
}

fn measure(arguments: &TraceArguments, store: &Path) -> anyhow::Result<Costs> {
    // Standard error may be one JSON document.
    if arguments.output.is_some() || !arguments.json {
        output::note(
            "measuring what calls cost here, which takes a few seconds; later traces find it in \
             the store …",
        );
    }
    costs::measure(store, arguments.work_dir.as_deref())
}

fn ended(end: &TraceEnd) -> Ended {
    match (end.signal, end.status) {
        (Some(signal), _) => Ended::Signal(signal),
        (None, status) => Ended::Status(status.unwrap_or_default()),
    }
}

fn exit_code(ended: Ended) -> ExitCode {
    match ended {
        Ended::Signal(signal) => toll_system::exit_code_of(signal),
        Ended::Status(status) => ExitCode::from(u8::try_from(status).unwrap_or(1)),
        Ended::Watch(_) => ExitCode::SUCCESS,
    }
}

fn show(
    arguments: &TraceArguments,
    report: &TraceReport,
    list: Option<CallList>,
) -> anyhow::Result<()> {
    let to = arguments.output.as_deref();
    let text = if arguments.json {
        output::json_text(report)? + "\n"
    } else {
        let shown = TraceShown {
            files_max: arguments.top,
            helpers: arguments.helpers,
        };
        let style = output::style_aside(to);
        report::of_report(report, shown, style).show(style)
    };
    if let Some(list) = list {
        return list.finish(&text);
    }
    // Separates the summary from the command's own output.
    let gap = if to.is_none() && !arguments.json {
        "\n"
    } else {
        ""
    };
    output::write_aside(to, &format!("{gap}{text}"))
}
