//! How much longer a command takes under trace.

use super::model::{CallSummary, Slowdown};

/// How calls were counted, and how much time that took.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Counting {
    Strace,
    Bpf {
        /// Time of counting for all calls together, in nanoseconds, if known.
        overhead_ns: Option<f64>,
    },
}

/// Returns how many times as long the command took under trace; `None` if unknown.
pub fn estimate(counting: Counting, wall_ns: u64, calls: &[CallSummary]) -> Option<Slowdown> {
    match counting {
        Counting::Strace => by_strace(wall_ns, calls),
        Counting::Bpf { overhead_ns } => by_bpf(wall_ns, overhead_ns?),
    }
}

/// Bounds how many times as long the command took while BPF counted. Lower bound: all counting
/// overlapped with other waits. Upper bound: all calls were made one after another.
fn by_bpf(wall_ns: u64, overhead_ns: f64) -> Option<Slowdown> {
    let wall = wall_ns as f64;
    (wall > overhead_ns).then(|| Slowdown {
        least: 1.0,
        most: wall / (wall - overhead_ns),
    })
}

/// Bounds how many times as long the command took under strace. Lower bound: only the extra time of
/// its priced calls is subtracted, since the time that strace takes between calls is unknown. Upper
/// bound: the command did nothing except its priced calls. Returns `None` without such calls.
fn by_strace(wall_ns: u64, calls: &[CallSummary]) -> Option<Slowdown> {
    let priced = || {
        calls
            .iter()
            .filter_map(|call| Some((call, call.priced_ns?)))
    };
    let priced_ns: f64 = priced().map(|(_, price)| price).sum();
    let longer_ns: f64 = priced()
        .map(|(call, price)| call.traced_ns as f64 - price)
        .sum();
    let wall = wall_ns as f64;
    // Threads that wait at the same time may be stopped for longer than the command ran.
    let rest_ns = wall - longer_ns.max(0.0);
    (priced_ns > 0.0 && rest_ns > priced_ns).then(|| Slowdown {
        least: wall / rest_ns,
        most: wall / priced_ns,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counting_by_bpf_slows_by_what_it_takes_at_most() {
        let slowdown = by_bpf(300, 100.0).unwrap();
        assert_eq!((slowdown.least, slowdown.most), (1.0, 1.5));
        // Threads on several CPUs may be slowed at the same time.
        assert_eq!(by_bpf(300, 300.0), None);
    }
}
