//! Parses the command lines.

use std::ffi::OsString;

use lexopt::{Arg, Parser, ValueExt};
use toll_probe::program::Request;
use toll_probe::workloads::primes::KMALLOC_N_MAX;
use toll_wire::{
    ITERATIONS_MAX, PRIMES_N_MAX, PrimesClock, PrimesPlacement, RandomSource, from_word, words,
};

const PUBLISHED_N: [u32; 8] = [10, 100, 500, 1_000, 5_000, 10_000, 50_000, 100_000];

const USER_HELP: &str = "\
Usage: prime_user [OPTION]... [N]...
Count the primes among N random numbers from 2 to N in user space, by trial
division. For each N, print a line: N, the count, and the time in microseconds.
As in the report, each count has its own process, which reads the clock
(gettimeofday) before it prints N and after it has printed the count.

N is 2 to 16777216. Without N, the report's numbers are used: 10, 100, 500,
1000, 5000, 10000, 50000 and 100000.

      --random SOURCE  source of the numbers: each (a call of rand() for each),
                       bulk (one getrandom() for all) or seeded (the generator
                       that toll also has in the kernel) [default: each]
      --seed SEED      seed of the sources each and seeded, 0 to 4294967295
                       [default: 1, which is also the default of rand()]
      --runs RUNS      count this many times, 1 to 20000, and print the run of
                       median time; the report used 11 [default: 1]
      --help           display this help and exit
      --version        output version information and exit

Example:
  prime_user --runs 11
";

const SYSTEM_CALL_HELP: &str = "\
Usage: prime_sys_test [OPTION]... [N]...
Have the kernel count the primes among N random numbers from 2 to N, by system
call 549. For each N, print a line: N, the count, and the time of the call in
microseconds, by gettimeofday. As in the report, the kernel prints N to its log,
so the caller needs the right to fill that log (CAP_SYSLOG).

N is 2 to 1048576. Without N, the report's numbers are used: 10, 100, 500,
1000, 5000, 10000, 50000 and 100000.

      --runs RUNS      count this many times, 1 to 20000, and print the run of
                       median time; the report used 11 [default: 1]
      --help           display this help and exit
      --version        output version information and exit

The kernel named toll has the system call. Run it in a guest (see toll kernel
--help):
  toll guest run --add \"$(command -v prime_sys_test)\" -- /host/prime_sys_test
";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    User,
    SystemCall,
}

impl Program {
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "prime_user",
            Self::SystemCall => "prime_sys_test",
        }
    }

    pub fn placement(self) -> PrimesPlacement {
        match self {
            Self::User => PrimesPlacement::UserProcess,
            Self::SystemCall => PrimesPlacement::SyscallPublished,
        }
    }

    /// Returns where the published program reads its clock: in the program, or around
    /// the call.
    pub fn clock(self) -> PrimesClock {
        match self {
            Self::User => PrimesClock::Inside,
            Self::SystemCall => PrimesClock::Gettimeofday,
        }
    }

    fn help(self) -> &'static str {
        match self {
            Self::User => USER_HELP,
            Self::SystemCall => SYSTEM_CALL_HELP,
        }
    }

    fn n_max(self) -> u32 {
        match self {
            Self::User => PRIMES_N_MAX,
            Self::SystemCall => KMALLOC_N_MAX,
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub struct Options {
    /// How many random numbers to count the primes among, one entry per result; never
    /// empty.
    pub numbers: Vec<u32>,
    pub random: RandomSource,
    pub seed: u32,
    pub runs: u32,
}

pub fn parse(
    program: Program,
    arguments: impl IntoIterator<Item = OsString>,
) -> Result<Request<Options>, String> {
    let is_user = program == Program::User;
    let mut parser = Parser::from_args(arguments);
    let mut has_seed = false;
    let mut options = Options {
        numbers: Vec::new(),
        random: match program {
            Program::User => RandomSource::Each,
            // The kernel's own numbers; the call supports no other source.
            Program::SystemCall => RandomSource::Bulk,
        },
        seed: 1,
        runs: 1,
    };
    while let Some(argument) = parser.next().map_err(unreadable)? {
        match argument {
            Arg::Value(n) => {
                let numbers = number("N", &n, 2, program.n_max())?;
                options.numbers.push(numbers);
            }
            Arg::Long("runs") => {
                let value = parser.value().map_err(unreadable)?;
                options.runs = number("--runs", &value, 1, ITERATIONS_MAX)?;
            }
            Arg::Long("seed") if is_user => {
                let value = parser.value().map_err(unreadable)?;
                has_seed = true;
                options.seed = number("--seed", &value, 0, u32::MAX)?;
            }
            Arg::Long("random") if is_user => {
                let value = parser.value().and_then(ValueExt::string);
                options.random = source(&value.map_err(unreadable)?)?;
            }
            Arg::Long("help") | Arg::Short('h') => {
                return Ok(Request::Print(program.help().to_owned()));
            }
            Arg::Long("version") | Arg::Short('V') => {
                return Ok(Request::version(program.name()));
            }
            other => return Err(unreadable(other.unexpected())),
        }
    }
    if has_seed && options.random == RandomSource::Bulk {
        return Err("cannot use --seed with --random bulk: getrandom() takes no seed".into());
    }
    if options.numbers.is_empty() {
        options.numbers = PUBLISHED_N.to_vec();
    }
    Ok(Request::Run(options))
}

fn unreadable(error: lexopt::Error) -> String {
    format!("cannot read the command line: {error}")
}

fn number(name: &str, text: &OsString, least: u32, most: u32) -> Result<u32, String> {
    let number = text.to_str().and_then(|text| text.parse().ok());
    number
        .filter(|number| (least..=most).contains(number))
        .ok_or_else(|| {
            format!("cannot take {text:?} as {name}: give a whole number from {least} to {most}")
        })
}

fn source(word: &str) -> Result<RandomSource, String> {
    from_word(word).ok_or_else(|| {
        format!(
            "cannot draw numbers from {word:?}: give one of {} as --random",
            words::<RandomSource>().join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_in_the_help_are_those_that_are_taken() {
        for program in [Program::User, Program::SystemCall] {
            let help = program.help();
            let Some((_, rest)) = help.split_once("N is 2 to ") else {
                panic!("{help}");
            };
            let numbers = rest.split(|c: char| !c.is_ascii_digit());
            let listed: Vec<u32> = numbers.filter_map(|n| n.parse().ok()).take(9).collect();
            assert_eq!(listed, [&[program.n_max()][..], &PUBLISHED_N].concat());
            assert!(help.contains(&format!("1 to {ITERATIONS_MAX},")), "{help}");
        }
        assert_eq!(words::<RandomSource>(), ["seeded", "bulk", "each"]);
    }
}
