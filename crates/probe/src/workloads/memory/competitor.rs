//! A process that competes with the accesses for memory.

use std::convert::Infallible;
use std::hint::black_box;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};

use rustix::pipe::{PipeFlags, pipe_with};
use toll_wire::{Competitor, CompetitorUses, Failure, HugePages};

use super::region::{Backing, Part, Region};
use crate::buffer::page_bytes;
use crate::failure;
use crate::fork::Child;
use crate::random::split_mix;

/// Random page accesses per write; as published.
const ACCESSES_PER_WRITE: usize = 8;

/// A competing process, which is ended on drop.
pub struct RunningCompetitor {
    child: Child,
    bytes: u64,
}

impl RunningCompetitor {
    /// Starts a process that uses anonymous memory, and waits until it has made
    /// as many page writes as it has pages.
    pub fn start(competitor: &Competitor, seed: u64) -> Result<Self, Failure> {
        let (ready, tell) = pipe_with(PipeFlags::CLOEXEC)
            .map_err(|errno| cannot(competitor.bytes, &failure::reason(&errno.into())))?;
        // From here on the process is ended whatever happens.
        let running = Self::spawn(competitor, seed, move || tell_ready(&tell))?;
        let mut byte = [0];
        match std::fs::File::from(ready).read_exact(&mut byte) {
            Ok(()) => Ok(running),
            Err(_) => Err(cannot(competitor.bytes, ENDED)),
        }
    }

    /// Starts a process without waiting for it. It calls `on_ready` once it has made as many page
    /// writes as it has pages.
    pub fn spawn(
        competitor: &Competitor,
        seed: u64,
        on_ready: impl FnOnce(),
    ) -> Result<Self, Failure> {
        let Competitor { bytes, uses } = *competitor;
        // Mapped here so that the child does not allocate. Pages become the
        // child's when it writes to them.
        let region = map(bytes)?;
        let memory = region.part(0, region.length());
        let work = move || match uses {
            CompetitorUses::Random => use_random_pages(memory, seed, on_ready),
            CompetitorUses::Sweep => sweep(memory, on_ready),
        };
        let child = Child::start(work).map_err(|error| cannot(bytes, &failure::reason(&error)))?;
        Ok(Self { child, bytes })
    }

    /// Fails if something has ended the process, such as a kernel that ran out
    /// of memory.
    pub fn check(&self) -> Result<(), Failure> {
        if self.child.has_ended() {
            Err(cannot(self.bytes, ENDED))
        } else {
            Ok(())
        }
    }
}

const ENDED: &str = "the competing process has ended";

/// Uses memory as the published competitor does, until this process is ended.
pub fn compete(bytes: u64) -> Result<Infallible, Failure> {
    let region = map(bytes)?;
    use_random_pages(region.part(0, region.length()), 0, || ())
}

fn map(bytes: u64) -> Result<Region, Failure> {
    let length =
        usize::try_from(bytes).map_err(|_| cannot(bytes, "no process can have that many"))?;
    Region::map(Backing::Anonymous, length, HugePages::None, false)
}

fn cannot(bytes: u64, why: &str) -> Failure {
    failure::failed(format!(
        "cannot compete for {bytes} bytes of memory: {why}; choose a smaller limit"
    ))
}

/// Writes to every page in turn until the process is ended.
fn sweep(memory: Part<'_>, on_ready: impl FnOnce()) -> ! {
    let mut on_ready = Some(on_ready);
    loop {
        for offset in (0..memory.length()).step_by(page_bytes()) {
            memory.write(offset, 1);
        }
        if let Some(on_ready) = on_ready.take() {
            on_ready();
        }
    }
}

fn use_random_pages(memory: Part<'_>, seed: u64, on_ready: impl FnOnce()) -> ! {
    let page = page_bytes();
    let pages = memory.length() / page;
    let mut state = seed;
    let mut on_ready = Some(on_ready);
    loop {
        for access in 0..pages * ACCESSES_PER_WRITE {
            let at = (split_mix(&mut state) % pages as u64) as usize * page;
            black_box(memory.read(at));
            if access.is_multiple_of(ACCESSES_PER_WRITE) {
                memory.write(at, 1);
            }
        }
        if let Some(on_ready) = on_ready.take() {
            on_ready();
        }
    }
}

fn tell_ready(tell: &OwnedFd) {
    // If the probe is gone, this process is ended, too.
    let _ = rustix::io::write(tell.as_fd(), &[1]);
}
