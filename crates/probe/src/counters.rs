//! Performance counters around the timed region (perf_event_open(2)).

use std::collections::BTreeMap;
use std::io;

use perf_event::events::{Cache, CacheId, CacheOp, CacheResult, Hardware, Raw, Software};
use perf_event::{Builder, Counter, GroupData, ReadFormat};
use toll_wire::{CounterReading, Failure};

use crate::{failure, proc_file};

/// Whose events are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inherit {
    /// Events of the calling thread.
    No,
    /// Events of the calling thread, and of children and threads that it starts after the counters
    /// were opened.
    Yes,
    /// Events of programs that the calling thread starts, each from its `execve` on, and of all
    /// that these programs start. Events of the calling thread are not counted.
    OnExec,
}

pub struct Counters {
    groups: Vec<Group>,
    inherit: Inherit,
    missing: BTreeMap<String, String>,
    notes: Vec<String>,
}

/// Events that the kernel counts over the same time: it puts all of them on the CPU's counting unit
/// (PMU), or none. Enabling or disabling the leader switches the whole group at once.
/// `PERF_IOC_FLAG_GROUP` would switch one event after another (perf_event_for_each in
/// kernel/events/core.c).
struct Group {
    /// Names of the events, the leader's first, in the order in which the kernel
    /// returns their counts.
    names: Vec<String>,
    leader: Counter,
    members: Vec<Counter>,
    before: Option<Reading>,
}

impl Counters {
    /// Opens the named counters, disabled. [`Counters::missing`] returns those that
    /// cannot be opened, with the reason.
    pub fn open(names: &[String], inherit: Inherit) -> Self {
        let mut counters = Self {
            groups: Vec::new(),
            inherit,
            missing: BTreeMap::new(),
            notes: Vec::new(),
        };
        let mut names: Vec<&String> = names.iter().collect();
        // Leaders come before the events that join their groups.
        names.sort_by_key(|name| leader_of(name).is_some());
        names.dedup();
        for name in names {
            if let Err(why) = counters.open_one(name) {
                counters.missing.insert(name.clone(), why);
            }
        }
        // Groups are enabled one after another, so each group counts the enabling of later groups.
        // Most software events do not count that work, so software groups come first.
        counters.groups.sort_by_key(|group| !group.is_software());
        counters
    }

    pub fn none() -> Self {
        Self::open(&[], Inherit::No)
    }

