//! `read` and `write` through one buffer: the six methods of the MeowLab report. They differ in the
//! buffer's size and alignment, and in the call before the first read.

use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::event::PollFlags;
use rustix::fs::{Advice, OFlags, fadvise, fcntl_getfl, fstat};
use rustix::io::Errno;
use toll_wire::{CopyMethod, Failure};

use super::mover::{CallError, Job, Moved, Mover, portion, wait_for, write_all};
use crate::buffer::{Buffer, checked_length, page_bytes};

/// Default size of the buffer: the best of the report's sweep (cat5).
pub const BUFFER_BYTES_DEFAULT: u64 = 512 << 10;

/// The call before the first read. It is part of the method and so inside the timed
/// region.
enum Preparation {
    Nothing,
    Advise(Advice),
    Duplicate,
}

/// One buffer, and the call before the first read.
pub struct ReadWrite {
    buffer: Buffer,
    preparation: Preparation,
    duplicate: Option<OwnedFd>,
    /// Whether reads of the source bypass the page cache.
    is_direct: bool,
}

impl ReadWrite {
    /// Returns a copier for one of the buffer methods. [`CopyMethod::FsBlock`] takes the
    /// block size from `source`.
    pub fn new(
        method: CopyMethod,
        buffer_bytes: Option<u64>,
        source: BorrowedFd<'_>,
    ) -> Result<Self, Failure> {
        let page = page_bytes();
        let buffer = match method {
            CopyMethod::Byte => Buffer::unaligned(1),
            CopyMethod::Page => Buffer::unaligned(page),
            CopyMethod::PageAligned => Buffer::aligned(page),
            CopyMethod::FsBlock => {
                let block = fstat(source).map_or(0, |status| status.st_blksize);
                let block = u64::try_from(block).unwrap_or(0);
                Buffer::aligned(checked_length(least_common_multiple(page as u64, block))?)
            }
            _ => Buffer::aligned(checked_length(
                buffer_bytes.unwrap_or(BUFFER_BYTES_DEFAULT),
            )?),
        };
        let preparation = match method {
            CopyMethod::Advised => Preparation::Advise(Advice::Sequential),
            CopyMethod::AdvisedRandom => Preparation::Advise(Advice::Random),
            CopyMethod::FcntlDupfd => Preparation::Duplicate,
            _ => Preparation::Nothing,
        };
        Ok(Self {
            buffer,
            preparation,
            duplicate: None,
            is_direct: false,
        })
    }

    /// Returns a copier through `buffer`, without a call before the first read.
    pub fn with_buffer(buffer: Buffer) -> Self {
        Self {
            buffer,
            preparation: Preparation::Nothing,
            duplicate: None,
            is_direct: false,
        }
    }

    pub fn buffer_bytes(&self) -> usize {
        self.buffer.bytes().len()
    }

    /// Copies, and calls `on_read` after each `read` that returned bytes.
    #[inline]
    pub fn run_telling(
        &mut self,
        job: &Job<'_>,
        mut on_read: impl FnMut(),
    ) -> Result<Moved, CallError> {
        self.tell_kernel(job.source)?;
        let memory = self.buffer.bytes_mut();
        let mut moved = Moved::default();
        while moved.bytes < job.size_bytes {
            let left = job.size_bytes - moved.bytes;
            // Direct I/O takes only whole blocks, even if less is left.
            let wanted = if self.is_direct {
                memory.len()
            } else {
                portion(left, memory.len())
            };
            let length = match rustix::io::read(job.source, &mut memory[..wanted]) {
                Ok(0) => break,
                Ok(length) => portion(left, length),
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => {
                    wait_for(job.source, PollFlags::IN);
                    continue;
                }
                Err(errno) => return Err(CallError::new("read", errno)),
            };
            on_read();
            moved.calls += 1;
            write_all(job.sink, &memory[..length], &mut moved.calls)?;
            moved.bytes += length as u64;
        }
        Ok(moved)
    }

    fn tell_kernel(&mut self, source: BorrowedFd<'_>) -> Result<(), CallError> {
        match self.preparation {
            Preparation::Nothing => {}
            Preparation::Advise(advice) => fadvise(source, 0, None, advice)
                .map_err(|errno| CallError::characteristic("posix_fadvise", errno, 0))?,
            Preparation::Duplicate => {
                self.duplicate =
                    Some(fcntl_zero(source).map_err(|errno| CallError::new("fcntl", errno))?);
            }
        }
        Ok(())
    }
}

impl Mover for ReadWrite {
    fn prepare(&mut self, job: &Job<'_>) -> Result<(), Failure> {
        // Closes the previous iteration's descriptor outside the timed region.
        self.duplicate = None;
        let flags = fcntl_getfl(job.source).unwrap_or(OFlags::empty());
        self.is_direct = flags.contains(OFlags::DIRECT);
        Ok(())
    }

    fn run(&mut self, job: &Job<'_>) -> Result<Moved, CallError> {
        self.run_telling(job, || {})
    }

    fn notes(&self) -> Vec<String> {
        vec![format!(
            "buffer of {} bytes, {} bytes past a page boundary",
            self.buffer_bytes(),
            self.buffer.page_offset()
        )]
    }
}

/// Makes the call that cat6 made in place of `posix_fadvise`. Its command 0 is
/// `F_DUPFD`, and `fcntl` has no fourth argument.
fn fcntl_zero(fd: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    const POSIX_FADV_SEQUENTIAL: libc::c_int = 2;
    // SAFETY: F_DUPFD reads one integer argument and touches no memory.
    let duplicate = unsafe { libc::fcntl(fd.as_raw_fd(), 0, 0, POSIX_FADV_SEQUENTIAL) };
    if duplicate < 0 {
        let error = std::io::Error::last_os_error();
        return Err(Errno::from_io_error(&error).unwrap_or(Errno::IO));
    }
    // SAFETY: the kernel has just made this descriptor, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(duplicate) })
}

/// Returns the least common multiple of a page and a block size, or the page if the
/// block size is 0 (unknown) or the multiple overflows.
fn least_common_multiple(page: u64, block: u64) -> u64 {
    if block == 0 {
        return page;
    }
    (page / greatest_common_divisor(page, block))
        .checked_mul(block)
        .unwrap_or(page)
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 {
        a
    } else {
        greatest_common_divisor(b, a % b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_and_block_have_a_common_multiple() {
        for (block, expected) in [
            (0, 4096),
            (512, 4096),
            (4096, 4096),
            (6144, 12288),
            (1 << 17, 1 << 17),
            (u64::MAX, 4096),
        ] {
            assert_eq!(least_common_multiple(4096, block), expected, "{block}");
        }
    }

    #[test]
    fn command_zero_duplicates_the_descriptor() {
        use std::os::fd::AsFd;
        let file = tempfile::tempfile().unwrap();
        let duplicate = fcntl_zero(file.as_fd()).unwrap();
        assert_ne!(duplicate.as_raw_fd(), file.as_raw_fd());
    }
}
