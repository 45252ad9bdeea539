//! The host's ends of a guest's ports.
//!
//! A guest may be broken or hostile. So what it sends is limited in size, and every wait has a
//! deadline.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use toll_wire::MESSAGE_BYTES_MAX;

/// Longest wait between checks whether the caller is to stop.
const NAP: Duration = Duration::from_millis(100);

/// Waits until one of the descriptors can be read or written, or for a little while. A signal is
/// not an error; the caller checks again soon.
pub(super) fn wait_for_any(descriptors: &[BorrowedFd<'_>], flags: PollFlags, most: Duration) {
    let mut watched: Vec<PollFd<'_>> = descriptors
        .iter()
        .map(|descriptor| PollFd::from_borrowed_fd(*descriptor, flags))
        .collect();
    let most = Timespec::try_from(most.min(NAP)).expect("short");
    let _ = poll(&mut watched, Some(&most));
}

/// Why nothing arrived, or nothing could be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PortEnd {
    /// QEMU closed its end.
    Closed,
    /// The deadline has passed.
    Deadline,
    /// The caller is to stop.
    Interrupted,
    /// A line was longer than a message may be.
    TooLong,
}

/// A wait with a deadline.
pub(super) struct Wait<'a> {
    pub deadline: Instant,
    pub interrupted: &'a dyn Fn() -> bool,
}

impl Wait<'_> {
    fn check(&self) -> Result<Duration, PortEnd> {
        if (self.interrupted)() {
            return Err(PortEnd::Interrupted);
        }
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            Err(PortEnd::Deadline)
        } else {
            Ok(left)
        }
    }

    /// Waits until a stream can be read or written, or for a little while.
    fn until(&self, stream: &UnixStream, flags: PollFlags) -> Result<(), PortEnd> {
        wait_for_any(&[stream.as_fd()], flags, self.check()?);
        Ok(())
    }
}

/// A port that carries lines in both directions.
#[derive(Debug)]
pub(super) struct LinePort {
    stream: UnixStream,
    /// Bytes received after the last complete line.
    rest: Vec<u8>,
    /// Number of bytes of `rest` that contain no end of a line. A long line arrives in many parts,
    /// and each part is searched once.
    scanned: usize,
}

impl LinePort {
    /// Makes a port from one end of a pair of sockets.
    pub fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream,
            rest: Vec::new(),
            scanned: 0,
        })
    }

    /// Sends a line.
    pub fn send(&mut self, line: &str, wait: &Wait<'_>) -> Result<(), PortEnd> {
        let bytes = format!("{line}\n").into_bytes();
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            wait.until(&self.stream, PollFlags::OUT)?;
            match self.stream.write(rest) {
                Ok(count) => rest = &rest[count..],
                Err(error) if is_passing(&error) => {}
                Err(_) => return Err(PortEnd::Closed),
            }
        }
        Ok(())
    }

    /// Waits for the next line.
    pub fn line(&mut self, wait: &Wait<'_>) -> Result<String, PortEnd> {
        loop {
            if let Some(line) = self.take_line() {
                return Ok(line);
            }
            wait.until(&self.stream, PollFlags::IN)?;
            self.take_some()?;
        }
    }

    /// Returns a line that has already arrived; reads without waiting.
    pub fn line_now(&mut self) -> Result<Option<String>, PortEnd> {
        let taken = self.take_some();
        match self.take_line() {
            Some(line) => Ok(Some(line)),
            None => taken.map(|()| None),
        }
    }

    fn take_line(&mut self) -> Option<String> {
        let unread = &self.rest[self.scanned..];
        let Some(end) = unread.iter().position(|byte| *byte == b'\n') else {
            self.scanned = self.rest.len();
            return None;
        };
        let behind = self.rest.split_off(self.scanned + end + 1);
        let mut line = std::mem::replace(&mut self.rest, behind);
        self.scanned = 0;
        line.pop();
        Some(String::from_utf8_lossy(&line).into_owned())
    }

    fn take_some(&mut self) -> Result<(), PortEnd> {
        let mut chunk = [0_u8; 64 << 10];
        match self.stream.read(&mut chunk) {
            Ok(0) => return Err(PortEnd::Closed),
            Ok(count) => self.rest.extend_from_slice(&chunk[..count]),
            Err(error) if is_passing(&error) => {}
            Err(_) => return Err(PortEnd::Closed),
        }
        if self.rest.len() > MESSAGE_BYTES_MAX {
            Err(PortEnd::TooLong)
        } else {
            Ok(())
        }
    }
}

impl AsFd for LinePort {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// Whether an error only means "try again".
pub(super) fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (LinePort, UnixStream) {
        let (near, far) = UnixStream::pair().unwrap();
        (LinePort::new(near).unwrap(), far)
    }

    fn within<'a>(limit: Duration) -> Wait<'a> {
        Wait {
            deadline: Instant::now() + limit,
            interrupted: &|| false,
        }
    }

    fn soon<'a>() -> Wait<'a> {
        within(Duration::from_millis(20))
    }

    fn late<'a>() -> Wait<'a> {
        within(Duration::from_secs(600))
    }

    #[test]
    fn lines_come_whole_however_they_were_sent() {
        let (mut port, mut far) = pair();
        far.write_all(b"one\ntw").unwrap();
        assert_eq!(port.line(&late()), Ok("one".into()));
        assert_eq!(port.line(&soon()), Err(PortEnd::Deadline));
        far.write_all(b"o\n\xff\n").unwrap();
        assert_eq!(port.line(&late()), Ok("two".into()));
        assert_eq!(port.line_now(), Ok(Some("\u{fffd}".into())));
        assert_eq!(port.line_now(), Ok(None));
        drop(far);
        assert_eq!(port.line(&late()), Err(PortEnd::Closed));
    }

    #[test]
    fn a_guest_that_never_ends_its_line_is_cut_off() {
        let (mut port, mut far) = pair();
        let flood = std::thread::spawn(move || {
            let chunk = vec![b'x'; 1 << 20];
            while far.write_all(&chunk).is_ok() {}
        });
        assert_eq!(port.line(&late()), Err(PortEnd::TooLong));
        drop(port);
        flood.join().unwrap();
    }

    #[test]
    fn a_guest_that_does_not_listen_holds_nobody_up() {
        let (mut port, _far) = pair();
        let line = "x".repeat(16 << 20);
        assert_eq!(port.send(&line, &soon()), Err(PortEnd::Deadline));
        let stop = Wait {
            interrupted: &|| true,
            ..late()
        };
        assert_eq!(port.line(&stop), Err(PortEnd::Interrupted));
    }
}