    fn open_one(&mut self, name: &str) -> Result<(), String> {
        let generic = builder(name).ok_or_else(|| unknown(name))?;
        let error = match self.build(name, generic) {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        // The kernel has no generic event of that name for this CPU.
        if name == ZEN_EVENT.0
            && is_zen(&std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default())
            && self
                .build(name, Builder::new(Raw::new(ZEN_EVENT.2)))
                .is_ok()
        {
            let (_, event, config) = ZEN_EVENT;
            self.notes
                .push(format!("{name} is {event} (raw:{config:#06x}) on this CPU"));
            return Ok(());
        }
        Err(cannot_open(name, &error))
    }

    fn build(&mut self, name: &str, mut builder: Builder<'static>) -> io::Result<()> {
        // The kernel's work is measured, too.
        builder
            .exclude_kernel(false)
            .inherit(self.inherit != Inherit::No);
        let group = self.groups.iter_mut().find(|group| group.takes(name));
        let has_group = group.is_some();
        if let Some(group) = group
            && let Ok(member) = builder.enabled(true).build_with_group(&mut group.leader)
        {
            group.names.push(name.to_owned());
            group.members.push(member);
            return Ok(());
        }
        // Reading a group of inherited events needs Linux 4.13.
        let leader = builder
            .enabled(false)
            .enable_on_exec(self.inherit == Inherit::OnExec)
            .read_format(
                ReadFormat::GROUP | ReadFormat::TOTAL_TIME_ENABLED | ReadFormat::TOTAL_TIME_RUNNING,
            )
            .build()?;
        // The kernel refuses a group that does not fit on the PMU
        // (validate_group in arch/x86/events/core.c).
        if let Some(other) = leader_of(name)
            && has_group
        {
            self.notes.push(format!(
                "{name} and {other} are counted separately: the counting unit cannot hold both"
            ));
        }
        self.groups.push(Group {
            names: vec![name.to_owned()],
            leader,
            members: Vec::new(),
            before: None,
        });
        Ok(())
    }

    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Requested counters that could not be opened, with the reason.
    pub fn missing(&self) -> &BTreeMap<String, String> {
        &self.missing
    }

    /// Starts counting. Counters of [`Inherit::OnExec`] count only from an `execve`.
    pub fn start(&mut self) -> Result<(), Failure> {
        for group in &mut self.groups {
            // A reset does not clear the times and the counts of ended children
            // (perf_event_reset in kernel/events/core.c), so this reading is
            // subtracted instead.
            group.before = Some(group.read()?);
        }
        if self.inherit != Inherit::OnExec {
            for group in &mut self.groups {
                let enabled = group.leader.enable();
                enabled.map_err(|error| group.cannot_read(&error))?;
            }
        }
        Ok(())
    }

    /// Stops counting and returns the counts since the start.
    pub fn stop(&mut self) -> Result<BTreeMap<String, CounterReading>, Failure> {
        if self.inherit != Inherit::OnExec {
            for group in self.groups.iter_mut().rev() {
                let disabled = group.leader.disable();
                disabled.map_err(|error| group.cannot_read(&error))?;
            }
        }
        let mut readings = BTreeMap::new();
        for group in &mut self.groups {
            let after = group.read()?;
            let before = group.before.take().expect("counters were started");
            for (index, name) in group.names.iter().enumerate() {
                readings.insert(name.clone(), after.since(&before, index));
            }
        }
        Ok(readings)
    }
}

impl Group {
    /// Whether the event `name` belongs to this group. A ratio of counts is meaningful
    /// only if both were on the PMU over the same time. Software events need no PMU, so
    /// one group always takes all of them. In a group with other events they would wait
    /// for the PMU.
    fn takes(&self, name: &str) -> bool {
        match leader_of(name) {
            Some(leader) => self.names[0] == leader,
            None => is_software(name) && self.is_software(),
        }
    }

    fn is_software(&self) -> bool {
        is_software(&self.names[0])
    }

    fn read(&mut self) -> Result<Reading, Failure> {
        let read = self.leader.read_group();
        let data = read.map_err(|error| self.cannot_read(&error))?;
        Ok(Reading::from(&data))
    }

    fn cannot_read(&self, error: &io::Error) -> Failure {
        let what = format!("read perf counter {}", self.names.join(", "));
        failure::instrument(failure::cannot(&what, error, "ask for fewer counters"))
    }
}

struct Reading {
    enabled_ns: u64,
    running_ns: u64,
    counts: Vec<u64>,
}

impl From<&GroupData> for Reading {
    fn from(data: &GroupData) -> Self {
        let nanoseconds =
            |time: Option<std::time::Duration>| time.map_or(0, |time| time.as_nanos() as u64);
        Self {
            enabled_ns: nanoseconds(data.time_enabled()),
            running_ns: nanoseconds(data.time_running()),
            counts: data.iter().map(|entry| entry.value()).collect(),
        }
    }
}

impl Reading {
    fn since(&self, before: &Self, index: usize) -> CounterReading {
        CounterReading {
            count: self.counts[index].saturating_sub(before.counts[index]),
            enabled_ns: self.enabled_ns.saturating_sub(before.enabled_ns),
            running_ns: self.running_ns.saturating_sub(before.running_ns),
        }
    }
}

/// Replacement of a generic event on Zen: its name, the vendor's name, and event
/// select with unit mask. The kernel's table for Zen (amd_hw_cache_event_ids_f17h in
/// arch/x86/events/amd/core.c) has no writes to L1D; PMCx029, unit mask 02h, counts
/// stores at dispatch (Processor Programming Reference for family 17h, "LS
/// Dispatch"). `dtlb-write-misses` has no replacement: misses of the data TLB by
/// writes are not counted separately from those by reads.
const ZEN_EVENT: (&str, &str, u64) = ("l1d-write-accesses", "ls_dispatch.store_dispatch", 0x0229);

/// Whether the CPU is one of AMD's family 17h or later.
fn is_zen(cpuinfo: &str) -> bool {
    let family = proc_file::value(cpuinfo, "cpu family").and_then(|family| family.parse().ok());
    proc_file::value(cpuinfo, "vendor_id") == Some("AuthenticAMD")
        && family.is_some_and(|family: u32| family >= 0x17)
}

/// Returns the counter whose group `name` joins, because a ratio of the two is
/// computed.
fn leader_of(name: &str) -> Option<&'static str> {
    Some(match name {
        "instructions" => "cycles",
        "l1d-read-misses" | "l1d-write-accesses" => "l1d-read-accesses",
        "dtlb-write-misses" => "dtlb-read-misses",
        _ => return None,
    })
}

