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
use crate::storage_bytes::{StorageBytes, StorageMeter};
use crate::usage::{Scope, Usage};

/// Uses of the hot pages in a pass, evenly spread: a hot page is used so many
/// times as often as one of the stream.
const ROUNDS: usize = 16;

pub struct Job {
    /// The hot pages, shared with other processes or its own.
    pub hot: Rc<Hot>,
    pub fills: bool,
    pub stream: Stream,
    pub passes: u32,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Report {
    pub usage: Usage,
    /// Storage traffic over the work; `None` where the kernel does not account.
    pub storage: Option<StorageBytes>,
    pub hot_major_faults: u64,
    pub hot_minor_faults: u64,
    /// Uses of single pages, hot ones and those of the stream.
    pub touches: u64,
    pub hot_sum: u64,
    pub wrong: Option<Wrong>,
}

impl Job {
    /// What the uses of the hot pages must add up to, from the sum of one use
    /// of each.
    pub fn expected(&self, sum: u64) -> u64 {
        let uses = u64::from(self.passes) * ROUNDS as u64;
        sum.wrapping_mul(uses)
    }

    /// Brings the hot pages in, as a process does that has run for a while.
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
        report.wrong = self.passes(&mut report).err();
        report.usage = Usage::now(Scope::Thread).since(&before);
        report.storage = storage.read().zip(storage_before).map(|(a, b)| a.since(&b));
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

/// A process that works on a set, ended when this value goes.
pub struct Member {
    _child: Child,
    reports: File,
}

/// Where processes wait for each other, so that they start together.
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
        // As many bytes as a pipe takes at once (PIPE_BUF in pipe(7)) are
        // written wholly or not at all.
        match rustix::io::write(self.open.as_fd(), &vec![1; processes]) {
            Ok(written) if written == processes => Ok(()),
            Ok(_) => Err(was_ended()),
            Err(errno) => Err(cannot(&failure::reason(&errno.into()))),
        }
    }

    fn pass(&self) {
        // An error would let the process start early, which the parent sees by
        // a report where it expects none.
        let _ = rustix::io::retry_on_intr(|| rustix::io::read(self.wait.as_fd(), &mut [0_u8]));
    }
}

impl Member {
    /// Starts a process and has it wait at the gate once it is prepared.
    pub fn start(job: Job, gate: &Gate) -> Result<Self, Failure> {
        let (reports, tell) = pipe()?;
        let child = Child::start(|| work(job, gate, &tell))
            .map_err(|error| cannot(&failure::reason(&error)))?;
        Ok(Self {
            _child: child,
            reports: reports.into(),
        })
    }

    /// Waits until it is prepared.
    pub fn wait_prepared(&mut self) -> Result<(), Failure> {
        self.read::<1>().map(|_| ())
    }

    pub fn report(&mut self) -> Result<Report, Failure> {
        self.read().map(|bytes| Report::decode(&bytes))
    }

    fn read<const LENGTH: usize>(&mut self) -> Result<[u8; LENGTH], Failure> {
        let mut bytes = [0; LENGTH];
        match self.reports.read_exact(&mut bytes) {
            Ok(()) => Ok(bytes),
            Err(_) => Err(was_ended()),
        }
    }
}

/// What the process does until it is ended. One that is done keeps its memory,
/// so that those that are not stay under the same pressure.
fn work(mut job: Job, gate: &Gate, tell: &OwnedFd) -> ! {
    let storage = StorageMeter::open();
    job.prepare();
    let _ = rustix::io::write(tell.as_fd(), &[1]);
    gate.pass();
    let report = job.run(&storage);
    let _ = rustix::io::write(tell.as_fd(), &report.encode());
    // Not at the gate: another may yet have to pass it.
    loop {
        rustix::event::pause();
    }
}

const REPORT_WORDS: usize = 18;
const REPORT_BYTES: usize = REPORT_WORDS * 8;

impl Report {
    /// The report as bytes, which a pipe takes at once.
    fn encode(&self) -> [u8; REPORT_BYTES] {
        let used = &self.usage;
        let storage = self.storage.unwrap_or(StorageBytes {
            input: 0,
            output: 0,
        });
        let (wrong, errno) = match self.wrong {
            None => (0, 0),
            Some(Wrong::Content) => (1, 0),
            Some(Wrong::Read(errno)) => (2, u64::from(errno.unsigned_abs())),
        };
        let words: [u64; REPORT_WORDS] = [
            used.user_ns,
            used.system_ns,
            used.minor_faults,
            used.major_faults,
            used.voluntary_switches,
            used.involuntary_switches,
            used.block_input_bytes,
            used.block_output_bytes,
            used.max_rss_bytes,
            u64::from(self.storage.is_some()),
            storage.input,
            storage.output,
            self.hot_major_faults,
            self.hot_minor_faults,
            self.touches,
            self.hot_sum,
            wrong,
            errno,
        ];
        let mut bytes = [0; REPORT_BYTES];
        for (place, word) in bytes.as_chunks_mut().0.iter_mut().zip(words) {
            *place = word.to_ne_bytes();
        }
        bytes
    }

    fn decode(bytes: &[u8; REPORT_BYTES]) -> Self {
        let mut words = bytes.as_chunks().0.iter().copied().map(u64::from_ne_bytes);
        let mut next = || words.next().expect("a report has all its words");
        let usage = Usage {
            user_ns: next(),
            system_ns: next(),
            minor_faults: next(),
            major_faults: next(),
            voluntary_switches: next(),
            involuntary_switches: next(),
            block_input_bytes: next(),
            block_output_bytes: next(),
            max_rss_bytes: next(),
        };
        let is_accounted = next() == 1;
        let storage = StorageBytes {
            input: next(),
            output: next(),
        };
        Self {
            usage,
            storage: is_accounted.then_some(storage),
            hot_major_faults: next(),
            hot_minor_faults: next(),
            touches: next(),
            hot_sum: next(),
            wrong: match (next(), next()) {
                (0, _) => None,
                (1, _) => Some(Wrong::Content),
                (_, errno) => Some(Wrong::Read(i32::try_from(errno).unwrap_or(0))),
            },
        }
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
        "cannot finish the working set: one of its processes was ended; see the kernel log, and \
         give it more swap or a smaller set if memory ran out"
            .to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_comes_out_of_the_pipe_as_it_went_in() {
        let report = Report {
            usage: Usage {
                user_ns: 1,
                minor_faults: u64::MAX,
                max_rss_bytes: 3,
                ..Usage::default()
            },
            storage: Some(StorageBytes {
                input: 4,
                output: 5,
            }),
            hot_major_faults: 6,
            hot_minor_faults: 7,
            touches: 8,
            hot_sum: 9,
            wrong: None,
        };
        for (storage, wrong) in [
            (report.storage, None),
            (None, Some(Wrong::Content)),
            (None, Some(Wrong::Read(5))),
        ] {
            let sent = Report {
                storage,
                wrong,
                ..report
            };
            assert_eq!(Report::decode(&sent.encode()), sent);
        }
    }
}
