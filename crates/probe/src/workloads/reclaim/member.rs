//! One of the processes that work on a set.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;

use rustix::pipe::{PipeFlags, pipe_with};
use toll_wire::Failure;

use super::hot::Hot;
use super::stream::{Stream, Wrong};
use crate::failure;
use crate::fork::Child;
use crate::usage::{Scope, StorageBytes, StorageMeter, Usage};

/// Uses of each hot page per pass, evenly spread. A page of the stream is used once per pass.
const ROUNDS: usize = 16;

pub struct Job {
    /// The hot pages: the process's own, or shared with other processes.
    pub hot: Rc<Hot>,
    pub fills: bool,
    pub stream: Stream,
    pub passes: u32,
}

/// What a process reports. Consists of 64-bit words, so that it can be sent through a pipe
/// unchanged.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Report {
    /// Resources used over the work.
    pub usage: Usage,
    /// Storage traffic over the work; `has_storage` is 1 where the kernel
    /// accounts for it.
    pub storage: StorageBytes,
    pub has_storage: u64,
    pub hot_major_faults: u64,
    pub hot_minor_faults: u64,
    /// Number of uses of pages, both hot pages and pages of the stream.
    pub touches: u64,
    /// Sum of what all uses of hot pages have read.
    pub hot_sum: u64,
    /// 0, the error number of a read, or [`WRONG_CONTENT`].
    wrong: u64,
}

const WRONG_CONTENT: u64 = u64::MAX;

impl Report {
    /// Returns what was wrong with the stream, if anything.
    pub fn wrong(&self) -> Option<Wrong> {
        match self.wrong {
            0 => None,
            WRONG_CONTENT => Some(Wrong::Content),
            errno => Some(Wrong::Read(errno as i32)),
        }
    }

    fn bytes(&mut self) -> &mut [u8] {
        let start = std::ptr::from_mut(self).cast();
        // SAFETY: the report consists of words without padding, for which any
        // bits are valid, and it stays borrowed as long as the slice.
        unsafe { std::slice::from_raw_parts_mut(start, size_of::<Self>()) }
    }
}

impl Job {
    /// Returns the sum that all uses of the hot pages must have. `sum` is the
    /// sum of one use of each hot page.
    pub fn expected(&self, sum: u64) -> u64 {
        let uses = u64::from(self.passes) * ROUNDS as u64;
        sum.wrapping_mul(uses)
    }

    /// Brings the hot pages into memory, as in a process that has run for a
    /// while.
    fn prepare(&self) {
        if self.fills {
            self.hot.fill();
        }
        std::hint::black_box(self.hot.use_all());
    }

    fn run(&mut self, storage: &StorageMeter) -> Report {
        let mut report = Report::default();
        let storage_before = storage.read();
        let before = Usage::now(Scope::Thread);
        report.wrong = match self.passes(&mut report) {
            Ok(()) => 0,
            Err(Wrong::Content) => WRONG_CONTENT,
            Err(Wrong::Read(errno)) => u64::from(errno.unsigned_abs()),
        };
        report.usage = Usage::now(Scope::Thread).since(&before);
        if let Some((after, before)) = storage.read().zip(storage_before) {
            report.storage = after.since(&before);
            report.has_storage = 1;
        }
        report
    }

    fn passes(&mut self, report: &mut Report) -> Result<(), Wrong> {
        let pages = self.stream.pages();
        let hot_pages = self.hot.pages() as u64;
        for pass in 0..u64::from(self.passes) {
            for round in 0..ROUNDS {
                let part = pages * round / ROUNDS..pages * (round + 1) / ROUNDS;
                report.touches += part.len() as u64 + hot_pages;
                self.stream.pass_by(part, pass)?;
                let before = Usage::now(Scope::Thread);
                report.hot_sum = report.hot_sum.wrapping_add(self.hot.use_all());
                let used = Usage::now(Scope::Thread).since(&before);
                report.hot_major_faults += used.major_faults;
                report.hot_minor_faults += used.minor_faults;
            }
        }
        Ok(())
    }
}

