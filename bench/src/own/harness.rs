//! What `toll` adds to a trial, beside what starting a process costs.

use std::path::Path;
use std::time::Instant;

use super::program::{Toll, run, samples};
use crate::process::command;

/// Processes started for one value of the price of starting one.
const SPAWNS: u32 = 200;
/// Blocks of the shorter and of the longer run, whose difference is free of what
/// a run costs as a whole. Each block has two trials: the command and its twin.
const BLOCKS: [u64; 2] = [20, 120];

/// Starting `true` and waiting for it, in nanoseconds.
pub(super) fn spawn_ns() -> Result<f64, String> {
    let begin = Instant::now();
    for _ in 0..SPAWNS {
        run(&mut command(Path::new("true")))?;
    }
    Ok(begin.elapsed().as_nanos() as f64 / f64::from(SPAWNS))
}

/// Wall time of a trial of `true` outside of its timed region, in nanoseconds.
/// The store is a file in this directory.
pub(super) fn harness_ns(toll: &Toll, directory: &Path) -> Result<f64, String> {
    let mut wall_ns = [0.0; 2];
    let mut inside_ns = [0.0; 2];
    let mut trials = [0.0; 2];
    for (index, blocks) in BLOCKS.iter().enumerate() {
        let store = directory.join("harness.sqlite");
        let blocks = blocks.to_string();
        let line = ["run", "-q", "--no-html", "-N", "-r", &blocks, "true"];
        wall_ns[index] = toll.run(&store, &line)?.wall_ns as f64;
        let exported = toll.ask(&store, &["export", "last", "--json", "-"])?;
        let (sum_ns, count) = samples(&exported, "duration_ns")?;
        inside_ns[index] = sum_ns;
        trials[index] = count as f64;
        remove_store(&store);
    }
    let difference = |of: [f64; 2]| of[1] - of[0];
    Ok((difference(wall_ns) - difference(inside_ns)) / difference(trials))
}

/// Share of a run's wall time outside of timed regions, for a command.
pub(super) fn unmeasured_share(
    toll: &Toll,
    directory: &Path,
    program: &str,
) -> Result<f64, String> {
    let store = directory.join("share.sqlite");
    let line = ["run", "-q", "--no-html", "-N", "-r", "10", program];
    let wall_ns = toll.run(&store, &line)?.wall_ns as f64;
    let exported = toll.ask(&store, &["export", "last", "--json", "-"])?;
    remove_store(&store);
    Ok(1.0 - samples(&exported, "duration_ns")?.0 / wall_ns)
}

/// Removes a store with its journals, so that each run finds the same.
fn remove_store(store: &Path) {
    for ending in ["", "-wal", "-shm"] {
        let mut name = store.as_os_str().to_owned();
        name.push(ending);
        // Which of them there are is SQLite's business.
        let _ = std::fs::remove_file(name);
    }
}
