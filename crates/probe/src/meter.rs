//! Readings around a timed region of the probe's own work.
//!
//! From the outside in: storage traffic, counters, resource usage, the clock. So
//! the time holds no other reading; usage holds that of the clock, and of usage
//! itself the way out of one call and into another; and counters, which are
//! switched by system calls, hold the reading of usage.

use std::collections::BTreeMap;

use toll_wire::{CounterReading, Failure, Sample};

use crate::clock;
use crate::counters::Counters;
use crate::storage_bytes::{StorageBytes, StorageMeter};
use crate::usage::{Scope, Usage, peak_rss_bytes};

/// Everything that is read around a timed region, opened beforehand.
pub struct Meter {
    counters: Counters,
    storage: StorageMeter,
    scope: Scope,
}

/// Readings from before a region.
pub struct Started {
    storage: Option<StorageBytes>,
    usage: Usage,
    start_ns: u64,
}

impl Started {
    /// When the region began, in nanoseconds of the clock.
    pub fn start_ns(&self) -> u64 {
        self.start_ns
    }
}

pub struct Measured {
    /// Time on the clock, in nanoseconds.
    pub duration_ns: u64,
    /// When the region ended, in nanoseconds of the clock.
    pub end_ns: u64,
    pub usage: Usage,
    storage: Option<StorageBytes>,
    counters: BTreeMap<String, CounterReading>,
}

impl Meter {
    /// A meter that charges the tasks of `scope`.
    pub fn new(counters: Counters, scope: Scope) -> Self {
        let mut meter = Self {
            counters,
            storage: StorageMeter::open(),
            scope,
        };
        // Most trials have one iteration, whose readings would else be the first
        // use of their code: page faults and cold caches inside of the region.
        // An error comes again at the first iteration, and is told there.
        let _ = meter.start().and_then(|started| meter.stop(&started));
        meter
    }

    pub fn start(&mut self) -> Result<Started, Failure> {
        let storage = self.storage.read();
        self.counters.start()?;
        Ok(Started {
            storage,
            usage: Usage::now(self.scope),
            start_ns: clock::now_ns(),
        })
    }

    pub fn stop(&mut self, started: &Started) -> Result<Measured, Failure> {
        let end_ns = clock::now_ns();
        // Before anything allocates, which may be a page fault.
        let mut usage = Usage::now(self.scope).since(&started.usage);
        let counters = self.counters.stop();
        let storage = match (self.storage.read(), started.storage) {
            (Some(after), Some(before)) => Some(after.since(&before)),
            _ => None,
        };
        if let Some(bytes) = peak_rss_bytes() {
            usage.max_rss_bytes = bytes;
        }
        Ok(Measured {
            duration_ns: end_ns - started.start_ns,
            end_ns,
            usage,
            storage,
            counters: counters?,
        })
    }
}

impl Measured {
    /// Has the region end at a time that another thread read on the clock.
    pub fn end_at(&mut self, end_ns: u64, started: &Started) {
        self.end_ns = end_ns;
        self.duration_ns = end_ns - started.start_ns;
    }

    /// Turns the readings into a sample of a region that moved `bytes`, of
    /// which `bytes_name` is the metric.
    pub fn into_sample(self, bytes_name: &str, bytes: u64) -> Sample {
        let mut metrics = BTreeMap::new();
        self.add_to(&mut metrics, "");
        add_rates(&mut metrics, bytes_name, bytes, self.duration_ns);
        Sample {
            metrics,
            counters: self.counters,
            ..Sample::default()
        }
    }

    /// Adds all readings but the counters to a sample, each under its name
    /// behind `prefix`.
    pub fn add_to(&self, metrics: &mut BTreeMap<String, f64>, prefix: &str) {
        let mut own = BTreeMap::new();
        self.usage.add_to(&mut own);
        own.insert("duration_ns".to_owned(), self.duration_ns as f64);
        if let Some(storage) = self.storage {
            own.insert("block_input_bytes".to_owned(), storage.input as f64);
            own.insert("block_output_bytes".to_owned(), storage.output as f64);
        }
        let named = own.into_iter();
        metrics.extend(named.map(|(name, value)| (format!("{prefix}{name}"), value)));
    }

    pub fn into_counters(self) -> BTreeMap<String, CounterReading> {
        self.counters
    }

    /// Where getrusage(2) and proc_pid_io(5) tell different amounts of storage
    /// traffic for the same region, what they tell. Both read one account of
    /// the kernel's, so they differ only by what other threads of the process
    /// do, and by the blocks of 512 bytes in which getrusage counts.
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

/// Adds the duration and what follows from it. A rate over nothing is no
/// number, so it is left out.
pub fn add_rates(
    metrics: &mut BTreeMap<String, f64>,
    bytes_name: &str,
    bytes: u64,
    duration_ns: u64,
) {
    let (duration, moved) = (duration_ns as f64, bytes as f64);
    metrics.insert("duration_ns".to_owned(), duration);
    metrics.insert(bytes_name.to_owned(), moved);
    if bytes > 0 {
        metrics.insert("duration_per_byte_ns".to_owned(), duration / moved);
    }
    if duration_ns > 0 {
        metrics.insert("throughput_bytes_per_s".to_owned(), moved / duration * 1e9);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_over_nothing_are_left_out() {
        let mut metrics = BTreeMap::new();
        add_rates(&mut metrics, "bytes_copied", 0, 0);
        assert_eq!(
            metrics.keys().collect::<Vec<_>>(),
            ["bytes_copied", "duration_ns"]
        );
    }

    #[test]
    fn rates_follow_from_bytes_and_nanoseconds() {
        let mut metrics = BTreeMap::new();
        add_rates(&mut metrics, "bytes_copied", 2_000, 1_000);
        assert_eq!(metrics["duration_per_byte_ns"], 0.5);
        assert_eq!(metrics["throughput_bytes_per_s"], 2e9);
    }
}
