//! Speaking with a probe process.
#![expect(
    clippy::disallowed_methods,
    reason = "trials are one of two places that start processes"
)]

use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use toll_wire::{Failure, FailureKind, MESSAGE_BYTES_MAX, Outcome, Request, Response, WireError};

use super::Interrupt;
use crate::environment::MemoryLimit;
use crate::environment::children::{self, end_tree};

/// Most bytes of a dying probe's standard error that are kept.
const STDERR_BYTES_MAX: usize = 4096;

/// Time between looks whether a probe has ended after its answer, where its end
/// cannot be waited for, and longest wait for it at once.
const END_POLL: Duration = Duration::from_micros(200);
const END_LOOK_EVERY: Duration = Duration::from_millis(200);

/// Longest time that the end of a probe is asked for over and over. Its answer is
/// there and its timed region over, so that this disturbs nothing, and a CPU that
/// went to sleep for it, in a virtual machine above all, would take as long to
/// wake up as the probe takes to end.
const END_SPIN: Duration = Duration::from_micros(500);

/// Bytes read of an answer at once. Most answers are shorter.
const CHUNK_BYTES: usize = 16 << 10;

/// Time between looks whether a process of the trial is stopped. One that is at
/// two looks in a row is so for good. They cost a part in ten thousand of the
/// time of trials that are longer.
const STOPPED_LOOK_EVERY: Duration = Duration::from_secs(1);

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

    /// Runs one trial. `None` if an interrupt ended it. Whatever it leaves
    /// running is ended, unless the request says otherwise.
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
        children::adopt_orphans();
        let known = children::of_this_process();
        let outcome = self.converse(limit, request, padding_bytes, timeout, interrupt);
        if !request.may_leave_processes {
            children::end_all_but(&known);
        }
        outcome
    }

    /// Starts the probe, asks it, and waits for its answer and its end.
    fn converse(
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
            End::Answered => {}
            End::Deadline => {
                end_tree(&mut child);
                let message = format!(
                    "cannot finish the trial: it was stopped after {} s; raise trial_timeout or \
                     make its work smaller",
                    timeout.as_secs_f64()
                );
                return failed(FailureKind::TimedOut, message);
            }
            End::Stopped(pid, name) => {
                end_tree(&mut child);
                let message = format!(
                    "cannot finish the trial: its process {pid} ({name}) was stopped by a signal, \
                     and nobody continued it; leave that out of the work"
                );
                return failed(FailureKind::Failed, message);
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
        let status = await_end(&mut child, deadline, interrupt);
        match answer.response() {
            Ok(response) => Some(response.outcome),
            // Who told toll to stop has told its probe, too.
            Err(_) if interrupt.ends_trial() => None,
            Err(error) => failed(
                FailureKind::Crashed,
                describe_death(&status, &answer.stderr, &error.to_string()),
            ),
        }
    }
}

/// Waits for the end of a probe that has answered or fallen silent, which is near.
/// One that does not end is ended.
fn await_end(child: &mut Child, deadline: Instant, interrupt: &Interrupt) -> Option<ExitStatus> {
    let begin = Instant::now();
    loop {
        match child.try_wait() {
            Ok(None) if begin.elapsed() < END_SPIN => std::thread::yield_now(),
            Ok(None) if Instant::now() < deadline && !interrupt.ends_trial() => {
                sleep_until_end(child, deadline);
            }
            Ok(None) => end_tree(child),
            other => return other.ok().flatten(),
        }
    }
}

/// Sleeps until a probe ends, or for a while: a sleep of any fixed length would be
/// a good part of what a short trial takes.
fn sleep_until_end(child: &Child, deadline: Instant) {
    let left = deadline.saturating_duration_since(Instant::now());
    let left = Timespec::try_from(left.min(END_LOOK_EVERY)).expect("short");
    match pidfd_open(Pid::from_child(child), PidfdFlags::empty()) {
        Ok(process) => {
            let mut watched = [PollFd::from_borrowed_fd(process.as_fd(), PollFlags::IN)];
            let _ = poll(&mut watched, Some(&left));
        }
        // Descriptors have run out, or the kernel is older than 5.3.
        Err(_) => std::thread::sleep(END_POLL),
    }
}

fn decode(stdout: &[u8]) -> Result<Response, WireError> {
    toll_wire::decode_response(String::from_utf8_lossy(stdout).trim_end())
}

fn describe_death(status: &Option<ExitStatus>, stderr: &[u8], error: &str) -> String {
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
    /// There is an answer, or there will be none.
    Answered,
    Deadline,
    /// A process of the trial waits to be continued; its number and name.
    Stopped(i32, String),
    Interrupted,
    TooLong,
}

#[derive(Default)]
struct Answer {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    /// What the first line came to, if it was understood at once.
    response: Option<Response>,
    has_line: bool,
}

impl Answer {
    fn response(&mut self) -> Result<Response, WireError> {
        let response = self.response.take();
        response.map_or_else(|| decode(&self.stdout), Ok)
    }

    /// Takes a part of standard output; whether the answer is complete, which is
    /// one line. It is decoded at once, while the probe ends on another CPU.
    fn add(&mut self, chunk: &[u8]) -> bool {
        let is_first_line = !self.has_line;
        let line_end = chunk.iter().position(|byte| *byte == b'\n');
        self.has_line |= line_end.is_some();
        self.stdout.extend_from_slice(chunk);
        if is_first_line && line_end == Some(chunk.len() - 1) {
            self.response = decode(&self.stdout).ok();
        }
        self.response.is_some()
    }

    /// Reads both outputs until the answer is complete or standard output ends.
    fn collect(&mut self, child: &mut Child, deadline: Instant, interrupt: &Interrupt) -> End {
        let mut stdout = child.stdout.take().expect("stdout is piped");
        let mut stderr = child.stderr.take();
        let mut chunk = [0_u8; CHUNK_BYTES];
        let mut stopped = StoppedLook::begin();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if interrupt.ends_trial() {
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
            // Not before what is there was looked at: if toll itself was stopped
            // meanwhile, the answer is in time all the same.
            if left.is_zero() && !stdout_ready {
                return End::Deadline;
            }
            if let Some((pid, name)) = stopped.look(child) {
                return End::Stopped(pid, name);
            }
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
                    Ok(0) | Err(_) => return End::Answered,
                    Ok(count) if self.add(&chunk[..count]) => return End::Answered,
                    Ok(_) => {}
                }
                if self.stdout.len() > MESSAGE_BYTES_MAX {
                    return End::TooLong;
                }
            }
        }
    }
}

/// Looks from time to time whether a process of a trial is stopped.
struct StoppedLook {
    next: Instant,
    seen: Option<(i32, String)>,
}

impl StoppedLook {
    fn begin() -> Self {
        Self {
            next: Instant::now() + STOPPED_LOOK_EVERY,
            seen: None,
        }
    }

    /// The process that was stopped at the last look and is at this one.
    fn look(&mut self, child: &Child) -> Option<(i32, String)> {
        if Instant::now() < self.next {
            return None;
        }
        self.next = Instant::now() + STOPPED_LOOK_EVERY;
        let before = std::mem::replace(&mut self.seen, children::stopped_below(child));
        self.seen.clone().filter(|_| self.seen == before)
    }
}
