//! Readings around a timed region of the probe's own work.
//!
//! The readings are, from the outside in: idle time, storage traffic, counters, resource usage, the
//! mark for external instruction counters, the clock. So the duration includes no other reading.
//! Usage includes the clock readings, the return from the first `getrusage` call and the entry into
//! the second. Counters are switched by system calls and include the usage readings.

use std::collections::BTreeMap;

use rustix::mm::{Advice, madvise};
use toll_wire::{CounterReading, Failure, Recording, Sample};

use crate::clock;
use crate::count_mark;
use crate::counters::Counters;
use crate::idle::IdleTime;
use crate::profile::Profiler;
use crate::usage::{Scope, StorageBytes, StorageMeter, Usage, peak_rss_bytes};

/// Everything that is read around a timed region, opened beforehand.
pub struct Meter {
    counters: Counters,
    storage: StorageMeter,
    scope: Scope,
    pub recorder: Recorder<Profiler>,
}

/// How timed regions are recorded.
#[derive(Default)]
pub enum Recorder<P> {
    #[default]
    Nothing,
    Profile(P),
    /// Another process records: it counts system calls between marks.
    SystemCalls,
}

impl<P> Recorder<P> {
    pub fn new(
        recording: Recording,
        profiler: impl FnOnce() -> Result<P, Failure>,
    ) -> Result<Self, Failure> {
        Ok(match recording {
            Recording::Nothing => Self::Nothing,
            Recording::Profile => Self::Profile(profiler()?),
            Recording::SystemCalls => Self::SystemCalls,
        })
    }

    pub fn profiler(self) -> Option<P> {
        match self {
            Self::Profile(profiler) => Some(profiler),
            Self::Nothing | Self::SystemCalls => None,
        }
    }
}

struct Started {
    idle: IdleTime,
    storage: Option<StorageBytes>,
    usage: Usage,
    start_ns: u64,
}

pub struct Measured {
    /// From start to end, without [`Self::idle_ns`].
    pub duration_ns: u64,
    /// When the region began and ended, in nanoseconds of the clock.
    pub start_ns: u64,
    pub end_ns: u64,
    /// Idle time since the start, which the clock counts and the region does not.
    pub idle_ns: u64,
    pub usage: Usage,
    idle_before: IdleTime,
    storage: Option<StorageBytes>,
    counters: BTreeMap<String, CounterReading>,
}

impl Meter {
    pub fn new(counters: Counters, scope: Scope) -> Self {
        let mut meter = Self {
            counters,
            storage: StorageMeter::open(),
            scope,
            recorder: Recorder::Nothing,
        };
        fault_in_program();
        // Most trials have one iteration, whose readings would otherwise be the
        // first use of their code: cold caches inside the region. An error
        // recurs at the first iteration and is reported there.
        let _ = meter.measure(|| ());
        meter
    }

    /// Measures `work`, which alone is the timed region.
    #[inline]
    pub fn measure<T>(&mut self, work: impl FnOnce() -> T) -> Result<(T, Measured), Failure> {
        let started = self.start()?;
        let done = work();
        Ok((done, self.stop(&started)?))
    }

    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Reads everything, the clock last.
    fn start(&mut self) -> Result<Started, Failure> {
        let idle = IdleTime::now()?;
        let storage = self.storage.read();
        self.counters.start()?;
        if let Recorder::Profile(profiler) = &self.recorder {
            profiler.start();
        }
        let usage = Usage::now(self.scope);
        if matches!(self.recorder, Recorder::SystemCalls) {
            count_mark::begin_calls();
        }
        count_mark::begin();
        Ok(Started {
            idle,
            storage,
            usage,
            start_ns: clock::now_ns(),
        })
    }

    /// Reads everything, the clock first.
    fn stop(&mut self, started: &Started) -> Result<Measured, Failure> {
        let end_ns = clock::now_ns();
        count_mark::end();
        if matches!(self.recorder, Recorder::SystemCalls) {
            count_mark::end_calls();
        }
        // Read before any allocation, because an allocation may cause a page fault.
        let mut usage = Usage::now(self.scope).since(&started.usage);
        let counters = self.counters.stop();
        if let Recorder::Profile(profiler) = &mut self.recorder {
            profiler.stop(started.start_ns, end_ns);
        }
        let storage = self.storage.read().zip(started.storage);
        if let Some(bytes) = peak_rss_bytes() {
            usage.max_rss_bytes = bytes;
        }
        let idle_ns = IdleTime::now()?.since(started.idle)?;
        Ok(Measured {
            duration_ns: (end_ns - started.start_ns).saturating_sub(idle_ns),
            start_ns: started.start_ns,
            end_ns,
            idle_ns,
            idle_before: started.idle,
            usage,
            storage: storage.map(|(after, before)| after.since(&before)),
            counters: counters?,
        })
    }
}

