//! The command `toll observe devices`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail};
use clap::Args;
use toll_observe::devices::{Ended, Report};
use toll_system::interrupt::Interrupt;
use toll_system::strace::{Strace, TraceEnd};
use toll_system::{Failure, output};

use super::opened_devices::{OpenedDevices, TRACED_CALLS};
use crate::show;
use crate::system::devices;

const NOTES: &str = "\
Examples:
  toll observe devices                    every process that you may inspect
  toll observe devices $$ 1               some processes, by number
  toll observe devices ssh-keygen -lf key a command, from its start to its end
  toll observe devices -o held.json --json -- sh -c 'head -c 9 /dev/urandom | wc -c'

A command uses the terminal, its input and its output as usual; the report goes to standard error,
or to a file with -o. The command runs under strace, which sees each device that it opens or maps.
The report also has devices that the command inherited, but no descriptors that it received over a
socket. Devices of a child process are listed with that process.

Exit status with a command: that of the command, 128 + n if signal n ended it, 126 if it
cannot be executed, 127 if it does not exist; 5 if strace is missing or may not trace.";

#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub(super) struct DevicesArguments {
    /// Process numbers, or a command to run with its arguments [default: all processes]
    #[arg(value_name = "PID|COMMAND", trailing_var_arg = true)]
    of: Vec<OsString>,
    /// Write the report to this file (`-`: standard output) [default: standard output;
    /// with a command, standard error]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write one JSON document
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &DevicesArguments) -> anyhow::Result<ExitCode> {
    match pids(&arguments.of)? {
        Some(pids) => look(arguments, &pids),
        None => watch(arguments),
    }
}

/// Parses process numbers; empty means all processes. `None` if the words are a command.
fn pids(words: &[OsString]) -> anyhow::Result<Option<Vec<u32>>> {
    let is_number = |word: &OsString| {
        let text = word.to_str().unwrap_or_default();
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    if !words.first().is_none_or(is_number) {
        return Ok(None);
    }
    let wrong = |word: &OsString| {
        Failure::Usage(format!(
            "cannot inspect process {}: it is not a process number; give only numbers, or a \
             command whose first word is not a number",
            word.to_string_lossy()
        ))
    };
    let number = |word: &OsString| {
        let parsed = word.to_str().and_then(|text| text.parse().ok());
        parsed.ok_or_else(|| wrong(word))
    };
    Ok(Some(words.iter().map(number).collect::<Result<_, _>>()?))
}

fn look(arguments: &DevicesArguments, pids: &[u32]) -> anyhow::Result<ExitCode> {
    let tables = devices::tables();
    let seen = match pids {
        [] => devices::all(&tables).context("cannot read /proc")?,
        pids => devices::some(pids, &tables),
    };
    if !pids.is_empty() && seen.count == 0 {
        let reason = match seen.unseen.first() {
            Some(one) => format!("{}; run as root", one.reason),
            None => "there is no such process".into(),
        };
        let named: Vec<String> = pids.iter().map(u32::to_string).collect();
        bail!("cannot inspect process {}: {reason}", named.join(", "));
    }
    let mut notes = Vec::new();
    if devices::hides_processes() {
        let note = "/proc hides the processes of other users here (hidepid), so they are not \
                    counted; run as root to see all";
        notes.push(note.into());
    }
    let missing =
        pids.len() as u64 - (seen.count + seen.unseen.len() as u64).min(pids.len() as u64);
    if missing > 0 {
        notes.push(format!("{missing} of the requested processes do not exist"));
    }
    let report = Report {
        version: 1,
        command: None,
        ended: None,
        processes_seen: seen.count,
        processes: seen.processes,
        unseen: seen.unseen,
        notes,
    };
    show(arguments, &report)?;
    Ok(ExitCode::SUCCESS)
}

fn watch(arguments: &DevicesArguments) -> anyhow::Result<ExitCode> {
    if let Some(code) = toll_system::strace::unstartable(&arguments.of[0]) {
        return Ok(code);
    }
    let strace = Strace::find()
        .map_err(Failure::Prerequisite)?
        .with_devices();
    let cannot = "cannot listen for signals";
    let interrupt = Interrupt::listen().context(cannot)?;
    signal_hook::flag::register(signal_hook::consts::SIGQUIT, Arc::default()).context(cannot)?;
    let mut signal = || {
        let signal = interrupt.signal()?;
        interrupt.forget();
        Some(signal)
    };
    let inherited = devices::inherited();
    let mut watch = OpenedDevices::default();
    let end = strace
        .run(&arguments.of, TRACED_CALLS, &mut signal, &mut |line| {
            watch.feed(line)
        })
        .map_err(anyhow::Error::msg)?;
    let (processes, processes_seen) = watch.finish(inherited, &devices::tables());
    let words = arguments
        .of
        .iter()
        .map(|word| word.to_string_lossy().into_owned());
    let report = Report {
        version: 1,
        command: Some(words.collect()),
        ended: Some(ended(&end)),
        processes_seen,
        processes,
        unseen: Vec::new(),
        notes: Vec::new(),
    };
    show(arguments, &report)?;
    Ok(match ended(&end) {
        Ended::Signal(signal) => toll_system::exit_code_of(signal),
        Ended::Status(status) => ExitCode::from(u8::try_from(status).unwrap_or(1)),
    })
}

fn ended(end: &TraceEnd) -> Ended {
    match (end.signal, end.status) {
        (Some(signal), _) => Ended::Signal(signal),
        (None, status) => Ended::Status(status.unwrap_or_default()),
    }
}

fn show(arguments: &DevicesArguments, report: &Report) -> anyhow::Result<()> {
    let to = arguments.output.as_deref();
    // The report comes after what the command wrote last.
    let (to, gap) = match to {
        None if report.command.is_none() => (Some(Path::new("-")), ""),
        None if !arguments.json => (None, "\n"),
        to => (to, ""),
    };
    let text = if arguments.json {
        output::json_text(report)? + "\n"
    } else {
        show::devices(report).show(output::style_aside(to))
    };
    output::write_aside(to, &format!("{gap}{text}"))
}
