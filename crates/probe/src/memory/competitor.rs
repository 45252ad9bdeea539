//! A process that competes for memory with the accesses.

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

/// Accesses to random pages for each that writes; as published.
const ACCESSES_PER_WRITE: usize = 8;

pub struct RunningCompetitor {
    _child: Child,
}

impl RunningCompetitor {
    /// Starts a process that uses anonymous memory, and waits until it has
    /// written to pages as often as it has pages.
    pub fn start(competitor: &Competitor, seed: u64) -> Result<Self, Failure> {
        let Competitor { bytes, uses } = *competitor;
        let cannot = |why: &str| {
            failure::failed(format!(
                "cannot compete for {bytes} bytes of memory: {why}; choose a smaller limit"
            ))
        };
        let length = usize::try_from(bytes).map_err(|_| cannot("no process can have as many"))?;
        // Mapped here, so that the child makes no allocation; its pages become
        // the child's when it writes to them.
        let region = Region::map(Backing::Anonymous, length, HugePages::None, false)?;
        let (ready, tell) = pipe_with(PipeFlags::CLOEXEC)
            .map_err(|errno| cannot(&failure::reason(&errno.into())))?;
        let memory = region.part(0, length);
        let work = || match uses {
            CompetitorUses::Random => use_random_pages(memory, seed, &tell),
            CompetitorUses::Sweep => sweep(memory, &tell),
        };
        let child = Child::start(work).map_err(|error| cannot(&failure::reason(&error)))?;
        // From here on it is ended whatever happens.
        let running = Self { _child: child };
        drop(tell);
        let mut byte = [0];
        match std::fs::File::from(ready).read_exact(&mut byte) {
            Ok(()) => Ok(running),
            Err(_) => Err(cannot("the competing process was ended")),
        }
    }
}

/// What the child does, until it is ended.
fn sweep(memory: Part<'_>, tell: &OwnedFd) -> ! {
    let mut is_first = true;
    loop {
        for offset in (0..memory.length()).step_by(page_bytes()) {
            memory.write(offset, 1);
        }
        if std::mem::take(&mut is_first) {
            tell_ready(tell);
        }
    }
}

fn use_random_pages(memory: Part<'_>, seed: u64, tell: &OwnedFd) -> ! {
    let page = page_bytes();
    let pages = memory.length() / page;
    let mut state = seed;
    let mut is_first = true;
    loop {
        for access in 0..pages * ACCESSES_PER_WRITE {
            let at = (split_mix(&mut state) % pages as u64) as usize * page;
            black_box(memory.read(at));
            if access.is_multiple_of(ACCESSES_PER_WRITE) {
                memory.write(at, 1);
            }
        }
        if std::mem::take(&mut is_first) {
            tell_ready(tell);
        }
    }
}

fn tell_ready(tell: &OwnedFd) {
    // A probe that is gone ends this process, too.
    let _ = rustix::io::write(tell.as_fd(), &[1]);
}
