//! One trial in a guest: a fresh probe process, as on the host.
#![expect(
    clippy::disallowed_methods,
    reason = "the init starts the probe of each trial"
)]

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use toll_wire::guest::{GuestTrial, Knob};
use toll_wire::{Failure, FailureKind, MESSAGE_BYTES_MAX, Outcome};

use super::kernel_log::KernelLog;
use super::processes::{PATH, end_processes};
use super::setup::TrialModules;
use super::symbols;
use crate::failure::reason;
use crate::idle;
use crate::workloads::boot::{self, Booted};

pub const PROGRAM: &str = "/proc/1/exe";

/// Maximum number of bytes to keep of a dying probe's standard error.
const STDERR_BYTES_MAX: usize = 4096;

/// Interval between checks whether a probe has ended after its answer.
const END_POLL: Duration = Duration::from_micros(200);

/// Runs a trial, and returns the kernel's symbols if the host requests them.
pub fn run(trial: &GuestTrial, booted: Booted) -> (Outcome, Option<String>) {
    if let Err(failure) = trial.knobs.iter().try_for_each(set) {
        return (Outcome::Failed(failure), None);
    }
    let modules = match TrialModules::insert() {
        Ok(modules) => modules,
        Err(message) => {
            let kind = FailureKind::Unsupported;
            return (Outcome::Failed(Failure { kind, message }), None);
        }
    };
    let log = KernelLog::from_now();
    let outcome = match (measure(trial, booted), log.out_of_memory()) {
        (Outcome::Failed(failure), Some(line)) => Outcome::Failed(Failure {
            message: format!("{}; the guest's kernel said: {line}", failure.message),
            ..failure
        }),
        (outcome, _) => outcome,
    };
    // Processes that a trial left running may use the modules.
    end_processes();
    // Read while the trial's modules are loaded.
    let symbols = trial.wants_symbols.then(symbols::functions);
    drop(modules);
    (outcome, symbols)
}

/// Sets a knob with a single write, as the kernel's files require.
fn set(knob: &Knob) -> Result<(), Failure> {
    let written = File::options()
        .write(true)
        .open(&knob.path)
        .and_then(|mut file| file.write_all(knob.value.as_bytes()));
    written.map_err(|error| {
        let is_absent = error.kind() == std::io::ErrorKind::NotFound;
        Failure {
            kind: if is_absent {
                FailureKind::Unsupported
            } else {
                FailureKind::Instrument
            },
            message: format!(
                "cannot set {} to {:?}: {}; {}",
                knob.path.display(),
                knob.value,
                reason(&error),
                if is_absent {
                    "choose a kernel that has this setting"
                } else {
                    "choose a value that the kernel accepts"
                }
            ),
        }
    })
}

fn measure(trial: &GuestTrial, booted: Booted) -> Outcome {
    let failed = |kind, message: String| Outcome::Failed(Failure { kind, message });
    let mut child = match start(trial, booted) {
        Ok(child) => child,
        Err(error) => {
            let message = format!("cannot start the probe in the guest: {error}");
            return failed(FailureKind::Instrument, message);
        }
    };
    let mut line = toll_wire::encode(&trial.request);
    line.push('\n');
    let mut stdin = child.stdin.take().expect("stdin is piped");
    // If the probe has already died, its missing answer shows that below.
    let _ = stdin.write_all(line.as_bytes());
    drop(stdin);
    let timeout = Duration::from_millis(trial.timeout_ms);
    // On a clock of instructions the deadline would limit instructions, not
    // time.
    let deadline = (!idle::is_clock_of_instructions()).then(|| Instant::now() + timeout);
    let mut answer = Answer::default();
    match answer.collect(&mut child, deadline) {
        End::Closed => {}
        End::Deadline => {
            end_tree(&mut child);
            return Outcome::Failed(Failure::of_time_limit(timeout));
        }
        End::TooLong => {
            end_tree(&mut child);
            let message = format!("the probe's answer is over {MESSAGE_BYTES_MAX} bytes");
            return failed(FailureKind::Crashed, message);
        }
    }
    // A probe that answered but does not exit is killed at the deadline.
    let status = loop {
        match child.try_wait() {
            Ok(None) if !is_over(deadline) => std::thread::sleep(END_POLL),
            Ok(None) => end_tree(&mut child),
            other => break other.ok().flatten(),
        }
    };
    match toll_wire::decode_response(String::from_utf8_lossy(&answer.stdout).trim_end()) {
        Ok(response) => response.outcome,
        Err(error) => failed(
            FailureKind::Crashed,
            describe_death(status, &answer.stderr, &error.to_string()),
        ),
    }
}

fn start(trial: &GuestTrial, booted: Booted) -> std::io::Result<Child> {
    Command::new(PROGRAM)
        .env_clear()
        .env("PATH", PATH)
        .env(boot::VARIABLE, booted.to_text())
        .env(
            toll_wire::PADDING_VARIABLE,
            "x".repeat(trial.padding_bytes as usize),
        )
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // As on the host, where killing the group kills the probe with everything it started.
        .process_group(0)
        .spawn()
}

fn is_over(deadline: Option<Instant>) -> bool {
    deadline.is_some_and(|deadline| Instant::now() >= deadline)
}

/// Kills a probe and everything it started: in a guest that is every process.
fn end_tree(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
    end_processes();
}

fn describe_death(status: Option<ExitStatus>, stderr: &[u8], error: &str) -> String {
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
    TooLong,
}

#[derive(Default)]
struct Answer {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl Answer {
    /// Reads standard output and standard error until standard output ends.
    fn collect(&mut self, child: &mut Child, deadline: Option<Instant>) -> End {
        let mut stdout = child.stdout.take().expect("stdout is piped");
        let mut stderr = child.stderr.take();
        let mut chunk = vec![0_u8; 64 << 10];
        loop {
            if is_over(deadline) {
                return End::Deadline;
            }
            let mut watched = vec![PollFd::from_borrowed_fd(stdout.as_fd(), PollFlags::IN)];
            if let Some(stderr) = &stderr {
                watched.push(PollFd::from_borrowed_fd(stderr.as_fd(), PollFlags::IN));
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let nap = left.and_then(|left| Timespec::try_from(left).ok());
            if poll(&mut watched, nap.as_ref()).is_err() {
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
