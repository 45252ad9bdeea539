//! Runs a command under strace.
#![expect(
    clippy::disallowed_methods,
    reason = "the environment is one of two places that start processes"
)]

use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Access, access};
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::SIGINT;

use crate::Cannot;
use crate::children::children;
use crate::output;
use crate::process;

/// Longest wait before the next check for a signal to forward.
const NAP: Duration = Duration::from_millis(100);

/// Requested size of the pipe from strace, so that strace seldom waits. The size is the largest
/// that every user may have (`/proc/sys/fs/pipe-max-size`).
const PIPE_BYTES: usize = 1 << 20;

/// Longer lines of strace are cut. Strings are short; only paths are long, at most
/// 4096 bytes each.
const LINE_BYTES_MAX: usize = 1 << 20;

/// How a traced command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceEnd {
    /// The command's exit status; `None` if a signal ended it.
    pub status: Option<i32>,
    /// The signal that ended the command.
    pub signal: Option<i32>,
    /// Wall time from before strace was started to after it ended.
    pub wall: Duration,
}

/// A strace program that works here.
#[derive(Debug, Clone)]
pub struct Strace {
    path: PathBuf,
    /// Whether a filter in the kernel lets only the traced calls stop the program. Otherwise
    /// every call stops it.
    filters: bool,
    /// What strace prints after a descriptor's number, as `--decode-fds` names it.
    decodes: &'static str,
    /// Whether to print the times of calls, and the beginnings of strings and lists.
    has_details: bool,
}

/// Why a command cannot be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unstartable {
    /// There is no program of this name. The exit status is 127, as in shells.
    NotFound(String),
    /// The file is not a program. The exit status is 126.
    NotExecutable(String),
}

impl Strace {
    /// Finds strace and tries it with the command `true`.
    pub fn find() -> Result<Self, String> {
        let path = process::find("strace").ok_or(
            "cannot trace: strace is missing; install the package strace, or put strace into PATH",
        )?;
        let mut strace = Self {
            path,
            filters: true,
            decodes: "path",
            has_details: false,
        };
        match strace.try_out() {
            // Without seccomp in the kernel, strace warns and continues without a filter.
            Ok(warning) if warning.contains("seccomp") => strace.filters = false,
            Ok(_) => {}
            Err(_) => {
                strace.filters = false;
                strace.try_out()?;
            }
        }
        Ok(strace)
    }

    /// Returns the same strace, which prints device numbers after the paths of devices.
    #[must_use]
    pub fn with_devices(self) -> Self {
        Self {
            decodes: "path,dev",
            ..self
        }
    }

    /// Returns the same strace, which prints the time that passed before each line, and the first
    /// 32 bytes of strings.
    #[must_use]
    pub fn with_details(self) -> Self {
        Self {
            has_details: true,
            ..self
        }
    }

    /// Traces `true` and returns what strace printed on standard error.
    fn try_out(&self) -> Result<String, String> {
        let output = Command::new(&self.path)
            .args(self.options(&["read"], Path::new("/dev/null")))
            .arg("true")
            .stdin(Stdio::null())
            .output()
            .cannot("run", &self.path)?;
        let words = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        if output.status.success() {
            Ok(words)
        } else {
            Err(explain(&words))
        }
    }

    fn options(&self, calls: &[&str], output: &Path) -> Vec<OsString> {
        let mut options: Vec<OsString> = [
            // Traces threads and child processes, too.
            "-f",
            // Omits messages about attachments, but not about the exits of threads, which are
            // needed.
            "--quiet=attach,personality",
            "--syscall-times=ns",
        ]
        .map(OsString::from)
        .into();
        options.extend(if self.has_details {
            ["-s", "32", "--relative-timestamps=ns"]
                .map(OsString::from)
                .to_vec()
        } else {
            // Prints no bytes of the moved data.
            ["-s", "0"].map(OsString::from).to_vec()
        });
        options.push(format!("--decode-fds={}", self.decodes).into());
        if !calls.is_empty() {
            if self.filters {
                options.push("--seccomp-bpf".into());
            }
            // With `?`, a call that this architecture lacks is not an error.
            let list: Vec<String> = calls.iter().map(|call| format!("?{call}")).collect();
            options.push("-e".into());
            options.push(format!("trace={}", list.join(",")).into());
        }
        options.extend(["-o".into(), output.as_os_str().to_owned(), "--".into()]);
        options
    }