/// Whether the kernel itself counts an event.
fn is_software(name: &str) -> bool {
    let software = [
        "page-faults",
        "context-switches",
        "cpu-migrations",
        "task-clock-ns",
    ];
    software.contains(&name)
}

fn builder(name: &str) -> Option<Builder<'static>> {
    let cache = |which, operation, result| {
        Builder::new(Cache {
            which,
            operation,
            result,
        })
    };
    let (l1d, dtlb) = (CacheId::L1D, CacheId::DTLB);
    Some(match name {
        "page-faults" => Builder::new(Software::PAGE_FAULTS),
        "context-switches" => Builder::new(Software::CONTEXT_SWITCHES),
        "cpu-migrations" => Builder::new(Software::CPU_MIGRATIONS),
        "task-clock-ns" => Builder::new(Software::TASK_CLOCK),
        "cycles" => Builder::new(Hardware::CPU_CYCLES),
        "instructions" => Builder::new(Hardware::INSTRUCTIONS),
        "branches" => Builder::new(Hardware::BRANCH_INSTRUCTIONS),
        "branch-misses" => Builder::new(Hardware::BRANCH_MISSES),
        "cache-references" => Builder::new(Hardware::CACHE_REFERENCES),
        "cache-misses" => Builder::new(Hardware::CACHE_MISSES),
        "l1d-read-accesses" => cache(l1d, CacheOp::READ, CacheResult::ACCESS),
        "l1d-read-misses" => cache(l1d, CacheOp::READ, CacheResult::MISS),
        "l1d-write-accesses" => cache(l1d, CacheOp::WRITE, CacheResult::ACCESS),
        "dtlb-read-accesses" => cache(dtlb, CacheOp::READ, CacheResult::ACCESS),
        "dtlb-read-misses" => cache(dtlb, CacheOp::READ, CacheResult::MISS),
        "dtlb-write-misses" => cache(dtlb, CacheOp::WRITE, CacheResult::MISS),
        _ => Builder::new(Raw::new(toll_wire::raw_counter(name)?)),
    })
}

fn unknown(name: &str) -> String {
    format!("cannot open perf counter {name}: unknown counter; `toll run --help` lists them")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_name_can_be_built_and_others_cannot() {
        for name in toll_wire::COUNTERS {
            assert!(builder(name).is_some(), "{name}");
        }
        assert!(builder("raw:0x01c2").is_some());
        for name in ["", "raw:", "raw:12", "raw:0xzz", "Cycles"] {
            assert!(builder(name).is_none(), "{name}");
        }
    }

    #[test]
    fn only_zen_has_a_stand_in() {
        let zen = "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t: 1\n";
        assert!(is_zen(zen));
        let intel = zen.replace("AuthenticAMD", "GenuineIntel");
        let bulldozer = zen.replace("25", "21");
        for text in [&intel, &bulldozer, ""] {
            assert!(!is_zen(text), "{text:?}");
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
    #[expect(clippy::print_stderr, reason = "a skipped test prints its reason")]
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
