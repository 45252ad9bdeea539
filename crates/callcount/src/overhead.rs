//! What counting a call takes.

use std::time::Instant;

use crate::layout::PROGRAM_NOT_TRACED;
use crate::mark::Marker;

/// Enough calls that reading the clock does not matter.
const CALLS: u32 = 1000;
/// Of so many batches the median is taken: some are interrupted.
const BATCHES: usize = 9;

/// Time of a small read as long as nothing is counted, in nanoseconds.
pub fn untraced_ns() -> Option<f64> {
    let zero = std::fs::File::open("/dev/zero").ok()?;
    let mut times: Vec<f64> = (0..BATCHES)
        .map(|_| {
            let begin = Instant::now();
            for _ in 0..CALLS {
                let mut byte = [1];
                // What it returns does not matter, only that it was made.
                let _ = rustix::io::read(&zero, &mut byte);
            }
            begin.elapsed().as_nanos() as f64 / f64::from(CALLS)
        })
        .collect();
    times.sort_by(f64::total_cmp);
    Some(times[BATCHES / 2])
}

/// The same, counted. The thread is a new one, of which nothing else is known.
pub fn traced_ns(marker: Marker) -> Option<f64> {
    let counted = std::thread::spawn(move || {
        marker.mark_thread(PROGRAM_NOT_TRACED).ok()?;
        untraced_ns()
    });
    counted.join().ok().flatten()
}
