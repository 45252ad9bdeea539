//! Other activity of the machine during a trial, from `/proc` and `/sys`.
//!
//! Values of the probe itself come from its main thread, which does the work: a thread
//! that drains an output is preempted all the time.

use std::fs::{File, read_to_string};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;

use perf_event::{Builder, Counter, events::Software};
use toll_wire::Disturbance;

use crate::proc_file;
use crate::usage::{Scope, Usage};

type Reading = fn(&str) -> Option<u64>;

/// Files with the machine's running totals, and the function that reads each, in the
/// order of [`Disturbance`]: steal time, migrations, and stalls for CPU, I/O and
/// memory.
const TOTALS: [(&str, Reading); 5] = [
    ("/proc/stat", steal_ns),
    ("/proc/self/sched", migrations),
    ("/proc/pressure/cpu", psi_some_ns),
    ("/proc/pressure/io", psi_some_ns),
    ("/proc/pressure/memory", psi_some_ns),
];

/// The files of [`TOTALS`], opened once and read twice: opening a file of
/// `/proc/pressure` takes ten times as long as reading it. `None` for a missing file.
struct Sources([Option<File>; TOTALS.len()]);

impl Sources {
    fn totals(&self) -> Totals {
        let usage = Usage::now(Scope::Thread);
        let total = |at: usize| TOTALS[at].1(&head_of(&self.0[at])?);
        Totals {
            usage,
            counts: std::array::from_fn(total),
        }
    }
}

/// The machine's running totals at one moment; `None` for a total that the machine does not report.
struct Totals {
    usage: Usage,
    counts: [Option<u64>; TOTALS.len()],
}

/// An observation of the machine in progress, ended by [`Self::end`]. Its beginning and its end
/// each read only what cannot be read at the other time, because every file costs a trial some
/// microseconds.
pub struct Observation {
    sources: Sources,
    before: Totals,
    dirty_bytes: Option<u64>,
    writeback_bytes: Option<u64>,
    migration_counter: Option<Counter>,
}

impl Observation {
    pub fn begin() -> Self {
        let memory = head_of(&File::open("/proc/meminfo").ok()).unwrap_or_default();
        let sources = Sources(TOTALS.map(|(path, _)| File::open(path).ok()));
        let before = sources.totals();
        Self {
            dirty_bytes: proc_file::bytes(&memory, "Dirty"),
            writeback_bytes: proc_file::bytes(&memory, "Writeback"),
            migration_counter: match before.counts {
                [_, Some(_), ..] => None,
                _ => count_migrations(),
            },
            sources,
            before,
        }
    }

    pub fn end(mut self) -> Disturbance {
        let (before, after) = (self.before, self.sources.totals());
        let used = after.usage.since(&before.usage);
        let counted = self
            .migration_counter
            .as_mut()
            .and_then(|counter| counter.read().ok());
        let difference = |at: usize| Some(after.counts[at]?.saturating_sub(before.counts[at]?));
        let [
            steal_ns,
            migrations,
            psi_cpu_some_ns,
            psi_io_some_ns,
            psi_memory_some_ns,
        ] = std::array::from_fn(difference);
        Disturbance {
            steal_ns,
            involuntary_switches: Some(used.involuntary_switches),
            migrations: migrations.or(counted),
            major_faults: Some(used.major_faults),
            psi_cpu_some_ns,
            psi_io_some_ns,
            psi_memory_some_ns,
            dirty_bytes_before: self.dirty_bytes,
            writeback_bytes_before: self.writeback_bytes,
            frequency_khz: frequency_khz(rustix::thread::sched_getcpu()),
        }
    }
}

/// Returns the beginning of a file of `/proc`, by one read. The first lines of each
/// file have the value, and the size that `read_to_string` queries first is never known
/// there.
fn head_of(file: &Option<File>) -> Option<String> {
    const BYTES_MAX: usize = 4096;
    let mut head = vec![0; BYTES_MAX];
    let count = file.as_ref()?.read_at(&mut head, 0).ok()?;
    head.truncate(count);
    String::from_utf8(head).ok()
}

/// Counts migrations by a software event, without scheduler statistics in `/proc`.
fn count_migrations() -> Option<Counter> {
    let mut builder = Builder::new(Software::CPU_MIGRATIONS);
    builder.exclude_kernel(false).enabled(true).build().ok()
}

/// Returns the steal time of all CPUs together: the 8th value of the `cpu` line of
/// proc_stat(5).
fn steal_ns(stat: &str) -> Option<u64> {
    steal_ns_at(stat, rustix::param::clock_ticks_per_second())
}

