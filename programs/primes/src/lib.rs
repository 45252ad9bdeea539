//! The programs `prime_user` and `prime_sys_test` of the Lab 8/9 report. They count the
//! primes among n random numbers, in user space or by system call 549.
//!
//! The programs are thin: each count is a trial of the probe's `primes` workload, timed
//! with `gettimeofday` as published and checked as in that workload.

mod options;

use std::ffi::OsString;
use std::process::ExitCode;

use os_display::Quotable;
use toll_probe::program::{self, complain, print};
use toll_probe::workloads;
use toll_probe::workloads::primes::process;
use toll_wire::{
    Failure, FailureKind, PrimesAllocation, PrimesRequest, Printing, Sample, Workload,
};

use self::options::Options;
pub use self::options::Program;

/// Exit status if the kernel lacks the system call. `toll` uses the same status for any
/// missing prerequisite.
const NO_SYSTEM_CALL: u8 = 5;

pub fn run(program: Program) -> ExitCode {
    let name = program.name();
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    // Each count runs in a separate process: this program, started again.
    if let [flag, rest @ ..] = &arguments[..]
        && flag == process::FLAG
    {
        return count_in_process(name, rest);
    }
    let request = options::parse(program, arguments);
    let request = request.map_err(|complaint| format!("{complaint}; see {name} --help"));
    program::run(name, request, |options| count(program, &options))
}

fn count_in_process(name: &str, arguments: &[OsString]) -> ExitCode {
    match process::main(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            complain(name, &failure.message);
            ExitCode::FAILURE
        }
    }
}

fn count(program: Program, options: &Options) -> Result<(), (u8, String)> {
    let mut lines = line("n", "count", "us");
    for &n in &options.numbers {
        let sample = median(program, options, n).map_err(|failure| match failure.kind {
            FailureKind::Unsupported => (NO_SYSTEM_CALL, without_system_call()),
            _ => (1, failure.message),
        })?;
        let primes = sample.metrics["primes"].to_string();
        let duration_us = (sample.metrics["duration_ns"] / 1000.0).to_string();
        lines.push_str(&line(&n.to_string(), &primes, &duration_us));
        print(&lines).map_err(|complaint| (1, complaint))?;
        lines.clear();
    }
    Ok(())
}

fn line(n: &str, count: &str, duration_us: &str) -> String {
    format!("{n:>8} {count:>8} {duration_us:>9}\n")
}

/// Counts the primes among `n` numbers `options.runs` times. Returns the run of median
/// duration. For an even number of runs, that is the shorter of the two in the middle.
fn median(program: Program, options: &Options, n: u32) -> Result<Sample, Failure> {
    let counting = PrimesRequest {
        placement: program.placement(),
        n,
        random: options.random,
        printing: Printing::Inside,
        allocation: PrimesAllocation::Usual,
        clock: program.clock(),
        seed: options.seed.into(),
    };
    let mut request = toll_wire::Request::new(Workload::Primes(counting));
    request.iterations = options.runs;
    let mut samples = workloads::run(&request)?.samples;
    samples.sort_by(|a, b| a.metrics["duration_ns"].total_cmp(&b.metrics["duration_ns"]));
    Ok(samples.swap_remove((samples.len() - 1) / 2))
}

/// Returns advice for a kernel without the system call, which contains this program's
/// path.
fn without_system_call() -> String {
    let name = Program::SystemCall.name();
    let path = std::env::current_exe().unwrap_or_else(|_| name.into());
    format!(
        "cannot count: this kernel has no system call 549; run it in a guest: toll guest run \
         --kernel toll --add {} -- /host/{name}",
        path.maybe_quote()
    )
}