/// Enters the program's code and constants into the page table, so that no region counts a fault on
/// its own code. The kernel maps code by 64 KiB (do_fault_around in mm/memory.c), so whether a
/// region had such a fault depended on the layout of the code.
fn fault_in_program() {
    unsafe extern "C" {
        // Defined by the linker: where the program begins, and where its code
        // ends.
        static __executable_start: u8;
        static etext: u8;
    }
    let (start, end) = (&raw const __executable_start, &raw const etext);
    let length = end.addr() - start.addr();
    // SAFETY: reads pages of the program's own file, and changes none.
    let populated = unsafe { madvise(start.cast_mut().cast(), length, Advice::LinuxPopulateRead) };
    // Linux before 5.14 has no such advice; a count may then be one too high.
    let _ = populated;
}

impl Measured {
    /// Moves the region's end to a time that another thread read from the clock. Nothing has been
    /// waited for since that time.
    pub fn end_at(&mut self, end_ns: u64) {
        self.end_ns = end_ns;
        let passed_ns = end_ns.saturating_sub(self.start_ns);
        self.duration_ns = passed_ns.saturating_sub(self.idle_ns);
    }

    /// Extends the idle time to the present, for a region whose end [`Self::end_at`] will move to a
    /// later time.
    pub fn go_on_waiting(&mut self) -> Result<(), Failure> {
        self.idle_ns = IdleTime::now()?.since(self.idle_before)?;
        Ok(())
    }

    pub fn into_sample(self) -> Sample {
        let mut sample = Sample::default();
        self.add_to(&mut sample, "");
        sample.counters = self.counters;
        sample
    }

    /// Returns the sample of a region that moved `bytes`, recorded as the
    /// metric `bytes_name`.
    pub fn into_sample_of(self, bytes_name: &str, bytes: u64) -> Sample {
        let duration_ns = self.duration_ns;
        let mut sample = self.into_sample();
        add_rates(&mut sample, bytes_name, bytes, duration_ns);
        sample
    }

    /// Adds all readings except the counters to a sample, each under its name
    /// prefixed by `prefix`.
    pub fn add_to(&self, sample: &mut Sample, prefix: &str) {
        let mut add =
            |name: &str, value: u64| put(sample, &format!("{prefix}{name}"), value as f64);
        for (name, value) in self.usage.metrics() {
            add(name, value);
        }
        add("duration_ns", self.duration_ns);
        if let Some(storage) = self.storage {
            add("block_input_bytes", storage.input);
            add("block_output_bytes", storage.output);
        }
    }

    /// Describes how getrusage(2) and proc_pid_io(5) disagree about the storage traffic of this
    /// region; `None` if they agree. Both read the same account of the kernel. They differ only by
    /// what other threads of the process do, and by getrusage's blocks of 512 bytes.
    pub fn storage_disagreement(&self) -> Option<String> {
        const BLOCK_BYTES: u64 = 512;
        let storage = self.storage?;
        let differs = |one: u64, other: u64| one.abs_diff(other) >= BLOCK_BYTES;
        let used = &self.usage;
        (differs(storage.input, used.block_input_bytes)
            || differs(storage.output, used.block_output_bytes))
        .then(|| {
            format!(
                "block input and output are {} and {} bytes by /proc/self/io, {} and {} by getrusage",
                storage.input, storage.output, used.block_input_bytes, used.block_output_bytes
            )
        })
    }
}

/// Sets a metric of a sample.
pub fn put(sample: &mut Sample, name: &str, value: f64) {
    sample.metrics.insert(name.to_owned(), value);
}

/// Adds the duration and the values derived from it. A rate over zero is
/// undefined, so it is left out.
pub fn add_rates(sample: &mut Sample, bytes_name: &str, bytes: u64, duration_ns: u64) {
    let (duration, moved) = (duration_ns as f64, bytes as f64);
    put(sample, "duration_ns", duration);
    put(sample, bytes_name, moved);
    if bytes > 0 {
        put(sample, "duration_per_byte_ns", duration / moved);
    }
    if duration_ns > 0 {
        put(sample, "throughput_bytes_per_s", moved / duration * 1e9);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_follow_from_bytes_and_nanoseconds_and_over_nothing_are_left_out() {
        let rates = |bytes, duration_ns| {
            let mut sample = Sample::default();
            add_rates(&mut sample, "bytes_copied", bytes, duration_ns);
            sample.metrics
        };
        let metrics = rates(2_000, 1_000);
        assert_eq!(metrics["duration_per_byte_ns"], 0.5);
        assert_eq!(metrics["throughput_bytes_per_s"], 2e9);
        let metrics = rates(0, 0);
        assert!(metrics.keys().eq(["bytes_copied", "duration_ns"]));
    }
}
