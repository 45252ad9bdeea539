//! Shows where the time of timed regions goes: functions, and waits by stack.

mod mappings;
mod record;
mod sampling;
mod timeline;

use toll_wire::{Failure, Profile};

use self::mappings::Mappings;
use self::sampling::{Clocking, Sampling, disable_all, enable_all};
use self::timeline::{Region, Tally, Timed};
use crate::failure::OrFail;

const ADVICE: &str = "run as root or set kernel.perf_event_paranoid to 1; a container has to \
                      permit perf_event_open";

/// A profile of the timed regions of this process.
pub struct Profiler {
    sampling: Sampling,
    regions: Vec<Region>,
}

impl Profiler {
    /// Profiles the calling thread and everything it starts from now on.
    ///
    /// # Errors
    /// If not even user code may be sampled.
    pub fn open() -> Result<Self, Failure> {
        Ok(Self {
            sampling: open()?,
            regions: Vec::new(),
        })
    }

    pub fn start(&self) {
        enable_all();
    }

    /// Ends a region, which began and ended at these times.
    pub fn stop(&mut self, start_ns: u64, end_ns: u64) {
        disable_all();
        self.regions.push(Region { start_ns, end_ns });
    }

    pub fn finish(self) -> Profile {
        let clocking = self.sampling.clocking;
        let recording = self.sampling.finish();
        let mut tally = Tally::new(Mappings::of_this_process());
        let main = (std::process::id(), this_thread());
        tally.add(&recording, &self.regions, Timed::Thread(main), clocking);
        conclude(tally, clocking)
    }
}

/// A profile of the runs of a command.
#[derive(Default)]
pub struct CommandProfiler {
    tally: Tally,
    clocking: Option<Clocking>,
}

/// One run of a command that is being profiled.
pub struct CommandRecording(Sampling);

impl CommandRecording {
    /// Records what the calling thread starts from now on.
    ///
    /// # Errors
    /// As [`Profiler::open`].
    pub fn begin() -> Result<Self, Failure> {
        let sampling = open()?;
        enable_all();
        Ok(Self(sampling))
    }

    pub fn end(&self) {
        disable_all();
    }
}

impl CommandProfiler {
    /// Adds a run whose first process was `process`.
    pub fn add(&mut self, run: CommandRecording, process: u32, start_ns: u64, end_ns: u64) {
        let clocking = run.0.clocking;
        let recording = run.0.finish();
        let region = Region { start_ns, end_ns };
        let starter = this_thread();
        let timed = Timed::Command { process, starter };
        self.tally.add(&recording, &[region], timed, clocking);
        self.clocking = Some(clocking);
    }

    /// Returns the profile; `None` if there was no run.
    pub fn finish(self) -> Option<Profile> {
        Some(conclude(self.tally, self.clocking?))
    }
}

fn this_thread() -> u32 {
    rustix::thread::gettid().as_raw_pid().cast_unsigned()
}

fn open() -> Result<Sampling, Failure> {
    Sampling::open().instrument_by("sample by perf_event_open", ADVICE)
}

fn conclude(tally: Tally, clocking: Clocking) -> Profile {
    let mut notes = Vec::new();
    match clocking {
        Clocking::Cycles => {}
        Clocking::Timer => notes.push(
            "sampled by a timer, since this machine has no cycle counter: code that runs with \
             interrupts off is charged to where they are enabled again"
                .to_owned(),
        ),
        Clocking::UserTimer => notes.push(format!(
            "only user code could be sampled, so the kernel is one row and waits have no stack; \
             {ADVICE}"
        )),
    }
    if tally.lost > 0 {
        notes.push(format!(
            "records lost: {}; times may be charged wrongly",
            tally.lost
        ));
    }
    tally.into_profile(notes)
}
