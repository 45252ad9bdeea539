//! The program `ssh`, which connects, authenticates both sides, encrypts, and
//! carries the bytes of SFTP between two pipes.
//!
//! It has its own process group, so that Ctrl-C at the terminal reaches only the
//! mount, which can then write back its changes. A background group may not read
//! from the terminal, so ssh's group is in the foreground while ssh may ask for a
//! password.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, getpgrp, kill_process_group};
use rustix::termios::{tcgetpgrp, tcsetpgrp};

use super::address::Address;
use super::options::{Notice, Options};
use super::packet::escaped;
use super::session::{Peer, Transport, spawn, wait_until};
use crate::descriptors::restore_limit;

/// Requested capacity of a pipe, for the window of a transfer. The kernel may allow
/// less.
const PIPE_BYTES: usize = 1 << 20;

pub(super) fn start(
    address: &Address,
    options: &Options,
    is_interactive: bool,
) -> Result<Transport, String> {
    let mut child = command(address, options, is_interactive)
        .spawn()
        .map_err(|error| {
            let program = options.program.display();
            format!("cannot start {program}: {error}; install openssh-client")
        })?;
    restore_limit(&child);
    let lend = || Foreground::lend(child.id());
    let foreground = is_interactive.then(lend).flatten();
    let writer = OwnedFd::from(child.stdin.take().expect("it is a pipe"));
    let reader = child.stdout.take().expect("it is a pipe");
    let errors = child.stderr.take().expect("it is a pipe");
    for end in [writer.as_fd(), reader.as_fd()] {
        // With a smaller pipe, transfers are only slower.
        let _ = rustix::pipe::fcntl_setpipe_size(end, PIPE_BYTES);
    }
    let messages = Arc::new(Messages {
        lines: Mutex::default(),
        notice: options.notice.clone(),
        is_told: is_interactive,
    });
    let ssh = Ssh {
        child: Mutex::new(Some((child, foreground))),
        messages: Arc::clone(&messages),
    };
    let listening = spawn("ssh messages", move || messages.listen(errors));
    listening.inspect_err(|_| ssh.hang_up())?;
    Ok(Transport {
        reader: Box::new(reader),
        writer,
        peer: Box::new(ssh),
    })
}

#[expect(clippy::disallowed_methods, reason = "ssh is the way to the server")]
fn command(address: &Address, options: &Options, is_interactive: bool) -> Command {
    let mut command = Command::new(&options.program);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    // X11 and the agent are not forwarded: a server gets only SFTP.
    command.args(["-x", "-a"]);
    if let Some(config) = &options.config {
        command.arg("-F").arg(config);
    }
    if let Some(port) = options.port {
        command.arg("-p").arg(port.to_string());
    }
    if let Some(identity) = &options.identity {
        command.arg("-i").arg(identity);
    }
    // These are the settings of sftp(1), and settings that detect a dead peer.
    let timeout_s = options.connect_timeout.as_secs().max(1);
    let timeout = format!("ConnectTimeout={timeout_s}");
    let mut fixed = vec![
        "ClearAllForwardings=yes",
        "PermitLocalCommand=no",
        "ServerAliveInterval=15",
        "ServerAliveCountMax=3",
        &timeout,
    ];
    if !is_interactive {
        fixed.push("BatchMode=yes");
    }
    // The first value of an option counts, so the user's values go first.
    let given = options.settings.iter().map(String::as_str);
    for setting in given.chain(fixed) {
        command.arg("-o").arg(setting);
    }
    if let Some(user) = &address.user {
        command.arg("-l").arg(user);
    }
    command.args(["-s", "--", &address.host, "sftp"]);
    command
}

/// The standard error of ssh: messages of ssh itself and of the server.
struct Messages {
    lines: Mutex<VecDeque<String>>,
    notice: Notice,
    /// Whether each line is passed to the user as it arrives.
    is_told: bool,
}

impl Messages {
    const LINES_MAX: usize = 5;
    const LINE_BYTES_MAX: u64 = 4096;

