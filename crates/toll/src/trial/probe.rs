//! Speaking with a probe process.
#![expect(
    clippy::disallowed_methods,
    reason = "trials are one of two places that start processes"
)]

use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use toll_wire::{Failure, FailureKind, MESSAGE_BYTES_MAX, Outcome, Request};

use super::Interrupt;
use crate::environment::MemoryLimit;

/// Most bytes of a dying probe's standard error that are kept.
const STDERR_BYTES_MAX: usize = 4096;

/// Time between looks whether a probe has ended after its answer.
const END_POLL: Duration = Duration::from_micros(200);

/// The probe program.
#[derive(Debug, Clone)]
pub struct Probe {
    path: PathBuf,
}

impl Probe {
    /// Finds the probe: `TOLL_PROBE`, else beside this program, else under
    /// `../libexec/toll` of it.
    ///
    /// # Errors
    /// If it is in none of these places.
    pub fn find() -> Result<Self, String> {
        if let Some(path) = std::env::var_os("TOLL_PROBE").map(PathBuf::from) {
            return match path.is_file() {
                true => Ok(Self { path }),
                false => Err(format!(
                    "cannot find toll-probe: TOLL_PROBE is {}, and no file is there",
                    path.display()
                )),
            };
        }
        let own =
            std::env::current_exe().map_err(|error| format!("cannot find toll-probe: {error}"))?;
        let directory = own.parent().unwrap_or(Path::new("/"));
        let places = [
            directory.join("toll-probe"),
            directory.join("../libexec/toll/toll-probe"),
        ];
        match places.iter().find(|path| path.is_file()) {
            Some(path) => Ok(Self { path: path.clone() }),
            None => Err(format!(
                "cannot find toll-probe: it is not beside {}; build the whole workspace, or set \
                 TOLL_PROBE to its path",
                own.display()
            )),
        }
    }

    /// Where the program lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Runs one trial. `None` if an interrupt ended it.
    ///
    /// The environment is padded with `padding_bytes` (see
    /// [`crate::plan::Plan::padding_bytes`]).
    pub fn run(
        &self,
        request: &Request,
        padding_bytes: usize,
        timeout: Duration,
        interrupt: &Interrupt,
    ) -> Option<Outcome> {
        self.run_under(None, request, padding_bytes, timeout, interrupt)
    }

    /// Runs one trial as [`Self::run`] does, with a limit on the memory of the
    /// probe and all that it starts.
    pub fn run_under(
        &self,
        limit: Option<&MemoryLimit>,
        request: &Request,
        padding_bytes: usize,
        timeout: Duration,
        interrupt: &Interrupt,
    ) -> Option<Outcome> {
        let failed = |kind, message: String| Some(Outcome::Failed(Failure { kind, message }));
        let spawned = Command::new(&self.path)
            .env("TOLL_PADDING", "x".repeat(padding_bytes))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Its own group, so that a ^C at the terminal reaches toll alone,
            // and the probe can be ended with all that it started.
            .process_group(0)
            .spawn();
        let mut child = match spawned {
            Ok(child) => child,
            Err(error) => {
                let message = format!("cannot start {}: {error}", self.path.display());
                return failed(FailureKind::Instrument, message);
            }
        };
        // It waits for its request and has taken next to no memory yet.
        if let Some(Err(message)) = limit.map(|limit| limit.admit(child.id())) {
            end_tree(&mut child);
            return failed(FailureKind::Instrument, message);
        }
        let mut line = toll_wire::encode(request);
        line.push('\n');
        let mut stdin = child.stdin.take().expect("stdin is piped");
        // A probe that died already shows as an end of its answer below.
        let _ = stdin.write_all(line.as_bytes());
        drop(stdin);
        let mut answer = Answer::default();
        let deadline = Instant::now() + timeout;
        match answer.collect(&mut child, deadline, interrupt) {
            End::Closed => {}
            End::Deadline => {
                end_tree(&mut child);
                let message = format!(
                    "cannot finish the trial: it was stopped after {} s; raise trial_timeout or \
                     make its work smaller",
                    timeout.as_secs_f64()
                );
                return failed(FailureKind::TimedOut, message);
            }
            End::Interrupted => {
                end_tree(&mut child);
                return None;
            }
            End::TooLong => {
                end_tree(&mut child);
                let message = format!("the probe's answer is over {MESSAGE_BYTES_MAX} bytes");
                return failed(FailureKind::Crashed, message);
            }
        }
        // One that answered but does not end is ended.
        let status = loop {
            match child.try_wait() {
                Ok(None) if Instant::now() < deadline => std::thread::sleep(END_POLL),
                Ok(None) => end_tree(&mut child),
                other => break other.ok().flatten(),
            }
        };
        match toll_wire::decode_response(String::from_utf8_lossy(&answer.stdout).trim_end()) {
            Ok(response) => Some(response.outcome),
            Err(error) => failed(
                FailureKind::Crashed,
                describe_death(&status, &answer.stderr, &error.to_string()),
            ),
        }
    }
}

