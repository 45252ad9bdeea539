//! What a reading of the clock costs, beside an empty system call.

use std::ffi::OsStr;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::Instant;

use toll_probe::clock;

use super::program::{Toll, samples};
use crate::process::{find, is_executable, run};

/// Readings for one value.
const READINGS: u32 = 1_000_000;

/// An experiment of one operation. Its calls are as many in an iteration as make
/// the readings of the clock around them vanish.
const EMPTY_CALL: &str = "\
format = 1
name = 'empty-call'
title = 'An empty system call'
question = 'What does an empty system call cost?'
metric = 'duration_per_call_ns'
[workload]
kind = 'crossing'
calls = 100000
operation = 'empty-syscall'
[run]
iterations = 5
min_blocks = 6
max_blocks = 6
";

/// One reading of the clock of timed regions, in nanoseconds.
pub(super) fn clock_ns() -> f64 {
    let begin = Instant::now();
    for _ in 0..READINGS {
        black_box(clock::now_ns());
    }
    begin.elapsed().as_nanos() as f64 / f64::from(READINGS)
}

/// An empty system call by toll's own workload, in nanoseconds.
pub(super) fn toll_call_ns(toll: &Toll, directory: &Path) -> Result<f64, String> {
    let file = directory.join("empty-call.toml");
    std::fs::write(&file, EMPTY_CALL)
        .map_err(|error| format!("cannot write {}: {error}", file.display()))?;
    let store = directory.join("call.sqlite");
    toll.run(&store, &["run", "-q", "--no-html", &file.to_string_lossy()])?;
    let exported = toll.ask(&store, &["export", "last", "--json", "-"])?;
    let (sum_ns, count) = samples(&exported, "duration_per_call_ns")?;
    Ok(sum_ns / count as f64)
}

/// The same by perf, whose simple format is the time of all calls in seconds.
pub(super) fn perf_call_ns() -> Result<f64, String> {
    const CALLS: f64 = 1e6;
    let line = ["bench", "-f", "simple", "syscall", "basic", "-l", "1000000"];
    let text = run("perf", &line.map(AsRef::as_ref))?;
    let seconds: Option<f64> = text.lines().find_map(|line| line.trim().parse().ok());
    match seconds {
        Some(seconds) => Ok(seconds * 1e9 / CALLS),
        None => Err(format!("cannot read what perf tells: {text}")),
    }
}

/// Where Debian's package puts lmbench's programs, below a directory for each
/// machine: nowhere on `PATH`.
const LMBENCH_PLACE: &str = "/usr/lib/lmbench/bin";

/// Where lmbench's program for system calls is.
pub(super) fn lmbench() -> Option<PathBuf> {
    let name = "lat_syscall";
    let machines = std::fs::read_dir(LMBENCH_PLACE).into_iter().flatten();
    let packaged = || machines.flatten().map(|machine| machine.path().join(name));
    find(name).or_else(|| packaged().find(|path| is_executable(path)))
}

/// The same by lmbench, which tells it on standard error as `Simple syscall:
/// 0.1 microseconds`.
pub(super) fn lmbench_call_ns() -> Result<f64, String> {
    let lat_syscall = lmbench().ok_or("lat_syscall of lmbench is missing")?;
    let script = ["-c", "exec \"$0\" null 2>&1"].map(OsStr::new);
    let arguments = [&script[..], &[lat_syscall.as_os_str()]].concat();
    let text = run("sh", &arguments)?;
    lmbench_ns(&text).ok_or_else(|| format!("cannot read what lmbench tells: {text}"))
}

fn lmbench_ns(text: &str) -> Option<f64> {
    let rest = text.split("Simple syscall:").nth(1)?;
    let microseconds: f64 = rest.split_whitespace().next()?.parse().ok()?;
    Some(microseconds * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lmbenchs_line_is_read() {
        assert_eq!(
            lmbench_ns("Simple syscall: 0.25 microseconds\n"),
            Some(250.0)
        );
        assert_eq!(lmbench_ns("lat_syscall: no"), None);
    }

    #[test]
    fn a_reading_of_the_clock_takes_time() {
        assert!(clock_ns() > 0.0);
    }
}
