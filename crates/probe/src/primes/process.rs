//! Counting in a process started for it, as the published program was.
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

use super::Counted;
use super::print::Printer;
use super::user::{count_primes, seed_rand};
use crate::command::child;
use crate::failure::{self, OrFail};
use crate::usage::Usage;

/// The argument by which the probe is such a process.
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

    /// Starts a process and waits for it. Its output is a pipe, whose buffer
    /// holds all of it, so that reading it waits for nothing.
    pub fn run(&self, request: &PrimesRequest) -> Result<ProcessRun, Failure> {
        use std::os::fd::AsRawFd;
        let (mut reader, writer) = io::pipe().failed_to("count primes in a process")?;
        // Of the descriptor, since the file may have been replaced meanwhile.
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
        match (ended.exit_status(), parse(&text)) {
            (0, Some(counted)) => Ok(ProcessRun {
                counted,
                usage: ended.usage,
            }),
            _ => Err(failure::failed(format!(
                "cannot count primes in a process: {} after {text:?}; see its standard error",
                ended.describe()
            ))),
        }
    }
}

/// What such a process prints: the count, and what allocating, drawing and
/// counting took.
fn parse(text: &str) -> Option<Counted> {
    let numbers: Option<Vec<u64>> = text
        .split_whitespace()
        .map(|word| word.parse().ok())
        .collect();
    let [primes, allocate_ns, draw_ns, count_ns] = numbers?.try_into().ok()?;
    Some(Counted {
        primes,
        allocate_ns: Some(allocate_ns),
        draw_ns: Some(draw_ns),
        count_ns: Some(count_ns),
    })
}

/// The whole of such a process: `arguments` are those behind [`FLAG`].
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
    let counted = count_primes(n, random, seed, None)?;
    // SAFETY: nothing else in this process uses or closes standard output.
    let stdout = unsafe { OwnedFd::from_raw_fd(libc::STDOUT_FILENO) };
    let part = |part: Option<u64>| part.unwrap_or(0);
    Printer::on(stdout)?.print_line(
        c"%llu %llu %llu %llu\n",
        &[
            counted.primes,
            part(counted.allocate_ns),
            part(counted.draw_ns),
            part(counted.count_ns),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_numbers_are_an_answer_and_nothing_else_is() {
        let counted = parse("4 10 20 30\n").unwrap();
        assert_eq!((counted.primes, counted.count_ns), (4, Some(30)));
        for text in ["", "4\n", "4 10 20 x", "1 2 3 4 5"] {
            assert!(parse(text).is_none(), "{text:?}");
        }
    }
}
