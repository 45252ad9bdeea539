//! Runs a user's command in a guest, with its streams on separate ports.
#![expect(
    clippy::disallowed_methods,
    reason = "the init starts what the user asks for"
)]

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::retry_on_intr;
use rustix::pty::{OpenptFlags, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use toll_wire::guest::{ERROR_PORT, GuestCommand, GuestEnd, OUTPUT_PORT, TerminalSize};

use super::port::Port;
use super::processes::PATH;

const CHUNK_BYTES: usize = 32 << 10;

/// Longest time between checks whether the command has ended.
const NAP: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 10_000_000,
};

/// Runs a command and forwards its streams to the host until it has ended.
pub fn run(asked: &GuestCommand) -> Result<GuestEnd, String> {
    let Some((program, arguments)) = asked.words.split_first() else {
        return Err("cannot run a command: it has no words; name a program".into());
    };
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env_clear()
        .env("PATH", PATH)
        .env("HOME", "/")
        .env("TERM", "xterm")
        .current_dir("/");
    let cannot = |error: io::Error| {
        format!("cannot run {program}: {error}; add the program with --add, or look in /bin")
    };
    let mut streams = match asked.terminal {
        Some(size) => on_terminal(&mut command, size)?,
        None => on_pipes(&mut command)?,
    };
    let mut child = command.spawn().map_err(cannot)?;
    // The child has inherited its ends of the streams. Copies kept open here
    // would keep the streams from ending.
    drop(command);
    if let Some(mut stdin) = child.stdin.take() {
        let input = asked.input.clone();
        // A command that does not read its input is not an error. The thread ends with the command.
        std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    }
    let stdout = child.stdout.take().map(OwnedFd::from);
    let stderr = child.stderr.take().map(OwnedFd::from);
    let pipes = [stdout, stderr].into_iter().flatten();
    for (stream, pipe) in streams.iter_mut().zip(pipes) {
        stream.source = Some(pipe.into());
    }
    let status = relay(&mut child, &mut streams).map_err(cannot)?;
    let bytes = |index: usize| streams.get(index).map_or(0, |stream| stream.bytes);
    Ok(GuestEnd {
        status: status.code(),
        signal: status.signal(),
        output_bytes: bytes(0),
        error_bytes: bytes(1),
    })
}

/// A stream of the command and the port that it is forwarded to.
struct Stream {
    port: Port,
    /// `None` once the stream has ended.
    source: Option<File>,
    is_terminal: bool,
    bytes: u64,
}

fn on_pipes(command: &mut Command) -> Result<Vec<Stream>, String> {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    [OUTPUT_PORT, ERROR_PORT]
        .into_iter()
        .map(|name| {
            Ok(Stream {
                port: Port::open(name)?,
                source: None,
                is_terminal: false,
                bytes: 0,
            })
        })
        .collect()
}

fn on_terminal(command: &mut Command, size: TerminalSize) -> Result<Vec<Stream>, String> {
    let cannot = |errno: rustix::io::Errno| {
        format!(
            "cannot make a terminal: {}; use a kernel with UNIX98_PTYS",
            io::Error::from(errno)
        )
    };
    let master =
        openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).map_err(cannot)?;
    unlockpt(&master).map_err(cannot)?;
    let name = ptsname(&master, Vec::new()).map_err(cannot)?;
    let open = || {
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        rustix::fs::open(&name, flags, Mode::empty()).map_err(cannot)
    };
    let slave = open()?;
    let size = Winsize {
        ws_row: size.rows,
        ws_col: size.columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&slave, size).map_err(cannot)?;
    command
        .stdin(Stdio::from(open()?))
        .stdout(Stdio::from(open()?))
        .stderr(Stdio::from(slave));
    let take = || {
        rustix::process::setsid()?;
        rustix::process::ioctl_tiocsctty(io::stdin())?;
        Ok(())
    };
    // SAFETY: between fork and exec it makes two system calls through rustix
    // and allocates nothing.
    unsafe { command.pre_exec(take) };
    Ok(vec![Stream {
        port: Port::open(OUTPUT_PORT)?,
        source: Some(master.into()),
        is_terminal: true,
        bytes: 0,
    }])
}

/// Moves bytes until the command has ended and its streams are drained. Does
/// not wait for output of processes that it left running.
fn relay(child: &mut Child, streams: &mut [Stream]) -> io::Result<std::process::ExitStatus> {
    loop {
        let ended = child.try_wait()?;
        let has_moved = move_some(streams)?;
        if let (Some(status), false) = (ended, has_moved) {
            return Ok(status);
        }
    }
}

/// Waits briefly for bytes and moves them. Returns whether the command wrote
/// any.
fn move_some(streams: &mut [Stream]) -> io::Result<bool> {
    let mut watched = Vec::new();
    let mut places = Vec::new();
    for (index, stream) in streams.iter().enumerate() {
        let Some(source) = &stream.source else {
            continue;
        };
        watched.push(PollFd::from_borrowed_fd(source.as_fd(), PollFlags::IN));
        places.push((index, true));
        if stream.is_terminal {
            watched.push(PollFd::from_borrowed_fd(stream.port.as_fd(), PollFlags::IN));
            places.push((index, false));
        }
    }
    retry_on_intr(|| poll(&mut watched, Some(&NAP)))?;
    let ready: Vec<(usize, bool)> = watched
        .iter()
        .zip(&places)
        .filter(|(fd, _)| !fd.revents().is_empty())
        .map(|(_, place)| *place)
        .collect();
    drop(watched);
    let mut has_moved = false;
    for (index, is_output) in ready {
        if is_output {
            has_moved |= streams[index].output()?
        } else {
            streams[index].input()?
        }
    }
    Ok(has_moved)
}

impl Stream {
    /// Forwards output of the command. Returns `false` once the stream has
    /// ended.
    fn output(&mut self) -> io::Result<bool> {
        let Some(source) = &self.source else {
            return Ok(false);
        };
        let mut chunk = [0_u8; CHUNK_BYTES];
        match rustix::io::read(source, &mut chunk) {
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => Ok(true),
            // A terminal whose slave side is closed everywhere fails with EIO.
            Ok(0) | Err(_) => {
                self.source = None;
                Ok(false)
            }
            Ok(count) => {
                self.port.send(&chunk[..count])?;
                self.bytes += count as u64;
                Ok(true)
            }
        }
    }

    fn input(&mut self) -> io::Result<()> {
        let mut chunk = [0_u8; 4096];
        let count = self.port.read(&mut chunk)?;
        let Some(mut source) = self.source.as_ref() else {
            return Ok(());
        };
        source.write_all(&chunk[..count])
    }
}
