//! Types and helpers that all copy methods share.

use std::os::fd::BorrowedFd;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, retry_on_intr};
use toll_wire::{Failure, Sink};

use crate::buffer::checked_length;
use crate::failure;

/// Largest number of bytes that one data-moving call transfers (`MAX_RW_COUNT` in
/// include/linux/fs.h: the largest int, rounded down to a page).
pub const CALL_BYTES_MAX: usize = 0x7fff_f000;

pub struct Job<'a> {
    pub source: BorrowedFd<'a>,
    pub sink: BorrowedFd<'a>,
    pub sink_kind: Sink,
    pub size_bytes: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moved {
    pub bytes: u64,
    pub calls: u64,
}

impl Moved {
    /// Returns itself if all bytes were moved; otherwise an error that `call` made no
    /// progress.
    pub fn checked(self, size_bytes: u64, call: &'static str) -> Result<Self, CallError> {
        if self.bytes == size_bytes {
            Ok(self)
        } else {
            Err(CallError::no_progress(call))
        }
    }
}

/// A copy method, with all its memory and descriptors made beforehand.
pub trait Mover {
    /// Runs outside the timed region, before every iteration.
    fn prepare(&mut self, _job: &Job<'_>) -> Result<(), Failure> {
        Ok(())
    }

    /// Moves bytes, without allocating, until the job's size is reached or the
    /// source ends. A method that must know the size beforehand treats an earlier
    /// end as an error.
    fn run(&mut self, job: &Job<'_>) -> Result<Moved, CallError>;

    /// Returns notes on what the method was free to choose, such as sizes.
    fn notes(&self) -> Vec<String>;
}

#[derive(Debug, PartialEq, Eq)]
pub struct CallError {
    pub call: &'static str,
    /// The error, or `None` if the call moved nothing although bytes were left.
    pub errno: Option<Errno>,
    /// Whether the kernel refused the method's characteristic call at its first
    /// use, so that this pair of ends does not support the method.
    pub is_refusal: bool,
}

impl CallError {
    pub fn new(call: &'static str, errno: Errno) -> Self {
        Self {
            call,
            errno: Some(errno),
            is_refusal: false,
        }
    }

    /// Returns an error of a method's characteristic call, after `calls` successful
    /// ones.
    pub fn characteristic(call: &'static str, errno: Errno, calls: u64) -> Self {
        let is_unsupported = matches!(
            errno,
            Errno::INVAL | Errno::OPNOTSUPP | Errno::NOSYS | Errno::XDEV | Errno::PERM
        );
        Self {
            call,
            errno: Some(errno),
            is_refusal: calls == 0 && is_unsupported,
        }
    }

    pub fn no_progress(call: &'static str) -> Self {
        Self {
            call,
            errno: None,
            is_refusal: false,
        }
    }

    /// Whether the error means that a stream broke. The stream's peer may know why.
    pub fn is_of_stream(&self) -> bool {
        let broken = [Errno::PIPE, Errno::CONNRESET, Errno::NOTCONN];
        self.errno.is_some_and(|errno| broken.contains(&errno))
    }

    pub fn into_failure(self, source: &str, sink: &str) -> Failure {
        let call = self.call;
        let Some(errno) = self.errno else {
            return failure::failed(format!(
                "cannot {call} from {source} to {sink}: it moved nothing although bytes were left; \
                 check whether another process shortens the source"
            ));
        };
        let error = std::io::Error::from(errno);
        let why = failure::reason(&error);
        if self.is_refusal {
            failure::unsupported(format!(
                "cannot {call} from {source} to {sink}: {why}; \
                 this kernel or file system does not support it"
            ))
        } else {
            let advice = failure::advice(&error);
            failure::failed(format!(
                "cannot {call} from {source} to {sink}: {why}; {advice}"
            ))
        }
    }
}

impl From<CallError> for std::io::Error {
    fn from(error: CallError) -> Self {
        match error.errno {
            Some(errno) => errno.into(),
            None => std::io::ErrorKind::WriteZero.into(),
        }
    }
}

/// Returns the bytes of one call: `buffer_bytes`, or [`CALL_BYTES_MAX`] if absent.
pub fn chunk_or_all(buffer_bytes: Option<u64>) -> Result<usize, Failure> {
    buffer_bytes.map_or(Ok(CALL_BYTES_MAX), checked_length)
}

/// Returns the part of `left` that one call of at most `chunk` bytes takes.
pub fn portion(left: u64, chunk: usize) -> usize {
    usize::try_from(left).map_or(chunk, |left| left.min(chunk))
}

/// Reads until `memory` is full, and adds the number of calls to `calls`.
pub fn read_full(
    source: BorrowedFd<'_>,
    memory: &mut [u8],
    calls: &mut u64,
) -> Result<(), CallError> {
    let mut filled = 0;
    while filled < memory.len() {
        match rustix::io::read(source, &mut memory[filled..]) {
            Ok(0) => return Err(CallError::no_progress("read")),
            Ok(length) => {
                filled += length;
                *calls += 1;
            }
            Err(Errno::INTR) => {}
            Err(errno) => return Err(CallError::new("read", errno)),
        }
    }
    Ok(())
}

/// Waits until a non-blocking descriptor is ready. The next call on it reports any
/// error.
pub fn wait_for(end: BorrowedFd<'_>, events: PollFlags) {
    let mut ends = [PollFd::from_borrowed_fd(end, events)];
    // Whatever ended the wait, the next call reports it.
    let _ = poll(&mut ends, None);
}

/// Waits until both ends of a call that would have blocked are ready. The call does
/// not report which of them it was.
pub fn wait_for_both(job: &Job<'_>) {
    wait_for(job.source, PollFlags::IN);
    wait_for(job.sink, PollFlags::OUT);
}

/// Writes all of `data`, and adds the number of calls to `calls`. Waits for a non-blocking sink.
pub fn write_all(sink: BorrowedFd<'_>, data: &[u8], calls: &mut u64) -> Result<(), CallError> {
    let mut written = 0;
    while written < data.len() {
        match retry_on_intr(|| rustix::io::write(sink, &data[written..])) {
            Ok(0) => return Err(CallError::no_progress("write")),
            Ok(length) => {
                written += length;
                *calls += 1;
            }
            Err(Errno::AGAIN) => wait_for(sink, PollFlags::OUT),
            Err(errno) => return Err(CallError::new("write", errno)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_portion_never_exceeds_chunk_or_rest() {
        assert_eq!(portion(0, 10), 0);
        assert_eq!(portion(9, 10), 9);
        assert_eq!(portion(11, 10), 10);
        assert_eq!(portion(u64::MAX, CALL_BYTES_MAX), CALL_BYTES_MAX);
    }

    #[test]
    fn only_a_refused_first_call_means_unsupported() {
        use toll_wire::FailureKind::{Failed, Unsupported};
        for (error, kind) in [
            (
                CallError::characteristic("splice", Errno::INVAL, 0),
                Unsupported,
            ),
            (CallError::characteristic("splice", Errno::INVAL, 1), Failed),
            (CallError::characteristic("splice", Errno::NOSPC, 0), Failed),
            (CallError::new("write", Errno::INVAL), Failed),
            (CallError::no_progress("read"), Failed),
        ] {
            assert_eq!(error.into_failure("A", "B").kind, kind);
        }
    }

    #[test]
    fn a_refusal_names_call_ends_and_reason() {
        let failure = CallError::characteristic("splice", Errno::INVAL, 0).into_failure("A", "B");
        assert_eq!(
            failure.message,
            "cannot splice from A to B: invalid argument; \
             this kernel or file system does not support it"
        );
    }
}