    /// Runs a command to its end, with the standard streams of this program, and passes each line
    /// of strace to `on_line` as it arrives. `calls` are the calls to trace; an empty list means
    /// all.
    ///
    /// Like strace, this function also waits for processes that the command left running. It polls
    /// `signal` ten times a second and forwards a signal to the command.
    pub fn run(
        &self,
        command: &[OsString],
        calls: &[&str],
        signal: &mut dyn FnMut() -> Option<i32>,
        on_line: &mut dyn FnMut(&str),
    ) -> Result<TraceEnd, String> {
        let wrong = |error: io::Error| format!("cannot read from strace: {error}");
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).map_err(|e| wrong(e.into()))?;
        // A smaller pipe works, too.
        let _ = fcntl_setpipe_size(&writer, PIPE_BYTES);
        // strace opens the pipe by this name, so that the command inherits no descriptor of the
        // pipe. The command could outlive strace and this program.
        let output = format!("/proc/{}/fd/{}", std::process::id(), writer.as_raw_fd());
        let begin = Instant::now();
        let child = Command::new(&self.path)
            .args(self.options(calls, Path::new(&output)))
            .args(command)
            .spawn()
            .cannot("run", &self.path)?;
        let strace = child.id();
        let waiter = std::thread::spawn(move || wait(child, writer));
        let mut pass_on = || {
            if let Some(signal) = signal() {
                send_to_command(strace, signal);
            }
        };
        listen(reader, &mut pass_on, on_line).map_err(wrong)?;
        let status = waiter
            .join()
            .expect("waiting does not panic")
            .map_err(|error| format!("cannot wait for strace: {error}"))?;
        Ok(TraceEnd {
            status: status.code(),
            signal: status.signal(),
            wall: begin.elapsed(),
        })
    }
}

/// Waits for strace. Then closes the last write end of the pipe, so that the pipe's reader sees the
/// end of file.
fn wait(mut child: Child, writer: OwnedFd) -> io::Result<ExitStatus> {
    let status = child.wait();
    drop(writer);
    status
}

fn listen(
    reader: OwnedFd,
    pass_on: &mut dyn FnMut(),
    on_line: &mut dyn FnMut(&str),
) -> io::Result<()> {
    let mut pipe = std::fs::File::from(reader);
    let mut chunk = vec![0_u8; PIPE_BYTES];
    let mut line: Vec<u8> = Vec::new();
    let nap = Timespec::try_from(NAP).expect("short");
    loop {
        pass_on();
        let mut watched = [PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::IN)];
        match poll(&mut watched, Some(&nap)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => continue,
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let count = match pipe.read(&mut chunk) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let mut rest = &chunk[..count];
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            append(&mut line, &rest[..end]);
            on_line(&String::from_utf8_lossy(&line));
            line.clear();
            rest = &rest[end + 1..];
        }
        append(&mut line, rest);
    }
    if !line.is_empty() {
        on_line(&String::from_utf8_lossy(&line));
    }
    Ok(())
}

fn append(line: &mut Vec<u8>, part: &[u8]) {
    let room = LINE_BYTES_MAX.saturating_sub(line.len());
    line.extend_from_slice(&part[..part.len().min(room)]);
}

/// Sends a signal to the command itself. strace blocks signals while it writes to a file, so a
/// signal to strace would not reach the command.
fn send_to_command(strace: u32, signal: i32) {
    if signal == SIGINT && has_terminal() {
        return;
    }
    let (Some(signal), Ok(strace)) = (Signal::from_named_raw(signal), i32::try_from(strace)) else {
        return;
    };
    for pid in children(strace).into_iter().filter_map(Pid::from_raw) {
        // The process may just have ended.
        let _ = kill_process(pid, signal);
    }
}

