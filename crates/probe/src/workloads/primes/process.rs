//! Counts in a process started for it, which does what the published program did.
#![expect(
    clippy::disallowed_methods,
    reason = "the start of a process is what is measured"
)]

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{FromRawFd, OwnedFd};
use std::process::{Command, Stdio};

use toll_wire::{Failure, PrimesRequest, RandomSource, from_word, words};

use super::core::count;
use super::counted::Counted;
use super::print::Printer;
use super::user::{draw_into, seed_rand};
use crate::clock::gettimeofday_ns;
use crate::failure::{self, OrFail};
use crate::usage::Usage;
use crate::workloads::command::child;

/// The argument that makes the probe a process that only counts primes.
pub const FLAG: &str = "--count-primes";

const OUTPUT_BYTES_MAX: u64 = 128;

pub struct Process {
    program: File,
}

pub struct ProcessRun {
    pub counted: Counted,
    pub usage: Usage,
}

impl Process {
    pub fn new() -> Result<Self, Failure> {
        let program = File::open("/proc/self/exe").failed_to("count primes in a process")?;
        Ok(Self { program })
    }

    /// Starts a process and waits for it. Its output fits in the buffer of a
    /// pipe, so that reading it never blocks.
    pub fn run(&self, request: &PrimesRequest) -> Result<ProcessRun, Failure> {
        use std::os::fd::AsRawFd;
        let (mut reader, writer) = io::pipe().failed_to("count primes in a process")?;
        // Starts the program by its descriptor, because the file may have been replaced meanwhile.
        let program = format!("/proc/self/fd/{}", self.program.as_raw_fd());
        let mut command = Command::new(program);
        command
            .args([
                FLAG,
                &request.n.to_string(),
                words::<RandomSource>()[request.random as usize],
                &request.seed.to_string(),
            ])
            .stdin(Stdio::null())
            .stdout(writer);
        let child = command.spawn().failed_to("count primes in a process")?;
        drop(command);
        let ended = child::wait(&child).failed_to("count primes in a process")?;
        let mut text = String::new();
        let read = (&mut reader)
            .take(OUTPUT_BYTES_MAX)
            .read_to_string(&mut text);
        read.failed_to("count primes in a process")?;
        match (ended.exit_status(), parse(&text, request.n)) {
            (0, Some(counted)) => Ok(ProcessRun {
                counted,
                usage: ended.usage,
            }),
            _ => Err(failure::failed(format!(
                "cannot count primes in a process: {} after printing {text:?}; see its standard \
                 error",
                ended.describe()
            ))),
        }
    }
}

/// Parses what the process prints: `n`, the count, and the microseconds in between.
fn parse(text: &str, n: u32) -> Option<Counted> {
    let numbers: Option<Vec<u64>> = text.lines().map(|line| line.parse().ok()).collect();
    let [printed_n, primes, duration_us] = numbers?.try_into().ok()?;
    (printed_n == u64::from(n)).then(|| Counted {
        whole_ns: Some(duration_us * 1000),
        ..Counted::from_primes(primes)
    })
}

/// Runs the counting process; `arguments` are the arguments after [`FLAG`].
pub fn main(arguments: &[OsString]) -> Result<(), Failure> {
    let words: Vec<&str> = arguments.iter().filter_map(|word| word.to_str()).collect();
    let (n, random, seed) = match words[..] {
        [n, random, seed] => (n.parse().ok(), from_word(random), seed.parse().ok()),
        _ => (None, None, None),
    };
    let (Some(n @ 2..=toll_wire::PRIMES_N_MAX), Some(random), Some(seed)) = (n, random, seed)
    else {
        return Err(failure::instrument(format!(
            "cannot count primes for {words:?}: give n, a random source and a seed"
        )));
    };
    seed_rand(seed);
    // SAFETY: nothing else in this process uses or closes standard output.
    let stdout = unsafe { OwnedFd::from_raw_fd(libc::STDOUT_FILENO) };
    let mut printer = Printer::on(stdout)?;
    let duration_ns = count_and_print(n, random, seed, &mut printer)?;
    printer.print(duration_ns / 1000)
}

/// Does what the published program does, and returns its nanoseconds: the clock
/// is read before `n` is printed and after the count is printed.
fn count_and_print(
    n: u32,
    random: RandomSource,
    seed: u64,
    printer: &mut Printer,
) -> Result<u64, Failure> {
    let n_numbers = n as usize;
    let mut numbers = Vec::with_capacity(n_numbers);
    let started_ns = gettimeofday_ns();
    printer.print(n.into())?;
    draw_into(&mut numbers, n_numbers, random, seed)?;
    printer.print(count(&numbers))?;
    // NTP may have set the clock back meanwhile.
    Ok(gettimeofday_ns().saturating_sub(started_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_lines_about_the_numbers_that_were_asked_for_are_an_answer() {
        let counted = parse("10\n4\n30\n", 10).unwrap();
        assert_eq!((counted.primes, counted.whole_ns), (4, Some(30_000)));
        for text in ["", "10\n4\n", "10\n4\nx\n", "9\n4\n30\n", "10 4 30\n"] {
            assert!(parse(text, 10).is_none(), "{text:?}");
        }
    }
}
