//! The pipe to ssh. A write that makes no progress at all times out: if the server
//! has stopped reading, every buffer on the way is full, and the writer would wait
//! forever.

use std::fs::File;
use std::io::{IoSlice, Result};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::pipe::{SpliceFlags, splice};

use crate::content::read_full;

pub(super) struct TimeoutPipe {
    pipe: OwnedFd,
    timeout: Duration,
}

impl TimeoutPipe {
    pub fn new(pipe: OwnedFd, timeout: Duration) -> Result<Self> {
        let flags = rustix::fs::fcntl_getfl(&pipe)?;
        rustix::fs::fcntl_setfl(&pipe, flags | OFlags::NONBLOCK)?;
        Ok(Self { pipe, timeout })
    }

    fn wait_for_room(&self) -> Result<()> {
        let timeout = Timespec::try_from(self.timeout).ok();
        let mut polled = [PollFd::from_borrowed_fd(self.pipe.as_fd(), PollFlags::OUT)];
        match poll(&mut polled, timeout.as_ref()) {
            Ok(0) => Err(std::io::ErrorKind::TimedOut.into()),
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    pub fn write(&self, head: &[u8], content: &[u8]) -> Result<()> {
        let mut slices = [IoSlice::new(head), IoSlice::new(content)];
        let mut rest = &mut slices[..];
        let mut left = head.len() + content.len();
        while left > 0 {
            match rustix::io::writev(&self.pipe, rest) {
                Ok(written) => {
                    left -= written;
                    IoSlice::advance_slices(&mut rest, written);
                }
                Err(Errno::AGAIN) => self.wait_for_room()?,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Writes a part of a file, and zeros past its end. Moves the file's pages into
    /// the pipe without a copy.
    pub fn write_file(&self, file: &File, offset: u64, bytes: usize) -> Result<()> {
        let (mut at, end) = (offset, offset + bytes as u64);
        while at < end {
            let left = usize::try_from(end - at).expect("it is at most `bytes`");
            let flags = SpliceFlags::NONBLOCK;
            match splice(file, Some(&mut at), &self.pipe, None, left, flags) {
                // The rest is past the end, or the file system does not support
                // splice.
                Ok(0) | Err(Errno::INVAL) => {
                    let mut rest = vec![0; left];
                    read_full(file, &mut rest, at)?;
                    return self.write(&[], &rest);
                }
                Ok(_) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.wait_for_room()?,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}
