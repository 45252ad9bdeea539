//! The wait for a probe's answer.

use std::io::Read;
use std::os::fd::AsFd;
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use toll_system::children;
use toll_system::interrupt::Interrupt;
use toll_wire::{MESSAGE_BYTES_MAX, Response, WireError};

/// Maximum number of bytes of a dying probe's standard error that are kept.
const STDERR_BYTES_MAX: usize = 4096;

/// Bytes of an answer that are read at once. Most answers are shorter.
const CHUNK_BYTES: usize = 16 << 10;

/// Interval between checks whether a process of the trial is stopped. A process that is stopped at
/// two checks in a row counts as stopped for good. The checks cost a ten-thousandth of the time of
/// longer trials.
const STOPPED_LOOK_EVERY: Duration = Duration::from_secs(1);

/// How the wait for an answer ended.
pub(super) enum End {
    /// The answer is there, or there will be none.
    Answered,
    Deadline,
    /// A process of the trial is stopped and waits to be continued. The fields are its PID and
    /// name.
    Stopped(i32, String),
    Interrupted,
    TooLong,
}

#[derive(Default)]
pub(super) struct Answer {
    stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
    /// The decoded first line, if it could be decoded at once.
    response: Option<Response>,
    has_line: bool,
}

impl Answer {
    pub(super) fn response(&mut self) -> Result<Response, WireError> {
        let response = self.response.take();
        response.map_or_else(|| decode(&self.stdout), Ok)
    }

    /// Adds a part of standard output. Returns whether the answer, which is one line, is complete.
    /// A complete answer is decoded at once, while the probe exits on another CPU.
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
    pub(super) fn collect(
        &mut self,
        child: &mut Child,
        deadline: Instant,
        interrupt: &Interrupt,
    ) -> End {
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
            // A poll would sleep through an interrupt that comes after the check above. So no sleep
            // is longer than this nap.
            let nap = left.min(Duration::from_millis(200));
            let nap = Timespec::try_from(nap).expect("short");
            if poll(&mut watched, Some(&nap)).is_err() {
                continue;
            }
            let ready = |i: usize| watched.get(i).is_some_and(|fd| !fd.revents().is_empty());
            let (stdout_ready, stderr_ready) = (ready(0), ready(1));
            // The check comes after the look for output: if toll itself was stopped meanwhile, the
            // answer is still in time.
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

/// Checks from time to time whether a process of a trial is stopped.
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

    /// Returns a process that was stopped at the last check and still is stopped.
    fn look(&mut self, child: &Child) -> Option<(i32, String)> {
        if Instant::now() < self.next {
            return None;
        }
        self.next = Instant::now() + STOPPED_LOOK_EVERY;
        let before = std::mem::replace(&mut self.seen, children::stopped_below(child));
        self.seen.clone().filter(|_| self.seen == before)
    }
}

fn decode(stdout: &[u8]) -> Result<Response, WireError> {
    toll_wire::decode_response(String::from_utf8_lossy(stdout).trim_end())
}
