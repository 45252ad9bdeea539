//! Starts probe processes and talks to them.
#![expect(
    clippy::disallowed_methods,
    reason = "trials are one of two places that start processes"
)]

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use toll_system::children;
use toll_system::children::end_tree;
use toll_system::interrupt::Interrupt;
use toll_wire::{
    Failure, FailureKind, MESSAGE_BYTES_MAX, Outcome, PADDING_VARIABLE, Request, WIRE_VERSION,
};

use super::PrestartedProbe;
use super::answer::{Answer, End};

/// Where the probe finds programs, whatever the user's `PATH` is.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Interval between checks whether a probe has ended after its answer, if its end cannot be waited
/// for. Also the longest single wait for that end.
const END_POLL: Duration = Duration::from_micros(200);
const END_LOOK_EVERY: Duration = Duration::from_millis(200);

/// Longest time of busy-waiting for the end of a probe. The probe has answered and its timed region
/// is over, so the wait disturbs nothing. A CPU that slept instead would take as long to wake up as
/// the probe takes to end, especially in a virtual machine.
const END_SPIN: Duration = Duration::from_micros(500);

/// Options for the process of one trial.
pub struct ProbeOptions<'a> {
    /// Called with the probe's PID before the probe gets its request.
    pub admit: &'a dyn Fn(u32) -> Result<(), String>,
    /// Number of bytes by which the probe's environment is padded (see
    /// [`crate::plan::Plan::padding_bytes`]).
    pub padding_bytes: usize,
    /// Padding of the next trial's probe, if a trial is known to follow. The next probe is started
    /// as soon as the current one has answered, and starts up while the trial is recorded.
    pub next_padding_bytes: Option<usize>,
    /// Longest time for an answer.
    pub timeout: Duration,
}

#[derive(Debug, Clone)]
pub struct Probe {
    path: PathBuf,
}

