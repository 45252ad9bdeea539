//! Measures the time that counting adds to a call.

use std::time::Instant;

use crate::layout::PROGRAM_NOT_TRACED;
use crate::mark::Marker;

/// Calls per batch. With this many, reading the clock does not matter.
const CALLS: u32 = 1000;
/// The result is the median of this many batches, because some are interrupted.
const BATCHES: usize = 9;

/// Returns the time of a small read while nothing is counted, in nanoseconds.
pub fn untraced_ns() -> Option<f64> {
    let zero = std::fs::File::open("/dev/zero").ok()?;
    let mut times: Vec<f64> = (0..BATCHES)
        .map(|_| {
            let begin = Instant::now();
            for _ in 0..CALLS {
                let mut byte = [1];
                // Only the call matters, not its result.
                let _ = rustix::io::read(&zero, &mut byte);
            }
            begin.elapsed().as_nanos() as f64 / f64::from(CALLS)
        })
        .collect();
    times.sort_by(f64::total_cmp);
    Some(times[BATCHES / 2])
}

/// Returns the time of a small read while it is counted, in nanoseconds. Uses a new thread, for
/// which nothing else is recorded.
pub fn traced_ns(marker: Marker) -> Option<f64> {
    let counted = std::thread::spawn(move || {
        marker.mark_thread(PROGRAM_NOT_TRACED).ok()?;
        untraced_ns()
    });
    counted.join().ok().flatten()
}
