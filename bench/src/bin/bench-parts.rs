//! `bench-parts`: the measurements of `toll` itself that `bench/toll*.toml` use.
//!
//! - `harness TOLL WORK DIR` prints five times: of a trial in addition to its command, of
//!   starting a process, of a run (unmeasured and wall time), and of a clock read. The stores are
//!   in `DIR`.
//! - `call TOLL DIR` prints the time of an empty system call.
//! - `stores TOLL DIR SAMPLES` creates `DIR/SAMPLES.sqlite` with two runs of this many samples,
//!   and `DIR/runs.sqlite` with 50 small runs.

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use toll_bench::process::{command, finish, output};
use toll_bench::toll::{Toll, remove_store};
use toll_bench::work::calibrate;
use toll_probe::clock;

/// Number of processes that are started to obtain one value.
const SPAWNS: u32 = 200;
/// Numbers of blocks of a shorter and a longer run. Their difference excludes the fixed cost of a
/// run. Each block has two trials: the command and its twin.
const BLOCKS: [&str; 2] = ["20", "120"];
/// Duration in milliseconds of the command whose run shows the share of unmeasured time.
const WORK_MS: f64 = 100.0;
/// Number of clock reads to obtain one value.
const READINGS: u32 = 1_000_000;
/// Number of trials in the experiment with many samples: 40 blocks of 4 treatments and a twin.
const TRIALS: u64 = 5 * 40;
/// Number of runs in the store that is listed.
const RUNS_LISTED: usize = 50;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["harness", toll, work, directory] => harness(&at(toll, directory), Path::new(work)),
        ["call", toll, directory] => call(&at(toll, directory)),
        ["stores", toll, directory, samples] => stores(&at(toll, directory), samples),
        _ => return ExitCode::from(2),
    };
    finish("bench-parts", done)
}

fn at(toll: &str, directory: &str) -> Toll {
    Toll {
        program: PathBuf::from(toll),
        kept: PathBuf::from(directory),
    }
}

fn harness(toll: &Toll, work: &Path) -> Result<String, String> {
    let store = toll.kept.join("parts.sqlite");
    let run = |arguments: &[&str]| {
        remove_store(&store);
        toll.run(&store, arguments)
    };
    let [short, long] = BLOCKS.map(|blocks| run(&["-N", "-r", blocks, "true"]));
    let ((short_ns, short_inside_ns, few), (long_ns, long_inside_ns, many)) = (short?, long?);
    let outside_ns = (long_ns - short_ns) - (long_inside_ns - short_inside_ns);
    let pieces = calibrate(work, WORK_MS)?;
    let line = format!("{} {pieces}", work.display());
    let (wall_ns, measured_ns, _) = run(&["-N", "-r", "10", &line])?;
    remove_store(&store);
    Ok(format!(
        "harness {} ns\nspawn {} ns\nunmeasured {} ns\nwall {wall_ns} ns\nclock {} ns\n",
        outside_ns / (many - few) as f64,
        spawn_ns()?,
        wall_ns - measured_ns,
        clock_ns()
    ))
}

/// Returns the time to start `true` and wait for it, in nanoseconds.
fn spawn_ns() -> Result<f64, String> {
    let begin = Instant::now();
    for _ in 0..SPAWNS {
        let status = command(Path::new("true")).status();
        status.map_err(|error| format!("cannot run true: {error}"))?;
    }
    Ok(begin.elapsed().as_nanos() as f64 / f64::from(SPAWNS))
}

/// Returns the time of one read of the clock that times regions, in nanoseconds.
fn clock_ns() -> f64 {
    let begin = Instant::now();
    for _ in 0..READINGS {
        black_box(clock::now_ns());
    }
    begin.elapsed().as_nanos() as f64 / f64::from(READINGS)
}

/// Measures an empty system call with toll's own workload. An iteration has so many calls that
/// the clock reads around it are negligible.
fn call(toll: &Toll) -> Result<String, String> {
    const CALLS: f64 = 100_000.0;
    let file = toll.kept.join("empty-call.toml");
    let text = format!(
        "format = 1\nname = 'empty-call'\n[workload]\nkind = 'crossing'\ncalls = {CALLS}\n\
         operation = 'empty-syscall'\n[run]\niterations = 5\nmin_blocks = 6\nmax_blocks = 6\n"
    );
    write(&file, &text)?;
    let store = toll.kept.join("call.sqlite");
    let (_, sum_ns, count) = toll.run(&store, &[&file.to_string_lossy()])?;
    remove_store(&store);
    Ok(format!(
        "{} microseconds\n",
        sum_ns / count as f64 / CALLS / 1e3
    ))
}

fn stores(toll: &Toll, samples: &str) -> Result<String, String> {
    let count: u64 = samples
        .parse()
        .map_err(|error| format!("cannot make {samples} samples: {error}; give a whole number"))?;
    let file = toll.kept.join("many.toml");
    let text = format!(
        "format = 1\nname = 'many-samples'\nmetric = 'duration_per_call_ns'\n\
         [workload]\nkind = 'crossing'\ncalls = 10\n[[factor]]\nname = 'operation'\n\
         levels = ['user-call', 'vdso', 'clock-syscall', 'empty-syscall']\n\
         [run]\niterations = {}\nmin_blocks = 40\nmax_blocks = 40\n\
         [[claim]]\nid = 'vdso'\ntext = 'the vDSO costs less than a system call'\n\
         of = {{ operation = 'vdso' }}\nto = {{ operation = 'clock-syscall' }}\n\
         direction = 'less'\n",
        (count / TRIALS).max(1)
    );
    write(&file, &text)?;
    let file = file.to_string_lossy();
    let run = |store: &Path, arguments: &[&str]| {
        let run = ["run", "-q", "--no-html"];
        output(toll.command(store).args(run).args(arguments))
    };
    let store = toll.kept.join(format!("{samples}.sqlite"));
    for seed in ["1", "2"] {
        run(&store, &["--seed", seed, &file])?;
    }
    let listed = toll.kept.join("runs.sqlite");
    if !listed.exists() {
        for _ in 0..RUNS_LISTED {
            run(&listed, &["-N", "-r", "6", "true"])?;
        }
    }
    Ok(String::new())
}

fn write(file: &Path, text: &str) -> Result<(), String> {
    std::fs::write(file, text).map_err(|error| format!("cannot write {}: {error}", file.display()))
}
