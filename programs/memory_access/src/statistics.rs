//! The statistics of the accesses, under the names of the report.

use std::fmt::Write;

use toll_probe::usage::Usage;
use toll_probe::workloads::memory::published::Statistics;
use toll_wire::CounterReading;

const BLOCK_BYTES: u64 = 512;

pub fn lines(statistics: &Statistics) -> String {
    let mut lines = usage("init", &statistics.initialisation);
    lines.push_str(&usage("fun", &statistics.accesses));
    let count = |name: &str| statistics.counters.get(name).map(count);
    let (reads, misses) = (count("l1d-read-accesses"), count("l1d-read-misses"));
    let rate = reads
        .zip(misses)
        .map(|(reads, misses)| misses as f64 / reads as f64);
    let whole = |count: Option<u64>| count.map(|count| count.to_string());
    for (name, value) in [
        ("Data L1 read access", whole(reads)),
        ("Data L1 write access", whole(count("l1d-write-accesses"))),
        ("Data L1 read miss", whole(misses)),
        (
            "Data L1 read miss rate",
            rate.map(|rate| format!("{rate:.3}")),
        ),
        ("Data TLB read miss", whole(count("dtlb-read-misses"))),
        ("Data TLB write miss", whole(count("dtlb-write-misses"))),
    ] {
        let value = value.unwrap_or_else(|| "not counted".to_owned());
        writeln!(lines, "{name}: {value}").expect("a string can always grow");
    }
    lines
}

fn usage(part: &str, usage: &Usage) -> String {
    let seconds = |time_ns: u64| format!("{:.3} s", time_ns as f64 / 1e9);
    let mut lines = String::new();
    for (name, value) in [
        ("utime", seconds(usage.user_ns)),
        ("stime", seconds(usage.system_ns)),
        ("minflt", usage.minor_faults.to_string()),
        ("majflt", usage.major_faults.to_string()),
        (
            "inblock",
            (usage.block_input_bytes / BLOCK_BYTES).to_string(),
        ),
        (
            "oublock",
            (usage.block_output_bytes / BLOCK_BYTES).to_string(),
        ),
        ("maxrss", format!("{} KB", usage.max_rss_bytes / 1024)),
    ] {
        writeln!(lines, "{name} ({part}): {value}").expect("a string can always grow");
    }
    lines
}

/// Returns the count of a counter. The count is an estimate if the kernel multiplexed
/// the counting unit among events.
fn count(reading: &CounterReading) -> u64 {
    match reading.running_ns {
        0 => reading.count,
        running_ns if running_ns < reading.enabled_ns => {
            let scale = reading.enabled_ns as f64 / running_ns as f64;
            (reading.count as f64 * scale) as u64
        }
        _ => reading.count,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn each_line_has_the_published_name_and_unit() {
        let reading = |count, running_ns| CounterReading {
            count,
            enabled_ns: 100,
            running_ns,
        };
        let counters = BTreeMap::from([
            ("l1d-read-accesses".to_owned(), reading(1000, 100)),
            ("l1d-read-misses".to_owned(), reading(55, 50)),
        ]);
        let statistics = Statistics {
            initialisation: Usage {
                max_rss_bytes: 17_540 << 10,
                ..Usage::default()
            },
            accesses: Usage {
                user_ns: 4_827_400_000,
                minor_faults: 7336,
                block_output_bytes: 32_832 * 512,
                ..Usage::default()
            },
            counters,
            missing: BTreeMap::new(),
        };
        let lines = lines(&statistics);
        for line in [
            "maxrss (init): 17540 KB",
            "utime (fun): 4.827 s",
            "minflt (fun): 7336",
            "oublock (fun): 32832",
            "Data L1 read access: 1000",
            "Data L1 write access: not counted",
            // This counter was on the counting unit for half of the time.
            "Data L1 read miss: 110",
            "Data L1 read miss rate: 0.110",
        ] {
            assert!(lines.lines().any(|one| one == line), "{line} in\n{lines}");
        }
    }
}