fn steal_ns_at(stat: &str, ticks_per_second: u64) -> Option<u64> {
    const STEAL_COLUMN: usize = 8;
    let line = stat.lines().find(|line| line.starts_with("cpu "))?;
    let ticks: u64 = line
        .split_ascii_whitespace()
        .nth(STEAL_COLUMN)?
        .parse()
        .ok()?;
    ticks
        .checked_mul(1_000_000_000)?
        .checked_div(ticks_per_second)
}

/// Returns the total time in which some task was stalled. The kernel reports
/// microseconds (Documentation/accounting/psi.rst).
fn psi_some_ns(pressure: &str) -> Option<u64> {
    let line = pressure.lines().find(|line| line.starts_with("some "))?;
    let total = line
        .split_ascii_whitespace()
        .find_map(|word| word.strip_prefix("total="))?;
    total.parse::<u64>().ok()?.checked_mul(1_000)
}

fn migrations(sched: &str) -> Option<u64> {
    proc_file::value(sched, "se.nr_migrations")?.parse().ok()
}

fn frequency_khz(cpu: usize) -> Option<u64> {
    let path = format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq");
    match read_to_string(path) {
        Ok(text) => text.trim().parse().ok(),
        Err(_) => {
            // The kernel formats as many CPUs as a read has room for, each with
            // the names of all its flags. The CPUs after this one are not needed.
            const BYTES_AT_ONCE: usize = 512;
            let cpuinfo = File::open("/proc/cpuinfo").ok()?;
            let lines = BufReader::with_capacity(BYTES_AT_ONCE, cpuinfo).lines();
            cpuinfo_khz(lines.map_while(Result::ok), cpu)
        }
    }
}

fn cpuinfo_khz(lines: impl Iterator<Item = impl AsRef<str>>, cpu: usize) -> Option<u64> {
    let mut is_ours = false;
    for line in lines {
        let line = line.as_ref();
        let Some((name, value)) = line.split_once(':') else {
            continue;
        };
        match name.trim() {
            "processor" => is_ours = value.trim().parse() == Ok(cpu),
            "cpu MHz" if is_ours => {
                let megahertz: f64 = value.trim().parse().ok()?;
                return Some((megahertz * 1_000.0).round() as u64);
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steal_is_the_eighth_value_in_ticks() {
        let stat = "cpu  42106 0 3598 252296 1674 0 139 29 0 0\ncpu0 1 1 1 1 1 1 1 7 0 0\n";
        assert_eq!(steal_ns_at(stat, 100), Some(290_000_000));
        assert_eq!(steal_ns_at(stat, 0), None);
    }

    #[test]
    fn pressure_totals_become_nanoseconds() {
        let text = "some avg10=32.53 avg60=7.35 avg300=2.11 total=17459688\n\
                    full avg10=0.00 avg60=0.00 avg300=0.00 total=5\n";
        assert_eq!(psi_some_ns(text), Some(17_459_688_000));
    }

    #[test]
    fn migrations_are_found_with_and_without_padding() {
        assert_eq!(migrations("se.nr_migrations      :       12\n"), Some(12));
        assert_eq!(migrations("se.nr_migrations:3"), Some(3));
    }

    #[test]
    fn the_frequency_is_that_of_the_asked_cpu() {
        let text = "processor\t: 0\ncpu MHz\t\t: 800.5\n\nprocessor\t: 1\ncpu MHz\t\t: 2100.000\n";
        assert_eq!(cpuinfo_khz(text.lines(), 0), Some(800_500));
        assert_eq!(cpuinfo_khz(text.lines(), 1), Some(2_100_000));
        assert_eq!(cpuinfo_khz(text.lines(), 2), None);
    }

    #[test]
    fn malformed_text_yields_nothing() {
        let texts = [
            "",
            "cpu ",
            "cpu 1 2",
            "cpu a b c d e f g h i",
            "some",
            "some total=",
            "some total=x",
            "some total=18446744073709551615",
            "se.nr_migrations",
            "se.nr_migrations: -1",
            "processor: 0\ncpu MHz: x",
            "processor: 0\ncpu MHz",
            "\0\u{fffd}:::",
        ];
        for text in texts {
            for (_, read) in TOTALS {
                assert_eq!(read(text), None, "{text:?}");
            }
            assert_eq!(cpuinfo_khz(text.lines(), 0), None, "{text:?}");
        }
    }

    #[test]
    fn this_machine_tells_what_it_has() {
        let disturbance = Observation::begin().end();
        assert!(disturbance.involuntary_switches.is_some());
        assert!(disturbance.steal_ns.is_some());
        assert!(disturbance.dirty_bytes_before.is_some());
        assert!(disturbance.writeback_bytes_before.is_some());
    }
}
