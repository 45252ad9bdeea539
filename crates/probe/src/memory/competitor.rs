//! A process that competes for memory with the accesses.

use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};

use rustix::pipe::{PipeFlags, pipe_with};
use toll_wire::{Failure, HugePages};

use super::region::{Backing, Part, Region};
use crate::buffer::page_bytes;
use crate::failure;
use crate::fork::Child;

/// A running competitor, ended when this value goes.
pub struct Competitor {
    _child: Child,
}

impl Competitor {
    /// Starts a process that writes to every page of `bytes` of anonymous
    /// memory, from the first to the last and again, and waits until it has
    /// written to each once.
    ///
    /// # Errors
    /// If it cannot be started, or ends before it has all its memory, as it
    /// does where neither memory nor swap suffices.
    pub fn start(bytes: u64) -> Result<Self, Failure> {
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
        let child = Child::start(|| compete(region.part(0, length), &tell))
            .map_err(|error| cannot(&failure::reason(&error)))?;
        // From here on it is ended whatever happens.
        let competitor = Self { _child: child };
        drop(tell);
        let mut byte = [0];
        match std::fs::File::from(ready).read_exact(&mut byte) {
            Ok(()) => Ok(competitor),
            Err(_) => Err(cannot("the competing process was ended")),
        }
    }
}

/// What the child does, until it is ended.
fn compete(memory: Part<'_>, tell: &OwnedFd) -> ! {
    let mut is_first = true;
    loop {
        for offset in (0..memory.length()).step_by(page_bytes()) {
            memory.write(offset, 1);
        }
        if std::mem::take(&mut is_first) {
            let _ = rustix::io::write(tell.as_fd(), &[1]);
        }
    }
}
