//! `toll trace`

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
use toll_system::output;
use toll_system::strace::{TraceEnd, unstartable};
use toll_calls::costs::Costs;
use toll_calls::model::{Ended, TraceReport};
use toll_calls::price::{self, Traced};
use toll_core::spec::quantity::parse_duration;

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

The calls of the command are counted, with those of its threads and child processes. It has this
terminal, its input and its output to itself; the summary goes to standard error, or to a file with
-o. As root the kernel counts (BPF), which makes a program that makes many small calls some twice
as slow. Else strace counts, and makes it slower by a factor of ten to a hundred; --calls needs
strace. The prices do not suffer from that: they are of calls measured by themselves, once, and kept.

--pid traces a process that runs already, from now on. What was open before is found, too. ^C or the
end of --for ends the trace and not the process.

--cgroup traces a container or a service: a process counts from its first call in the control group,
or in one below it, to its last one there, whether it was there, came or was forked. An empty group
is waited for. PATH is a directory of cgroup v2, or a path below its mount.

--calls lists calls and signals as strace does, calls in the order in which they return, and the
summary follows. A line says when the call began (since the first one), its arguments, what it
returned and how long it took under trace; or when a signal came, and where from or what it did.
From the second thread on, lines have the thread's number. In a file or a pipe each is one line;
on a terminal long ones are folded. They are written as they come, so that their number does not
matter; where the command writes to this terminal too, use -o.

Exit status: that of the command, 128 + n if signal n ended it, 126 if it is no program that may be
executed, 127 if it is not there; 0 with --pid and --cgroup; 5 if neither BPF nor strace may trace,
1 or 2 if toll fails.";

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
    /// Trace what runs for so long, such as 10s
    #[arg(long = "for", value_name = "TIME", value_parser = parse_duration, requires = "running", conflicts_with = "command")]
    time: Option<Duration>,
    /// Who counts the calls [default: bpf where it is permitted, else strace]
    #[arg(long, value_enum)]
    with: Option<With>,
    /// Write the summary, and the list of --calls, to this file (`-`: standard
    /// output) instead of standard error
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write the summary as one JSON document
    #[arg(long)]
    json: bool,
    /// List every call with its arguments and what it returned, and every
    /// signal, before the summary; strings are cut at 32 bytes. Counts all calls,
    /// as --all does
    #[arg(long)]
    calls: bool,
    /// Show the sizes of calls on at most so many files
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// Show programs with less than 5 % of the time under trace, too, and the
    /// files that they alone used
    #[arg(long)]
    helpers: bool,
    /// Count every system call, not only those that move bytes; slower with strace
    #[arg(long)]
    all: bool,
    /// Price calls by this run of `toll prices` [default: the newest one of this
    /// machine that was measured while it was quiet; if there is none, the rows
    /// that calls are priced by are measured]
    #[arg(long, value_name = "RUN", conflicts_with = "measure")]
    cost_model: Option<String>,
    /// Measure anew what calls cost here, which takes some seconds
    #[arg(long)]
    measure: bool,
    /// Price nothing
    #[arg(long, conflicts_with_all = ["cost_model", "measure"])]
    no_prices: bool,
    /// Where the files lie whose reads and writes are measured [default:
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
    // A run that is not there is told before the command has run.
    let stored = match (arguments.no_prices, arguments.measure) {
        (true, _) => Prices::NotWanted,
        (false, true) => Prices::Missing,
        (false, false) => costs::stored(arguments.cost_model.as_deref(), store, work_dir)?,
    };
    let mut list = match arguments.calls {
        true => Some(CallList::begin(
            arguments.output.as_deref(),
            arguments.json,
            output::style_aside(arguments.output.as_deref()),
        )?),
        false => None,
    };
    let observation = source.observe(arguments, list.as_mut())?;
    let mut notes = observation.notes;
    let costs = match stored {
        Prices::NotWanted => None,
        Prices::Found(costs) => Some(*costs),
        Prices::Missing if observation.was_interrupted => {
            notes.push(
                "there are no prices: what calls cost here is not measured after an interrupt"
                    .into(),
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
            "measuring what calls cost here, for some seconds; the next trace finds it in the \
             store …",
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
    let text = match arguments.json {
        true => output::json_text(report)? + "\n",
        false => {
            let shown = TraceShown {
                files_max: arguments.top,
                helpers: arguments.helpers,
            };
            let style = output::style_aside(to);
            report::of_report(report, shown, style).show(style)
        }
    };
    if let Some(list) = list {
        return list.finish(&text);
    }
    // Behind what the command wrote last.
    let gap = if to.is_none() && !arguments.json {
        "\n"
    } else {
        ""
    };
    output::write_aside(to, &format!("{gap}{text}"))
}
