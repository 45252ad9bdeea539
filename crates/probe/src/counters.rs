//! Performance counters around the timed region (perf_event_open(2)).

mod vendor;

use std::collections::BTreeMap;
use std::io;

use perf_event::events::{Cache, CacheId, CacheOp, CacheResult, Hardware, Raw, Software};
use perf_event::{Builder, CountAndTime, Counter};
use toll_wire::{CounterReading, Failure};

use crate::failure;

/// Whether tasks started inside the region are counted as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inherit {
    /// Only the calling thread.
    No,
    /// Children and threads started after the counters were opened, too.
    Yes,
}

/// The open counters of a trial.
pub struct Counters {
    open: Vec<OpenCounter>,
    missing: BTreeMap<String, String>,
    notes: Vec<String>,
}

struct OpenCounter {
    name: String,
    counter: Counter,
    before: Option<CountAndTime>,
}

impl Counters {
    /// Opens the named counters, disabled. One that cannot be opened is among
    /// [`Counters::missing`] with the reason.
    pub fn open(names: &[String], inherit: Inherit) -> Self {
        let mut counters = Self {
            open: Vec::with_capacity(names.len()),
            missing: BTreeMap::new(),
            notes: Vec::new(),
        };
        let mut names: Vec<&String> = names.iter().collect();
        // Leaders come before those that join their group.
        names.sort_by_key(|name| leader_of(name).is_some());
        names.dedup();
        for name in names {
            match counters.open_one(name, inherit) {
                Ok(counter) => counters.open.push(OpenCounter {
                    name: name.clone(),
                    counter,
                    before: None,
                }),
                Err(why) => {
                    counters.missing.insert(name.clone(), why);
                }
            }
        }
        counters
    }

    /// No counters at all.
    pub fn none() -> Self {
        Self::open(&[], Inherit::No)
    }

    fn open_one(&mut self, name: &str, inherit: Inherit) -> Result<Counter, String> {
        let generic = builder(name).ok_or_else(|| unknown(name))?;
        let error = match self.build(name, generic, inherit) {
            Ok(counter) => return Ok(counter),
            Err(error) => error,
        };
        // The kernel has no generic event of that name for this CPU.
        if let Some(own) = vendor::event(name)
            && let Ok(counter) = self.build(name, Builder::new(Raw::new(own.config)), inherit)
        {
            self.notes.push(format!(
                "{name} is {} (raw:{:#06x}) on this CPU",
                own.name, own.config
            ));
            return Ok(counter);
        }
        Err(cannot_open(name, &error))
    }

    fn build(
        &mut self,
        name: &str,
        mut builder: Builder<'static>,
        inherit: Inherit,
    ) -> io::Result<Counter> {
        // What the kernel does is the object of study.
        builder
            .exclude_kernel(false)
            .inherit(inherit == Inherit::Yes);
        // A ratio of counts means something only if both were on the counting
        // unit over the same time, which the kernel promises for a group.
        let leader = leader_of(name)
            .and_then(|leader| self.open.iter_mut().find(|open| open.name == leader));
        if let Some(leader) = leader
            && let Ok(counter) = builder.build_with_group(&mut leader.counter)
        {
            return Ok(counter);
        }
        // A group that is more than the unit holds is refused as a whole
        // (validate_group in arch/x86/events/core.c).
        let counter = builder.build()?;
        if let Some(leader) = leader_of(name)
            && self.open.iter().any(|open| open.name == leader)
        {
            self.notes.push(format!(
                "{name} and {leader} are counted apart: the counting unit does not hold both"
            ));
        }
        Ok(counter)
    }

    /// What a reader must know of the counters that are open.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Requested counters that could not be opened, with the reason.
    pub fn missing(&self) -> &BTreeMap<String, String> {
        &self.missing
    }

    /// Starts counting.
    ///
    /// # Errors
    /// If a counter can neither be read nor enabled.
    pub fn start(&mut self) -> Result<(), Failure> {
        for open in &mut self.open {
            // A reset leaves the times and the counts of ended children as they
            // are (perf_event_reset in kernel/events/core.c), so the reading
            // before is subtracted instead.
            open.before = Some(read(open)?);
        }
        for open in &mut self.open {
            open.counter
                .enable()
                .map_err(|error| cannot_read(&open.name, &error))?;
        }
        Ok(())
    }

    /// Stops counting and yields the counts since the start.
    ///
    /// # Errors
    /// If a counter can neither be read nor disabled.
    pub fn stop(&mut self) -> Result<BTreeMap<String, CounterReading>, Failure> {
        for open in self.open.iter_mut().rev() {
            open.counter
                .disable()
                .map_err(|error| cannot_read(&open.name, &error))?;
        }
        let mut readings = BTreeMap::new();
        for open in &mut self.open {
            let after = read(open)?;
            let before = open.before.take().expect("counters were started");
            readings.insert(open.name.clone(), difference(&before, &after));
        }
        Ok(readings)
    }
}

/// The counter whose group one joins, because a ratio of the two is built.
fn leader_of(name: &str) -> Option<&'static str> {
    Some(match name {
        "instructions" => "cycles",
        "l1d-read-misses" | "l1d-write-accesses" => "l1d-read-accesses",
        "dtlb-write-misses" => "dtlb-read-misses",
        _ => return None,
    })
}

fn read(open: &mut OpenCounter) -> Result<CountAndTime, Failure> {
    open.counter
        .read_count_and_time()
        .map_err(|error| cannot_read(&open.name, &error))
}