fn describe_death(status: &Option<std::process::ExitStatus>, stderr: &[u8], error: &str) -> String {
    let how = match status {
        Some(status) => match (status.signal(), status.code()) {
            (Some(signal), _) => format!("the probe was killed by signal {signal}"),
            (None, Some(code)) if code != 0 => format!("the probe ended with status {code}"),
            _ => error.to_owned(),
        },
        None => error.to_owned(),
    };
    let stderr = String::from_utf8_lossy(stderr);
    match stderr.lines().rev().find(|line| !line.trim().is_empty()) {
        Some(last) => format!("{how}: {}", last.trim()),
        None => how,
    }
}

enum End {
    Closed,
    Deadline,
    Interrupted,
    TooLong,
}

#[derive(Default)]
struct Answer {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl Answer {
    /// Reads both outputs until standard output ends.
    fn collect(&mut self, child: &mut Child, deadline: Instant, interrupt: &Interrupt) -> End {
        let mut stdout = child.stdout.take().expect("stdout is piped");
        let mut stderr = child.stderr.take();
        let mut chunk = vec![0_u8; 64 << 10];
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return End::Deadline;
            }
            if interrupt.signal().is_some() {
                return End::Interrupted;
            }
            let mut watched = vec![PollFd::from_borrowed_fd(stdout.as_fd(), PollFlags::IN)];
            if let Some(stderr) = &stderr {
                watched.push(PollFd::from_borrowed_fd(stderr.as_fd(), PollFlags::IN));
            }
            // An interrupt that comes between the check above and poll would
            // be slept through, so no sleep is longer than this.
            let nap = left.min(Duration::from_millis(200));
            let nap = Timespec::try_from(nap).expect("short");
            if poll(&mut watched, Some(&nap)).is_err() {
                continue;
            }
            let ready = |i: usize| watched.get(i).is_some_and(|fd| !fd.revents().is_empty());
            let (stdout_ready, stderr_ready) = (ready(0), ready(1));
            if stderr_ready {
                let count = stderr
                    .as_mut()
                    .map_or(0, |pipe| pipe.read(&mut chunk).unwrap_or(0));
                if count == 0 {
                    stderr = None;
                }
                let room = STDERR_BYTES_MAX.saturating_sub(self.stderr.len());
                self.stderr.extend_from_slice(&chunk[..count.min(room)]);
            }
            if stdout_ready {
                match stdout.read(&mut chunk) {
                    Ok(0) | Err(_) => return End::Closed,
                    Ok(count) => self.stdout.extend_from_slice(&chunk[..count]),
                }
                if self.stdout.len() > MESSAGE_BYTES_MAX {
                    return End::TooLong;
                }
            }
        }
    }
}

/// Ends a probe and everything that it started, also what made groups of its
/// own.
fn end_tree(child: &mut Child) {
    let Ok(root) = i32::try_from(child.id()) else {
        return;
    };
    // Stopped first, so that no child is born between the look and the kill.
    let mut found = vec![root];
    let mut next = 0;
    while let Some(&pid) = found.get(next) {
        signal(pid, Signal::STOP);
        found.extend(children(pid));
        next += 1;
    }
    for &pid in found.iter().rev() {
        signal(pid, Signal::KILL);
    }
    if let Some(group) = Pid::from_raw(root) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    let _ = child.wait();
}

fn signal(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        let _ = kill_process(pid, signal);
    }
}

fn children(pid: i32) -> Vec<i32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task"));
    tasks
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok())
        .flat_map(|list| {
            list.split_whitespace()
                .filter_map(|pid| pid.parse().ok())
                .collect::<Vec<i32>>()
        })
        .collect()
}