    fn listen(&self, errors: impl Read) {
        let mut errors = BufReader::new(errors);
        let mut line = Vec::new();
        loop {
            line.clear();
            let mut limited = errors.by_ref().take(Self::LINE_BYTES_MAX);
            if !matches!(limited.read_until(b'\n', &mut line), Ok(1..)) {
                return;
            }
            let line = escaped(&line);
            if line.is_empty() {
                continue;
            }
            if self.is_told {
                (self.notice)(&line);
            }
            let mut lines = self.lines.lock();
            if lines.len() == Self::LINES_MAX {
                lines.pop_front();
            }
            lines.push_back(line);
        }
    }
}

/// A running ssh, which is ended and reaped when the session is over.
struct Ssh {
    child: Mutex<Option<(Child, Option<Foreground>)>>,
    messages: Arc<Messages>,
}

impl Peer for Ssh {
    fn greeted(&self) {
        if let Some((_, foreground)) = &mut *self.child.lock() {
            *foreground = None;
        }
    }

    fn hang_up(&self) {
        let mut child = self.child.lock();
        if let Some((mut child, foreground)) = child.take() {
            end(&mut child);
            drop(foreground);
        }
    }

    fn last_messages(&self) -> Option<String> {
        // The listening thread has the other reference. A process that ssh left
        // running may hold its standard error open.
        let has_ended = || Arc::strong_count(&self.messages) == 1;
        wait_until(Duration::from_millis(500), has_ended);
        let lines = self.messages.lines.lock();
        let lines: Vec<_> = lines.iter().map(String::as_str).collect();
        (!lines.is_empty()).then(|| lines.join("; "))
    }
}

/// Ends ssh's process group. Returns at once if ssh has already ended, which it should
/// after the end of its input.
fn end(child: &mut Child) {
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    // ssh gets a moment to say why it ends.
    for (signal, timeout_ms) in [
        (None, 100),
        (Some(Signal::TERM), 1000),
        (Some(Signal::KILL), 0),
    ] {
        if let (Some(group), Some(signal)) = (group, signal) {
            // An error only means that ssh has ended meanwhile.
            let _ = kill_process_group(group, signal);
        }
        let has_ended = || matches!(child.try_wait(), Ok(Some(_)) | Err(_));
        if wait_until(Duration::from_millis(timeout_ms), has_ended) {
            return;
        }
    }
    let _ = child.wait();
}

/// A terminal that is lent to another process group. Dropping this value takes the
/// terminal back.
struct Foreground {
    terminal: File,
    own: Pid,
}

impl Foreground {
    /// Lends the terminal to a process group, if this process's group has it.
    pub fn lend(group: u32) -> Option<Self> {
        let terminal = File::options()
            .read(true)
            .write(true)
            .open("/dev/tty")
            .ok()?;
        let own = getpgrp();
        if tcgetpgrp(&terminal).ok()? != own {
            return None;
        }
        let group = Pid::from_raw(i32::try_from(group).ok()?)?;
        tcsetpgrp(&terminal, group).ok()?;
        // The group may have tried to read from the terminal already, and been stopped
        // for that.
        let _ = kill_process_group(group, Signal::CONT);
        Some(Self { terminal, own })
    }
}

impl Drop for Foreground {
    fn drop(&mut self) {
        // Only the foreground group may give the terminal away; any other is
        // stopped by SIGTTOU unless it ignores that (tcsetpgrp(3)).
        let before = set_sigttou(libc::SIG_IGN);
        // A terminal that is gone needs no foreground group.
        let _ = tcsetpgrp(&self.terminal, self.own);
        set_sigttou(before);
    }
}

/// Sets the action of SIGTTOU. Returns the previous one.
fn set_sigttou(action: libc::sighandler_t) -> libc::sighandler_t {
    // SAFETY: `action` is `SIG_IGN`, or what this call returned before.
    unsafe { libc::signal(libc::SIGTTOU, action) }
}
