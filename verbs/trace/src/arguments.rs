//! The options of `toll trace`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use toll_core::spec::quantity::parse_duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum With {
    /// Let the kernel count; needs root
    Bpf,
    /// Stop the program at each call
    Strace,
}

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
with -o. As root, the kernel counts (BPF); a program with many small calls then takes about twice as
long. Otherwise strace counts, which slows it down by a factor of ten to a hundred; --calls needs
strace. Prices are not affected: calls are priced by separate measurements, made once and stored.

--pid traces a running process from now on. Files that it opened before are recognized, too. ^C or
the end of --for ends the trace, not the process.

--cgroup traces a container or a service: the calls that processes make in the control group, or in
a group below it. A process may have been there before, move in later, or be forked there. The trace
of an empty group waits for a process. PATH is a directory of cgroup v2, or a path below its mount
point.

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
    pub(super) command: Vec<OsString>,
    /// Trace this running process instead, with its threads and child processes, until the process
    /// ends or ^C; needs BPF
    #[arg(long, value_name = "PID", group = "running", conflicts_with_all = ["command", "calls"])]
    pub(super) pid: Option<u32>,
    /// Trace all processes of this control group instead, until the last one ends or ^C; for
    /// example a container's, or system.slice/NAME.service; needs BPF and cgroup v2
    #[arg(long, value_name = "PATH", group = "running", conflicts_with_all = ["command", "calls"])]
    pub(super) cgroup: Option<PathBuf>,
    /// How long to trace, for example 10s
    #[arg(long = "for", value_name = "TIME", value_parser = parse_duration, requires = "running", conflicts_with = "command")]
    pub(super) time: Option<Duration>,
    /// What counts the calls [default: bpf if it is permitted, else strace]
    #[arg(long, value_enum)]
    pub(super) with: Option<With>,
    /// Write the summary, and the list of --calls, to this file (`-`: standard
    /// output) instead of standard error
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Write the summary as one JSON document
    #[arg(long)]
    pub(super) json: bool,
    /// List every call with its arguments and return value, and every signal,
    /// before the summary; strings are cut at 32 bytes. Counts all calls, as --all
    /// does
    #[arg(long)]
    pub(super) calls: bool,
    /// Show the sizes of calls on at most N files
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(super) top: usize,
    /// Also show programs with less than 5 % of the time under trace, and the
    /// files that only they used
    #[arg(long)]
    pub(super) helpers: bool,
    /// Count every system call, not only those that move bytes; slower with strace
    #[arg(long)]
    pub(super) all: bool,
    /// Price calls by this run of `toll prices` [default: the newest run of this machine that was
    /// measured while the machine was quiet; without such a run, the necessary rows are measured]
    #[arg(long, value_name = "RUN", conflicts_with = "measure")]
    pub(super) cost_model: Option<String>,
    /// Measure again the cost of calls here, which takes a few seconds
    #[arg(long)]
    pub(super) measure: bool,
    /// Do not price the calls
    #[arg(long, conflicts_with_all = ["cost_model", "measure"])]
    pub(super) no_prices: bool,
    /// Directory for the files whose reads and writes are measured [default:
    /// $TOLL_WORK_DIR, else $XDG_CACHE_HOME/toll/work]
    #[arg(long, value_name = "DIR")]
    pub(super) work_dir: Option<PathBuf>,
}
