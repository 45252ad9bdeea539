//! The pipe to ssh, on which a write that makes no progress at all ends
//! after a time: a server that has stopped reading fills every buffer on the
//! way, and the writer would wait for ever.

use std::io::{IoSlice, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;

/// The writing end of a pipe.
pub(super) struct PatientPipe {
    pipe: OwnedFd,
    patience: Duration,
}

impl PatientPipe {
    pub fn new(pipe: OwnedFd, patience: Duration) -> std::io::Result<Self> {
        let flags = rustix::fs::fcntl_getfl(&pipe)?;
        rustix::fs::fcntl_setfl(&pipe, flags | OFlags::NONBLOCK)?;
        Ok(Self { pipe, patience })
    }

    fn wait_for_room(&self) -> std::io::Result<()> {
        let timeout = Timespec::try_from(self.patience).ok();
        let mut polled = [PollFd::from_borrowed_fd(self.pipe.as_fd(), PollFlags::OUT)];
        match poll(&mut polled, timeout.as_ref()) {
            Ok(0) => Err(std::io::ErrorKind::TimedOut.into()),
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Write for PatientPipe {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> std::io::Result<usize> {
        loop {
            match rustix::io::writev(&self.pipe, slices) {
                Ok(written) => return Ok(written),
                Err(Errno::AGAIN) => self.wait_for_room()?,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn a_write_waits_for_room_and_goes_on() {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let mut pipe = PatientPipe::new(writer.into(), Duration::from_secs(60)).unwrap();
        let content = vec![7; 1 << 20];
        let expected = content.len();
        let thread = std::thread::spawn(move || pipe.write_all(&content));
        let mut read = Vec::new();
        reader.read_to_end(&mut read).unwrap();
        thread.join().unwrap().unwrap();
        assert_eq!(read.len(), expected);
    }

    #[test]
    fn a_write_that_nobody_reads_ends() {
        let (reader, writer) = std::io::pipe().unwrap();
        let mut pipe = PatientPipe::new(writer.into(), Duration::from_millis(1)).unwrap();
        let error = pipe.write_all(&vec![0; 1 << 20]).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
        drop(reader);
    }
}
