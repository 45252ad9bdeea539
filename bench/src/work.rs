//! Finds out how much work of `bench-work` takes a given time.

use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

use crate::process::command;

/// Smallest step in the number of pieces of work. It is a multiple of 100, so that one percent of
/// the work is a whole number.
const PIECES_STEP: u64 = 100;

/// Returns how many pieces of work take `work_ms` milliseconds.
pub fn calibrate(work: &Path, work_ms: f64) -> Result<u64, String> {
    let shortest = |pieces: u64| -> Result<f64, String> {
        let mut shortest = f64::INFINITY;
        for _ in 0..9 {
            let begin = Instant::now();
            let status = command(work)
                .arg(pieces.to_string())
                .stdin(Stdio::null())
                .status()
                .map_err(|error| format!("cannot run {}: {error}", work.display()))?;
            if !status.success() {
                return Err(format!("{} failed ({status})", work.display()));
            }
            shortest = shortest.min(begin.elapsed().as_nanos() as f64);
        }
        Ok(shortest)
    };
    let (few, many) = (shortest(PIECES_STEP)?, shortest(20 * PIECES_STEP)?);
    let per_piece_ns = ((many - few) / (19 * PIECES_STEP) as f64).max(1.0);
    let steps = work_ms * 1e6 / per_piece_ns / PIECES_STEP as f64;
    Ok(steps.round().max(1.0) as u64 * PIECES_STEP)
}