/// A process that works on a set; it is ended on drop.
pub struct Member {
    _child: Child,
    reports: File,
}

/// A gate at which processes wait for each other, so that they start together.
pub struct Gate {
    wait: OwnedFd,
    open: OwnedFd,
}

impl Gate {
    pub fn new() -> Result<Self, Failure> {
        let (wait, open) = pipe()?;
        Ok(Self { wait, open })
    }

    pub fn open(&self, processes: usize) -> Result<(), Failure> {
        // At most PIPE_BUF bytes are written entirely or not at all (pipe(7)).
        match rustix::io::write(self.open.as_fd(), &vec![1; processes]) {
            Ok(written) if written == processes => Ok(()),
            Ok(_) => Err(was_ended()),
            Err(errno) => Err(cannot(&failure::reason(&errno.into()))),
        }
    }

    fn pass(&self) {
        // An error would let the process start early. The parent would notice,
        // because it would read a report where it expects none.
        let _ = rustix::io::retry_on_intr(|| rustix::io::read(self.wait.as_fd(), &mut [0_u8]));
    }
}

impl Member {
    /// Starts a process, which waits at the gate once it is prepared.
    pub fn start(job: Job, gate: &Gate) -> Result<Self, Failure> {
        let (reports, tell) = pipe()?;
        let child = Child::start(|| work(job, gate, &tell))
            .map_err(|error| cannot(&failure::reason(&error)))?;
        Ok(Self {
            _child: child,
            reports: reports.into(),
        })
    }

    pub fn wait_prepared(&mut self) -> Result<(), Failure> {
        self.read(&mut [0])
    }

    pub fn report(&mut self) -> Result<Report, Failure> {
        let mut report = Report::default();
        self.read(report.bytes())?;
        Ok(report)
    }

    fn read(&mut self, bytes: &mut [u8]) -> Result<(), Failure> {
        self.reports.read_exact(bytes).map_err(|_| was_ended())
    }
}

/// The process's work until it is ended. After its passes it keeps its memory,
/// so that processes that are not finished stay under the same pressure.
fn work(mut job: Job, gate: &Gate, tell: &OwnedFd) -> ! {
    let storage = StorageMeter::open();
    job.prepare();
    let _ = rustix::io::write(tell.as_fd(), &[1]);
    gate.pass();
    let mut report = job.run(&storage);
    // The pipe has room for the whole report.
    let _ = rustix::io::write(tell.as_fd(), report.bytes());
    // Does not wait at the gate, which another process may still have to pass.
    loop {
        rustix::event::pause();
    }
}

fn pipe() -> Result<(OwnedFd, OwnedFd), Failure> {
    pipe_with(PipeFlags::CLOEXEC).map_err(|errno| cannot(&failure::reason(&errno.into())))
}

fn cannot(why: &str) -> Failure {
    failure::failed(format!(
        "cannot start the processes of the working set: {why}; choose fewer processes"
    ))
}

fn was_ended() -> Failure {
    failure::failed(
        "cannot finish the working set: one of its processes has ended; see the kernel log; \
         if memory ran out, add swap or choose a smaller set",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_words_without_padding_and_tells_what_was_wrong() {
        assert_eq!(size_of::<Report>(), 17 * size_of::<u64>());
        let wrong = |wrong| Report {
            wrong,
            ..Report::default()
        };
        assert_eq!(wrong(0).wrong(), None);
        assert_eq!(wrong(WRONG_CONTENT).wrong(), Some(Wrong::Content));
        assert_eq!(wrong(5).wrong(), Some(Wrong::Read(5)));
        let mut sent = wrong(5);
        let mut received = Report::default();
        received.bytes().copy_from_slice(sent.bytes());
        assert_eq!(received, sent);
    }
}
