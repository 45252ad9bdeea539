//! Counts calls by BPF or strace: of which processes, and until when.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use toll_calls::line_tally::LineTally;
use toll_calls::model::Ended;
use toll_calls::slowdown::Counting;
use toll_calls::tally::Tally;
use toll_calls::{ALL_CALLS, TRACED_CALLS};
use toll_host::environment::call_counter::{Counted, Counter, Scope};
use toll_host::environment::cgroup::Cgroup;
use toll_host::environment::counted_run;
use toll_host::environment::counted_run::Watched;
use toll_system::Failure;
use toll_system::interrupt::Interrupt;
use toll_system::strace::{Strace, TraceEnd};

use crate::arguments::{TraceArguments, With};
use crate::call_list::CallList;

/// A source of counts, ready to start.
pub enum Source {
    /// BPF counts the calls, of a control group if one is given.
    Bpf(Box<Counter>, Option<Cgroup>),
    Strace {
        strace: Strace,
        /// Why BPF does not count, if the user named no counter.
        note: Option<String>,
    },
}

/// The counted calls of a command or of processes, and how the trace ended.
pub struct Observation {
    pub command: Vec<String>,
    pub tally: Tally,
    pub ended: Ended,
    pub counting: Counting,
    pub wall: Duration,
    pub notes: Vec<String>,
    /// Whether this program received a signal.
    pub was_interrupted: bool,
}

impl Source {
    pub fn find(arguments: &TraceArguments) -> anyhow::Result<Self> {
        // Listens before anything counts, since a signal must not end this program without a
        // summary.
        Interrupt::listen().context("cannot listen for signals")?;
        let wants_strace = arguments.calls || arguments.with == Some(With::Strace);
        if arguments.with == Some(With::Bpf) && arguments.calls {
            let message = "cannot list calls with BPF: it only counts them; leave out --with";
            return Err(Failure::Usage(message.into()).into());
        }
        let is_watch = arguments.pid.is_some() || arguments.cgroup.is_some();
        if is_watch && wants_strace {
            let message =
                "cannot trace running processes with strace: only BPF can; leave out --with";
            return Err(Failure::Usage(message.into()).into());
        }
        if wants_strace {
            return Self::strace(None);
        }
        let cgroup = arguments.cgroup.as_deref().map(Cgroup::find);
        let cgroup = cgroup.transpose().map_err(Failure::Usage)?;
        let scope = match &cgroup {
            Some(cgroup) => Scope::Cgroup(cgroup.as_fd()),
            None => Scope::Marked,
        };
        match Counter::new(arguments.all, scope) {
            Ok(counter) => Ok(Self::Bpf(Box::new(counter), cgroup)),
            Err(reason) if is_watch || arguments.with.is_some() => {
                Err(Failure::Prerequisite(format!("cannot count with BPF: {reason}")).into())
            }
            Err(reason) => Self::strace(Some(format!(
                "strace counted, which slows a program far more than BPF does: {reason}"
            ))),
        }
    }

    fn strace(note: Option<String>) -> anyhow::Result<Self> {
        let strace = Strace::find().map_err(Failure::Prerequisite)?;
        Ok(Self::Strace { strace, note })
    }

    pub fn observe(
        self,
        arguments: &TraceArguments,
        list: Option<&mut CallList>,
    ) -> anyhow::Result<Observation> {
        let cannot = "cannot listen for signals";
        let interrupt = Interrupt::listen().context(cannot)?;
        // ^\ also reaches the command. The core dump should be the command's, not this
        // program's.
        signal_hook::flag::register(signal_hook::consts::SIGQUIT, Arc::default())
            .context(cannot)?;
        let mut was_interrupted = false;
        let mut signal = || {
            let signal = interrupt.signal()?;
            interrupt.forget();
            was_interrupted = true;
            Some(signal)
        };
        let observation = match (self, arguments.pid) {
            (Self::Bpf(mut counter, None), Some(pid)) => {
                let (watched, command) =
                    counted_run::mark_processes(&mut counter, pid).map_err(Failure::Usage)?;
                watch(*counter, watched, command, arguments.time, &mut signal)
            }
            (Self::Bpf(counter, Some(cgroup)), _) => {
                let command = vec!["cgroup".to_owned(), cgroup.directory.display().to_string()];
                let watched = Watched::Cgroup {
                    cgroup,
                    was_populated: false,
                };
                watch(*counter, watched, command, arguments.time, &mut signal)
            }
            (Self::Bpf(counter, None), None) => count(*counter, arguments, &mut signal),
            (Self::Strace { strace, note }, _) => {
                let mut observation = follow(strace, arguments, list, &mut signal)?;
                observation.notes.extend(note);
                Ok(observation)
            }
        };
        Ok(Observation {
            was_interrupted,
            ..observation?
        })
    }
}

fn ended(end: &TraceEnd) -> Ended {
    match (end.signal, end.status) {
        (Some(signal), _) => Ended::Signal(signal),
        (None, status) => Ended::Status(status.unwrap_or_default()),
    }
}

fn words(arguments: &TraceArguments) -> Vec<String> {
    let words = arguments.command.iter();
    words
        .map(|word| word.to_string_lossy().into_owned())
        .collect()
}

/// Counts the calls of a command with BPF.
fn count(
    mut counter: Counter,
    arguments: &TraceArguments,
    signal: &mut dyn FnMut() -> Option<i32>,
) -> anyhow::Result<Observation> {
    let end =
        counted_run::run(&mut counter, &arguments.command, signal).map_err(anyhow::Error::msg)?;
    counted(counter, words(arguments), ended(&end), end.wall)
}

/// Counts the calls of running processes.
fn watch(
    mut counter: Counter,
    watched: Watched,
    command: Vec<String>,
    time: Option<Duration>,
    signal: &mut dyn FnMut() -> Option<i32>,
) -> anyhow::Result<Observation> {
    let (end, wall) =
        counted_run::watch(&mut counter, watched, time, signal).map_err(anyhow::Error::msg)?;
    counted(counter, command, Ended::Watch(end), wall)
}

fn counted(
    counter: Counter,
    command: Vec<String>,
    ended: Ended,
    wall: Duration,
) -> anyhow::Result<Observation> {
    let Counted {
        tally,
        notes,
        overhead_ns,
    } = counter.finish().map_err(anyhow::Error::msg)?;
    Ok(Observation {
        command,
        tally,
        ended,
        counting: Counting::Bpf { overhead_ns },
        wall,
        notes,
        was_interrupted: false,
    })
}

/// Counts the calls of a command from the output of strace.
fn follow(
    strace: Strace,
    arguments: &TraceArguments,
    mut list: Option<&mut CallList>,
    signal: &mut dyn FnMut() -> Option<i32>,
) -> anyhow::Result<Observation> {
    let calls = if arguments.all || arguments.calls {
        ALL_CALLS
    } else {
        TRACED_CALLS
    };
    let strace = match list {
        Some(_) => strace.with_details(),
        None => strace,
    };
    let mut lines = LineTally::default();
    let end = strace
        .run(&arguments.command, calls, signal, &mut |line| {
            let event = lines.feed(line);
            if let (Some(list), Some(event)) = (&mut list, event) {
                list.add(&event);
            }
        })
        .map_err(anyhow::Error::msg)?;
    let (tally, notes) = lines.finish();
    Ok(Observation {
        command: words(arguments),
        tally,
        ended: ended(&end),
        counting: Counting::Strace,
        wall: end.wall,
        notes,
        was_interrupted: false,
    })
}
