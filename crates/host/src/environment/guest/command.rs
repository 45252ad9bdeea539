//! Runs a user's command in a guest.

use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use toll_wire::guest::{GuestAction, GuestCommand, GuestEnd, GuestEvent};

use super::life::{Gone, Guest, GuestFailure};
use super::port::{PortEnd, Wait, is_passing, wait_for_any};

/// Longest wait for a guest to accept a request, and for the announced output of the
/// command.
const PATIENCE: Duration = Duration::from_secs(60);

/// Bytes taken from a stream at once.
const CHUNK_BYTES: usize = 64 << 10;

/// The character that ends the input of a terminal in its default mode (termios(3), EOF).
const END_OF_INPUT: u8 = 4;

/// A stream of a command in a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output, or the terminal.
    Output,
    /// Standard error.
    Error,
}

/// What is typed into the terminal of a command in a guest.
#[derive(Debug)]
pub enum Input<'a> {
    /// Nothing.
    None,
    /// Everything that can be read from the descriptor, to its end.
    From(BorrowedFd<'a>),
}

impl From<Gone> for GuestFailure {
    fn from(gone: Gone) -> Self {
        match gone {
            Gone::Interrupted => Self::Interrupted,
            Gone::Dead(why) => Self::Failed(why),
            Gone::Silent(why) => Self::Failed(format!("the guest no longer answers: {why}")),
        }
    }
}

impl Guest {
    /// Runs a user's command and passes on its output. The command may take up to `timeout`; `None`
    /// is no limit. If the command cannot be started, the guest is still usable.
    pub fn run(
        &mut self,
        command: &GuestCommand,
        mut input: Input<'_>,
        timeout: Option<Duration>,
        on_output: &mut dyn FnMut(Stream, &[u8]),
        interrupted: &dyn Fn() -> bool,
    ) -> Result<GuestEnd, GuestFailure> {
        let wait = Wait {
            deadline: Instant::now() + PATIENCE,
            interrupted,
        };
        self.send(GuestAction::Run(Box::new(command.clone())), &wait)?;
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut taken = [0_u64; 2];
        let end = loop {
            if interrupted() {
                return Err(self.gone(PortEnd::Interrupted).into());
            }
            if deadline.is_some_and(|deadline| Instant::now() > deadline) {
                self.give_up();
                let seconds = timeout.unwrap_or_default().as_secs_f64();
                return Err(GuestFailure::Failed(format!(
                    "cannot run the command to its end: it took over {seconds} s; give it longer \
                     with --timeout"
                )));
            }
            if self.stop().is_some() {
                return Err(self.gone(PortEnd::Interrupted).into());
            }
            self.wait_for_something(&input);
            self.type_in(&mut input);
            self.take_output(&mut taken, on_output);
            match self.requests.line_now() {
                Ok(None) => {}
                Ok(Some(line)) => break self.decode(&line)?,
                Err(end) => return Err(self.gone(end).into()),
            }
        };
        match end {
            GuestEvent::Ended(end) => {
                let deadline = Instant::now() + PATIENCE;
                let is_missing =
                    |taken: &[u64; 2]| taken[0] < end.output_bytes || taken[1] < end.error_bytes;
                // The ports are not synchronised with each other.
                while is_missing(&taken) && Instant::now() < deadline && !interrupted() {
                    self.wait_for_something(&Input::None);
                    self.take_output(&mut taken, on_output);
                }
                Ok(end)
            }
            GuestEvent::Refused(reason) => Err(GuestFailure::Failed(reason)),
            _ => {
                self.give_up();
                let why = "unexpected reply from the guest".into();
                Err(GuestFailure::Failed(why))
            }
        }
    }

    pub(super) fn wait_for_something(&self, input: &Input<'_>) {
        let ports = [
            self.requests.as_fd(),
            self.output.as_fd(),
            self.error.as_fd(),
        ];
        let mut watched = ports.to_vec();
        if let Input::From(descriptor) = input {
            watched.push(*descriptor);
        }
        wait_for_any(&watched, PollFlags::IN, PATIENCE);
    }

    /// Reads the pending output of both ports.
    pub(super) fn take_output(
        &mut self,
        taken: &mut [u64; 2],
        on_output: &mut dyn FnMut(Stream, &[u8]),
    ) {
        let mut chunk = vec![0_u8; CHUNK_BYTES];
        let ports = [
            (&mut self.output, Stream::Output),
            (&mut self.error, Stream::Error),
        ];
        for ((port, stream), taken) in ports.into_iter().zip(taken) {
            if let Ok(count @ 1..) = port.read(&mut chunk) {
                *taken += count as u64;
                on_output(stream, &chunk[..count]);
            }
        }
    }

    /// Forwards what was typed, if anything was.
    fn type_in(&mut self, input: &mut Input<'_>) {
        let Input::From(descriptor) = input else {
            return;
        };
        let mut watched = [PollFd::from_borrowed_fd(*descriptor, PollFlags::IN)];
        if !matches!(poll(&mut watched, Some(&Timespec::default())), Ok(1..)) {
            return;
        }
        // Sends a little at a time, so that no more is in flight than a terminal accepts.
        let mut chunk = [0_u8; 256];
        match rustix::io::read(*descriptor, &mut chunk) {
            Ok(0) => {
                send(&mut self.output, &[END_OF_INPUT]);
                *input = Input::None;
            }
            Ok(count) => send(&mut self.output, &chunk[..count]),
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
            Err(_) => *input = Input::None,
        }
    }
}

/// Sends all bytes. Gives up if the guest accepts none for too long, since the cause is reported
/// elsewhere.
fn send(port: &mut UnixStream, mut bytes: &[u8]) {
    let deadline = Instant::now() + PATIENCE;
    while !bytes.is_empty() && Instant::now() < deadline {
        match port.write(bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(error) if is_passing(&error) => {
                wait_for_any(&[port.as_fd()], PollFlags::OUT, PATIENCE);
            }
            Err(_) => return,
        }
    }
}
