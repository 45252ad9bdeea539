//! Counting the calls of a command or of running processes by BPF.
#![expect(
    clippy::disallowed_methods,
    reason = "the environment is one of two places that start processes"
)]

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use signal_hook::consts::SIGINT;
use toll_calls::model::WatchEnd;
use toll_system::Cannot;
use toll_system::children::children;
use toll_system::process;
use toll_system::strace::{TraceEnd, has_terminal};

use super::call_counter::{Counter, Marker};
use super::cgroup::Cgroup;

/// Longest wait before the next check for a signal or the end of the time.
const NAP: Duration = Duration::from_millis(100);

/// Runs a command to its end with the standard streams of this program, and also waits for
/// the processes that it left running. Forwards a signal to the command; after the command's
/// end, a signal ends the wait.
pub fn run(
    counter: &mut Counter,
    command: &[OsString],
    signal: &mut dyn FnMut() -> Option<i32>,
) -> Result<TraceEnd, String> {
    let begin = Instant::now();
    let mut child = start(command, counter.marker())?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let pid = pid.expect("a running process has a PID");
    let process = pidfd_open(pid, PidfdFlags::empty())
        .map_err(|error| format!("cannot wait for the command: {error}"))?;
    let wrong = |error: io::Error| format!("cannot wait for the command: {error}");
    let mut status = None;
    loop {
        if status.is_none() {
            status = child.try_wait().map_err(wrong)?;
        }
        if status.is_some() && counter.alive() == 0 {
            break;
        }
        match (signal(), status) {
            (Some(_), Some(_)) => break,
            (Some(signal), None) => pass_on(signal, pid),
            (None, _) => {}
        }
        let until = status.is_none().then_some(process.as_fd());
        counter.wait(until, NAP).map_err(wrong)?;
    }
    let status = status.expect("the loop ends after the command");
    Ok(TraceEnd {
        status: status.code(),
        signal: status.signal(),
        wall: begin.elapsed(),
    })
}

fn start(command: &[OsString], marker: Marker) -> Result<Child, String> {
    let name = &command[0];
    let path = if name.to_string_lossy().contains('/') {
        PathBuf::from(name)
    } else {
        // A search of PATH in the new process would be counted.
        process::find(&name.to_string_lossy()).unwrap_or_else(|| PathBuf::from(name))
    };
    let mut child = Command::new(&path);
    child.arg0(name).args(&command[1..]);
    // SAFETY: marking makes two system calls and neither allocates memory nor takes a lock.
    unsafe { child.pre_exec(move || marker.mark_self()) };
    child.spawn().cannot("run", &path)
}

fn pass_on(signal: i32, pid: Pid) {
    if signal == SIGINT && has_terminal() {
        return;
    }
    if let Some(signal) = Signal::from_named_raw(signal) {
        // The process may just have ended.
        let _ = kill_process(pid, signal);
    }
}

/// Whose calls are counted.
#[derive(Debug)]
pub enum Watched {
    Processes(Vec<OwnedFd>),
    /// The processes of a control group, until the last one has ended.
    Cgroup {
        cgroup: Cgroup,
        was_populated: bool,
    },
}

impl Watched {
    fn has_ended(&mut self, counter: &Counter) -> bool {
        match self {
            Self::Processes(processes) => {
                processes.retain(|process| !has_ended(process.as_fd()));
                processes.is_empty() && counter.alive() == 0
            }
            Self::Cgroup {
                cgroup,
                was_populated,
            } => {
                // A process may come and go between two checks. A process may also appear between
                // the two queries here.
                let had_process = *was_populated || counter.has_counted();
                let is_populated = cgroup.is_populated();
                *was_populated = had_process || is_populated == Some(true);
                match is_populated {
                    Some(is_populated) => had_process && !is_populated,
                    None => true,
                }
            }
        }
    }

    /// A descriptor that becomes readable once a process has ended.
    fn ending(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Processes(processes) => processes.first().map(AsFd::as_fd),
            Self::Cgroup { .. } => None,
        }
    }
}

/// Counts the calls of a running process and of its descendants from now on. Also returns
/// its command.
pub fn mark_processes(counter: &mut Counter, pid: u32) -> Result<(Watched, Vec<String>), String> {
    let mut marked = BTreeSet::new();
    let mut processes = Vec::new();
    // Repeats until nothing new is found: a process that is not marked yet may start another.
    loop {
        let found = descendants(pid);
        let new: Vec<u32> = found
            .into_iter()
            .filter(|pid| marked.insert(*pid))
            .collect();
        if new.is_empty() {
            break;
        }
        for one in new {
            match mark(counter, one) {
                Ok(process) => processes.push(process),
                Err(reason) if one == pid => {
                    return Err(format!("cannot trace process {pid}: {reason}"));
                }
                // The process has ended meanwhile.
                Err(_) => {}
            }
        }
    }
    Ok((Watched::Processes(processes), command_of(pid)))
}

fn mark(counter: &mut Counter, pid: u32) -> Result<OwnedFd, String> {
    let number = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let none = || "there is no such process".to_owned();
    let process =
        pidfd_open(number.ok_or_else(none)?, PidfdFlags::empty()).map_err(|error| match error {
            rustix::io::Errno::SRCH => none(),
            rustix::io::Errno::INVAL | rustix::io::Errno::NOENT => {
                "it is a thread; give the number of its process (Tgid in /proc/PID/status)".into()
            }
            error => error.to_string(),
        })?;
    let comm = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let exe = std::fs::read_link(format!("/proc/{pid}/exe")).ok();
    let name = exe.and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
    let name = name.unwrap_or_else(|| comm.trim_end().to_owned());
    counter
        .mark(process.as_fd(), &name)
        .map_err(|error| error.to_string())?;
    Ok(process)
}

/// Returns a process and all its descendants.
fn descendants(pid: u32) -> Vec<u32> {
    let mut all = vec![pid];
    let mut at = 0;
    while let Some(pid) = all.get(at) {
        let children = i32::try_from(*pid).map(children).unwrap_or_default();
        let children = children
            .into_iter()
            .filter_map(|pid| u32::try_from(pid).ok());
        // This program may be a descendant; its own calls are not part of the trace.
        all.extend(children.filter(|pid| *pid != std::process::id()));
        at += 1;
    }
    all
}

fn command_of(pid: u32) -> Vec<String> {
    let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = words.strip_suffix(b"\0").unwrap_or(&words);
    let words = words.split(|byte| *byte == 0);
    words
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect()
}

/// Counts until everything watched has ended, a signal arrives, or the time is up.
pub fn watch(
    counter: &mut Counter,
    mut watched: Watched,
    time: Option<Duration>,
    signal: &mut dyn FnMut() -> Option<i32>,
) -> Result<(WatchEnd, Duration), String> {
    let begin = Instant::now();
    let end = loop {
        if signal().is_some() {
            break WatchEnd::Interrupted;
        }
        if watched.has_ended(counter) {
            break WatchEnd::AllEnded;
        }
        let left = time.map(|time| time.saturating_sub(begin.elapsed()));
        if left == Some(Duration::ZERO) {
            break WatchEnd::TimeOver;
        }
        counter
            .wait(watched.ending(), left.unwrap_or(NAP).min(NAP))
            .map_err(|error| format!("cannot wait for the processes: {error}"))?;
    };
    Ok((end, begin.elapsed()))
}

fn has_ended(process: BorrowedFd<'_>) -> bool {
    let mut watched = [PollFd::from_borrowed_fd(process, PollFlags::IN)];
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut watched, Some(&now)).is_ok_and(|ready| ready > 0)
}