fn difference(before: &CountAndTime, after: &CountAndTime) -> CounterReading {
    CounterReading {
        count: after.count.saturating_sub(before.count),
        enabled_ns: after.time_enabled.saturating_sub(before.time_enabled),
        running_ns: after.time_running.saturating_sub(before.time_running),
    }
}

fn builder(name: &str) -> Option<Builder<'static>> {
    if let Some(config) = name.strip_prefix("raw:") {
        let config = u64::from_str_radix(config.strip_prefix("0x")?, 16).ok()?;
        return Some(Builder::new(Raw::new(config)));
    }
    if let Some(event) = software(name) {
        return Some(Builder::new(event));
    }
    if let Some(event) = hardware(name) {
        return Some(Builder::new(event));
    }
    cache(name).map(Builder::new)
}

fn software(name: &str) -> Option<Software> {
    Some(match name {
        "page-faults" => Software::PAGE_FAULTS,
        "context-switches" => Software::CONTEXT_SWITCHES,
        "cpu-migrations" => Software::CPU_MIGRATIONS,
        "task-clock-ns" => Software::TASK_CLOCK,
        _ => return None,
    })
}

fn hardware(name: &str) -> Option<Hardware> {
    Some(match name {
        "cycles" => Hardware::CPU_CYCLES,
        "instructions" => Hardware::INSTRUCTIONS,
        "branches" => Hardware::BRANCH_INSTRUCTIONS,
        "branch-misses" => Hardware::BRANCH_MISSES,
        "cache-references" => Hardware::CACHE_REFERENCES,
        "cache-misses" => Hardware::CACHE_MISSES,
        _ => return None,
    })
}

fn cache(name: &str) -> Option<Cache> {
    let (which, operation, result) = match name {
        "l1d-read-accesses" => (CacheId::L1D, CacheOp::READ, CacheResult::ACCESS),
        "l1d-read-misses" => (CacheId::L1D, CacheOp::READ, CacheResult::MISS),
        "l1d-write-accesses" => (CacheId::L1D, CacheOp::WRITE, CacheResult::ACCESS),
        "dtlb-read-accesses" => (CacheId::DTLB, CacheOp::READ, CacheResult::ACCESS),
        "dtlb-read-misses" => (CacheId::DTLB, CacheOp::READ, CacheResult::MISS),
        "dtlb-write-misses" => (CacheId::DTLB, CacheOp::WRITE, CacheResult::MISS),
        _ => return None,
    };
    Some(Cache {
        which,
        operation,
        result,
    })
}

fn unknown(name: &str) -> String {
    format!("cannot open perf counter {name}: unknown counter; see the list of counters")
}

fn cannot_open(name: &str, error: &io::Error) -> String {
    let advice = match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => "run as root or set kernel.perf_event_paranoid to 1",
        Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV | libc::EINVAL) => {
            "this CPU or guest has no such event"
        }
        Some(libc::ENOSYS) => "this kernel is built without perf events",
        Some(libc::EMFILE) => "ask for fewer counters",
        _ => "ask for another counter",
    };
    format!(
        "cannot open perf counter {name}: {}; {advice}",
        failure::reason(error)
    )
}

fn cannot_read(name: &str, error: &io::Error) -> Failure {
    failure::instrument(format!(
        "cannot read perf counter {name}: {}; ask for fewer counters",
        failure::reason(error)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_documented_name_is_known_and_others_are_not() {
        for name in [
            "page-faults",
            "context-switches",
            "cpu-migrations",
            "task-clock-ns",
            "cycles",
            "instructions",
            "branches",
            "branch-misses",
            "cache-references",
            "cache-misses",
            "l1d-read-accesses",
            "l1d-read-misses",
            "l1d-write-accesses",
            "dtlb-read-accesses",
            "dtlb-read-misses",
            "dtlb-write-misses",
            "raw:0x01c2",
        ] {
            assert!(builder(name).is_some(), "{name}");
        }
        for name in ["", "raw:", "raw:12", "raw:0xzz", "Cycles"] {
            assert!(builder(name).is_none(), "{name}");
        }
    }

    #[test]
    fn a_counter_joins_the_group_of_one_that_leads() {
        for name in ["instructions", "l1d-read-misses", "dtlb-write-misses"] {
            let leader = leader_of(name).unwrap();
            assert!(builder(leader).is_some(), "{leader}");
            assert_eq!(leader_of(leader), None, "{leader} leads and follows");
        }
    }

    #[test]
    fn an_unknown_counter_is_missing_with_a_reason() {
        let counters = Counters::open(&["bogus".to_owned()], Inherit::No);
        assert!(counters.missing()["bogus"].contains("unknown counter"));
    }

    #[test]
    #[expect(clippy::print_stderr, reason = "a skip tells its reason")]
    fn counts_are_differences_between_start_and_stop() {
        let name = "page-faults".to_owned();
        let mut counters = Counters::open(std::slice::from_ref(&name), Inherit::No);
        if let Some(why) = counters.missing().get(&name) {
            eprintln!("skipped: {why}");
            return;
        }
        counters.start().unwrap();
        let memory = vec![1u8; 16 << 20];
        let first = counters.stop().unwrap();
        counters.start().unwrap();
        let second = counters.stop().unwrap();
        assert!(first[&name].count > 0, "{} bytes", memory.len());
        assert!(
            second[&name].count < first[&name].count,
            "the count was carried over"
        );
    }
}
