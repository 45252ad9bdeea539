//! Replies whose bytes go from the page cache of the source's file to the kernel's
//! pages of the mount without a copy in this program.
//!
//! `fuser` replies from memory only. A spliced reply must have the form that
//! `fuse_dev_splice_write` (fs/fuse/dev.c) accepts: header and bytes in one pipe,
//! moved to the session's device in one call. The kernel refuses the whole reply if
//! its length differs from the header.

use std::cell::RefCell;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::Errno;
use rustix::pipe::{PipeFlags, SpliceFlags};

/// Shortest reply that is spliced. Copying a shorter one costs less than the additional
/// calls.
pub(super) const BYTES_MIN: usize = 32 << 10;
/// Requested capacity of a pipe: the most that any user may have
/// (`/proc/sys/fs/pipe-max-size`), and the length of the largest read.
pub(super) const PIPE_BYTES: usize = 1 << 20;
/// Pages of a pipe that the bytes cannot use: one for the header, and one more if
/// the bytes do not begin at a page boundary.
const PAGES_BESIDE: usize = 2;
const PAGE_BYTES: usize = 4096;

/// Length of `struct fuse_out_header`: length including the header, error, request
/// number.
pub(super) const HEADER_BYTES: usize = 16;

/// The session's device, for replies that `fuser` cannot send. The kernel only accepts
/// a reply on the descriptor from which the request was read. So all requests must be
/// read from this device and not from clones.
pub(super) struct Device {
    device: OwnedFd,
    /// Whether the source's files can be spliced; true until a splice fails.
    pub can_splice: AtomicBool,
}

pub(super) struct Pipe {
    from: OwnedFd,
    to: OwnedFd,
    bytes_max: usize,
}

thread_local! {
    /// One pipe per thread, empty between replies.
    static PIPE: RefCell<Option<Pipe>> = const { RefCell::new(None) };
}

impl Pipe {
    pub fn new() -> rustix::io::Result<Self> {
        let (from, to) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        // The kernel may give the pipe less.
        let _ = rustix::pipe::fcntl_setpipe_size(&to, PIPE_BYTES);
        let bytes = rustix::pipe::fcntl_getpipe_size(&to)?;
        Ok(Self {
            from,
            to,
            bytes_max: bytes.saturating_sub(PAGES_BESIDE * PAGE_BYTES),
        })
    }

    /// Fills the pipe with a header and `length` bytes of a file. Returns whether the
    /// file had this many bytes.
    pub fn fill(
        &self,
        header: &[u8; HEADER_BYTES],
        file: BorrowedFd<'_>,
        offset: u64,
        length: usize,
    ) -> rustix::io::Result<bool> {
        if rustix::io::write(&self.to, header)? != HEADER_BYTES {
            return Ok(false);
        }
        let (mut at, end) = (offset, offset + length as u64);
        while at < end {
            let rest = (end - at) as usize;
            // The call waits for the file, but never for room in the pipe, because
            // nobody else would make any.
            let flags = SpliceFlags::NONBLOCK;
            match rustix::pipe::splice(file, Some(&mut at), &self.to, None, rest, flags) {
                Ok(0) => return Ok(false),
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}

pub(super) fn header(request: u64, length: usize) -> Option<[u8; HEADER_BYTES]> {
    let all = u32::try_from(HEADER_BYTES + length).ok()?;
    let mut header = [0; HEADER_BYTES];
    header[..4].copy_from_slice(&all.to_ne_bytes());
    header[8..].copy_from_slice(&request.to_ne_bytes());
    Some(header)
}

impl Device {
    pub fn new(device: OwnedFd) -> Self {
        Self {
            device,
            can_splice: AtomicBool::new(true),
        }
    }

    /// Replies to a read with the file's bytes at an offset. Returns false if it
    /// sent no reply.
    pub fn answer(&self, request: u64, file: BorrowedFd<'_>, offset: u64, size: usize) -> bool {
        if size < BYTES_MIN || !self.can_splice.load(Ordering::Relaxed) {
            return false;
        }
        // The header with the length goes first, so the length must be known.
        let Ok(found) = rustix::fs::fstat(file) else {
            return false;
        };
        let rest = u64::try_from(found.st_size)
            .unwrap_or(0)
            .saturating_sub(offset);
        let length = usize::try_from(rest).unwrap_or(usize::MAX).min(size);
        if length < BYTES_MIN {
            return false;
        }
        let answered = PIPE.with_borrow_mut(|kept| {
            let pipe = match kept.take() {
                Some(pipe) => pipe,
                None => Pipe::new()?,
            };
            let Some(header) = header(request, length).filter(|_| length <= pipe.bytes_max) else {
                *kept = Some(pipe);
                return Ok(false);
            };
            if !pipe.fill(&header, file, offset, length)? {
                return Ok(false);
            }
            let all = HEADER_BYTES + length;
            let sent = rustix::pipe::splice(
                &pipe.from,
                None,
                &self.device,
                None,
                all,
                SpliceFlags::empty(),
            )?;
            // A pipe that still holds something is not used again.
            *kept = (sent == all).then_some(pipe);
            Ok(sent == all)
        });
        if answered == Err(Errno::INVAL) {
            self.can_splice.store(false, Ordering::Relaxed);
        }
        answered.unwrap_or(false)
    }
}

#[cfg(test)]
mod tests;