impl Probe {
    /// Finds the probe: `TOLL_PROBE`, or next to this program, or in `../libexec/toll` relative to
    /// this program. A probe that `TOLL_PROBE` does not name must have this program's version.
    pub fn find() -> Result<Self, String> {
        if let Some(path) = std::env::var_os("TOLL_PROBE").map(PathBuf::from) {
            return if path.is_file() {
                Ok(Self { path })
            } else {
                Err(format!(
                    "cannot find toll-probe: TOLL_PROBE is {}, which is not a file",
                    path.display()
                ))
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
            Some(path) => {
                let probe = Self { path: path.clone() };
                probe.check_version().map(|()| probe)
            }
            None => Err(format!(
                "cannot find toll-probe: it is not next to {}; build the whole workspace, or set \
                 TOLL_PROBE to its path",
                own.display()
            )),
        }
    }

    /// Refuses another version: after an update of only this program or only the probe, the probe
    /// would measure other work than this program assumes.
    fn check_version(&self) -> Result<(), String> {
        let path = self.path.display();
        let own = env!("CARGO_PKG_VERSION");
        let wanted = format!("toll-probe {own} (wire version {WIRE_VERSION})");
        let output = Command::new(&self.path)
            .env_clear()
            .arg("--version")
            .output();
        let output = output.map_err(|error| format!("cannot start {path}: {error}"))?;
        let version = String::from_utf8_lossy(&output.stdout);
        let version = version
            .lines()
            .next()
            .unwrap_or("a program without a version");
        if version == wanted {
            return Ok(());
        }
        Err(format!(
            "cannot use {path}: it is {version}, and toll {own} needs {wanted}; install both from the \
             same package"
        ))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Starts a probe, which waits for its request. Its environment is padded by `padding_bytes`
    /// (see [`crate::plan::Plan::padding_bytes`]).
    fn start(&self, padding_bytes: usize) -> io::Result<PrestartedProbe> {
        let mut command = Command::new(&self.path);
        // No variable of the user may change how the probe is loaded, allocates or measures;
        // commands get the variables with the request.
        command.env_clear().env("PATH", PATH).env("LC_ALL", "C");
        if let Some(home) = std::env::var_os("HOME") {
            command.env("HOME", home);
        }
        let child = command
            .env(PADDING_VARIABLE, "x".repeat(padding_bytes))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // The probe has its own group. So ^C at the terminal reaches only toll, and the probe
            // can be ended with everything that it started.
            .process_group(0)
            .spawn()?;
        Ok(PrestartedProbe::new(child, padding_bytes))
    }

    /// Runs one trial. Returns `None` if an interrupt ended the trial. Kills the processes that the
    /// trial leaves running, unless the request says otherwise.
    ///
    /// `prestarted` is the probe, if any, that was started for this trial while the previous trial
    /// was recorded. The probe of the next trial replaces it.
    pub fn run(
        &self,
        request: &Request,
        options: &ProbeOptions<'_>,
        prestarted: &mut Option<PrestartedProbe>,
        interrupt: &Interrupt,
    ) -> Option<Outcome> {
        children::adopt_orphans();
        let started = match prestarted.take() {
            Some(waiting) if waiting.padding_bytes() == options.padding_bytes => Ok(waiting),
            _ => self.start(options.padding_bytes),
        };
        let mut child = match started {
            Ok(waiting) => waiting.into_child(),
            Err(error) => {
                let message = format!("cannot start {}: {error}", self.path.display());
                return failed(FailureKind::Instrument, message);
            }
        };
        // The probe is among these children. It has ended before any other children are looked for.
        let mut known = children::of_this_process();
        let outcome = self.converse(&mut child, request, options, prestarted, interrupt);
        if !request.may_leave_processes {
            known.extend(prestarted.as_ref().map(PrestartedProbe::pid));
            children::end_all_but(&known);
        }
        outcome
    }

    /// Runs one trial that belongs to no run. Returns `None` if an interrupt ended the trial.
    pub fn run_alone(&self, request: &Request, interrupt: &Interrupt) -> Option<Outcome> {
        const TIMEOUT: Duration = Duration::from_secs(60);
        let options = ProbeOptions {
            admit: &|_| Ok(()),
            padding_bytes: 0,
            next_padding_bytes: None,
            timeout: TIMEOUT,
        };
        self.run(request, &options, &mut None, interrupt)
    }

    /// Starts the probe of the next trial. A failure is not reported here: the next trial tries
    /// again, and reports it.
    fn start_next(&self, options: &ProbeOptions<'_>) -> Option<PrestartedProbe> {
        self.start(options.next_padding_bytes?).ok()
    }

    /// Sends the request to a probe, and waits for its answer and its end.
    fn converse(
        &self,
        child: &mut Child,
        request: &Request,
        options: &ProbeOptions<'_>,
        prestarted: &mut Option<PrestartedProbe>,
        interrupt: &Interrupt,
    ) -> Option<Outcome> {
        // The probe waits for its request and has used almost no memory yet.
        if let Err(message) = (options.admit)(child.id()) {
            end_tree(child);
            return failed(FailureKind::Instrument, message);
        }
        let mut line = toll_wire::encode(request);
        line.push('\n');
        let mut stdin = child.stdin.take().expect("stdin is piped");
        // If the probe has already died, its answer ends early below.
        let _ = stdin.write_all(line.as_bytes());
        drop(stdin);
        let mut answer = Answer::default();
        let deadline = Instant::now() + options.timeout;
        match answer.collect(child, deadline, interrupt) {
            // The next probe starts while the current one ends on another CPU.
            End::Answered => *prestarted = self.start_next(options),
            End::Deadline => {
                end_tree(child);
                let failure = Failure::of_time_limit(options.timeout);
                return Some(Outcome::Failed(failure));
            }
            End::Stopped(pid, name) => {
                end_tree(child);
                let message = format!(
                    "cannot finish the trial: its process {pid} ({name}) was stopped by a signal, \
                     and nobody continued it; measure work that does not stop"
                );
                return failed(FailureKind::Failed, message);
            }
            End::Interrupted => {
                end_tree(child);
                return None;
            }
            End::TooLong => {
                end_tree(child);
                let message = format!("the probe's answer is over {MESSAGE_BYTES_MAX} bytes");
                return failed(FailureKind::Crashed, message);
            }
        }
        let status = await_end(child, deadline, interrupt);
        match answer.response() {
            Ok(response) => Some(response.outcome),
            // The signal that interrupted toll has reached its probe, too.
            Err(_) if interrupt.ends_trial() => None,
            Err(error) => failed(
                FailureKind::Crashed,
                describe_death(&status, &answer.stderr, &error.to_string()),
            ),
        }
    }
}

fn failed(kind: FailureKind, message: String) -> Option<Outcome> {
    Some(Outcome::Failed(Failure { kind, message }))
}

/// Waits for the end of a probe that has answered or gone silent, and so ends soon. Kills a probe
/// that does not end.
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

/// Sleeps until a probe ends, or for a while. A sleep of a fixed length would take a large part of
/// the time of a short trial.
fn sleep_until_end(child: &Child, deadline: Instant) {
    let left = deadline.saturating_duration_since(Instant::now());
    let left = Timespec::try_from(left.min(END_LOOK_EVERY)).expect("short");
    match pidfd_open(Pid::from_child(child), PidfdFlags::empty()) {
        Ok(process) => {
            let mut watched = [PollFd::from_borrowed_fd(process.as_fd(), PollFlags::IN)];
            let _ = poll(&mut watched, Some(&left));
        }
        // There are no more descriptors, or the kernel is older than 5.3.
        Err(_) => std::thread::sleep(END_POLL),
    }
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