/// Whether this program is in the foreground of its terminal. If so, ^C has already reached the
/// command, and a second signal may act differently.
pub fn has_terminal() -> bool {
    let terminal = std::fs::File::open("/dev/tty");
    let foreground = terminal.and_then(|terminal| Ok(rustix::termios::tcgetpgrp(terminal)?));
    foreground.is_ok_and(|group| group == rustix::process::getpgrp())
}

/// Explains strace's last message to the user.
fn explain(words: &str) -> String {
    let last = words.lines().last().unwrap_or("it printed nothing").trim();
    let is_refused = words.contains("not permitted") || words.contains("ermission denied");
    if is_refused {
        return format!(
            "cannot trace: the kernel does not permit it ({last}); run as root, set \
             kernel.yama.ptrace_scope to 1 or 0, or give a container the capability SYS_PTRACE"
        );
    }
    if words.contains("option") || words.contains("invalid") {
        return format!("cannot trace: this strace is too old ({last}); install 5.6 or newer");
    }
    format!("cannot trace: a test of strace failed ({last})")
}

/// Checks whether a command can be started. Looks the command up as `execvp` does.
pub fn startable(command: &OsStr) -> Result<(), Unstartable> {
    let shown = command.to_string_lossy().into_owned();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let candidates: Vec<PathBuf> = if shown.contains('/') {
        vec![PathBuf::from(command)]
    } else {
        std::env::split_paths(&path)
            .map(|directory| directory.join(command))
            .collect()
    };
    let mut found = None;
    for candidate in candidates.iter().filter(|path| path.exists()) {
        if candidate.is_file() && access(candidate, Access::EXEC_OK).is_ok() {
            return Ok(());
        }
        found.get_or_insert(candidate);
    }
    match found {
        Some(path) => Err(Unstartable::NotExecutable(format!(
            "cannot run {shown}: {} is not an executable program",
            path.display()
        ))),
        None => Err(Unstartable::NotFound(format!(
            "cannot run {shown}: there is no such program{}",
            if shown.contains(' ') {
                "; give a line for a shell as: sh -c 'LINE'"
            } else {
                ""
            }
        ))),
    }
}

/// Prints why a command cannot be started, and returns the exit status that shells use in that
/// case. `None` if the command can be started.
pub fn unstartable(command: &OsStr) -> Option<ExitCode> {
    let (status, message) = match startable(command) {
        Ok(()) => return None,
        Err(Unstartable::NotFound(message)) => (127, message),
        Err(Unstartable::NotExecutable(message)) => (126, message),
    };
    output::error(&message);
    Some(ExitCode::from(status))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_of(parts: &[&[u8]]) -> Vec<String> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        for part in parts {
            rustix::io::write(&writer, part).unwrap();
        }
        drop(writer);
        let mut lines = Vec::new();
        listen(reader, &mut || {}, &mut |line| lines.push(line.to_owned())).unwrap();
        lines
    }

    #[test]
    fn lines_are_handed_over_whole() {
        assert_eq!(
            lines_of(&[b"one\ntw", b"o\n\nlast"]),
            ["one", "two", "", "last"]
        );
        assert_eq!(lines_of(&[]), Vec::<String>::new());
        assert_eq!(lines_of(&[b"\xff\n"]), ["\u{fffd}"]);
    }

    #[test]
    fn what_cannot_be_started_is_told_with_the_reason() {
        assert_eq!(startable(OsStr::new("sh")), Ok(()));
        let not_found = |name: &str| match startable(OsStr::new(name)) {
            Err(Unstartable::NotFound(message)) => message,
            other => panic!("{other:?}"),
        };
        not_found("toll-no-such-program");
        not_found("/nowhere/at/all");
        assert!(not_found("cat x | wc").contains("sh -c"));
        let directory = startable(OsStr::new("/tmp"));
        assert!(matches!(directory, Err(Unstartable::NotExecutable(_))));
    }

    #[test]
    fn refusals_say_what_to_do() {
        let explanation = explain("strace: ptrace(PTRACE_TRACEME, ...): Operation not permitted");
        assert!(explanation.contains("SYS_PTRACE"), "{explanation}");
        let explanation = explain("strace: unrecognized option '--syscall-times=ns'\nTry -h");
        assert!(explanation.contains("too old"), "{explanation}");
    }
}
