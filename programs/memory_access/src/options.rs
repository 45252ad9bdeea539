//! Parses the command lines.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use lexopt::{Arg, Parser};
use toll_probe::program::Request;
use toll_wire::AccessOrder;
use toll_wire::quantity::{parse_duration, parse_size};

const HELP: &str = "\
Usage: memory_access [OPTION]... RANDOM MAPPING POPULATE MEMSET COMPETE
Access memory as CS380L lab 2 did, and print the cost of making the buffer
(init) and of the accesses (fun), with the cache and TLB misses of the accesses.

The report only shows the arguments 0 0 0 0 0. Their order here is that of the
report's sections:

  RANDOM    working sets follow each other (0) or are random (1)
  MAPPING   the buffer is anonymous (0), a private file mapping (1) or a shared
            one (2)
  POPULATE  the buffer is mapped without (0) or with (1) MAP_POPULATE
  MEMSET    1: set the buffer to zeros by memset, and write it back by msync
  COMPETE   1: another process uses as much memory as the machine has, which
            needs the same amount of swap

      --buffer SIZE    bytes of the buffer [default: 1GiB]
      --steps STEPS    working sets visited, 1 to 4294967296 [default: 1048576]
      --file FILE      file to map; a shared mapping changes it [default: a file
                       without a name in the current directory]
      --memory SIZE    memory to compete for [default: all of it]
      --wait TIME      time for the other process to get the memory
                       [default: 5s]
      --help           display this help and exit
      --version        output version information and exit

Example:
  strace memory_access 0 0 0 0 0
";

const COMPETITOR_HELP: &str = "\
Usage: compete_for_memory [SIZE]
Use memory until this program is killed: read a byte of a random page again and
again, and write it every eighth time. Without SIZE, use as much memory as the
machine has, which needs the same amount of swap.

      --help           display this help and exit
      --version        output version information and exit

Example:
  compete_for_memory 2GiB
";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mapping {
    Anonymous,
    FilePrivate,
    FileShared,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Options {
    pub order: AccessOrder,
    pub mapping: Mapping,
    pub populates: bool,
    pub clears: bool,
    pub competes: bool,
    pub buffer_bytes: u64,
    pub steps: u64,
    pub file: Option<PathBuf>,
    /// Number of bytes to compete for; `None` means all memory.
    pub memory_bytes: Option<u64>,
    pub wait: Duration,
}

pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Request<Options>, String> {
    let mut parser = Parser::from_args(arguments);
    let mut operands = Vec::new();
    let mut options = Options {
        order: AccessOrder::Sequential,
        mapping: Mapping::Anonymous,
        populates: false,
        clears: false,
        competes: false,
        buffer_bytes: 1 << 30,
        steps: 1 << 20,
        file: None,
        memory_bytes: None,
        wait: Duration::from_secs(5),
    };
    while let Some(argument) = parser.next().map_err(unreadable)? {
        match argument {
            Arg::Value(operand) => operands.push(operand),
            Arg::Long("buffer") => options.buffer_bytes = size(&value(&mut parser)?)?,
            Arg::Long("memory") => options.memory_bytes = Some(size(&value(&mut parser)?)?),
            Arg::Long("steps") => options.steps = steps(&value(&mut parser)?)?,
            Arg::Long("wait") => options.wait = parse_duration(&text(&value(&mut parser)?))?,
            Arg::Long("file") => options.file = Some(value(&mut parser)?.into()),
            Arg::Long("help") | Arg::Short('h') => return Ok(Request::Print(HELP.to_owned())),
            Arg::Long("version") | Arg::Short('V') => {
                return Ok(Request::version("memory_access"));
            }
            other => return Err(unreadable(other.unexpected())),
        }
    }
    let [random, mapping, populate, memset, compete] = &operands[..] else {
        return Err(format!(
            "cannot take {} arguments: give exactly five",
            operands.len()
        ));
    };
    options.order = match digit("RANDOM", random, 1)? {
        0 => AccessOrder::Sequential,
        _ => AccessOrder::Random,
    };
    options.mapping = match digit("MAPPING", mapping, 2)? {
        0 => Mapping::Anonymous,
        1 => Mapping::FilePrivate,
        _ => Mapping::FileShared,
    };
    options.populates = digit("POPULATE", populate, 1)? == 1;
    options.clears = digit("MEMSET", memset, 1)? == 1;
    options.competes = digit("COMPETE", compete, 1)? == 1;
    Ok(Request::Run(options))
}

pub fn parse_competitor(
    arguments: impl IntoIterator<Item = OsString>,
) -> Result<Request<Option<u64>>, String> {
    let mut parser = Parser::from_args(arguments);
    let mut bytes = None;
    while let Some(argument) = parser.next().map_err(unreadable)? {
        match argument {
            Arg::Value(operand) if bytes.is_none() => bytes = Some(size(&operand)?),
            Arg::Long("help") | Arg::Short('h') => {
                return Ok(Request::Print(COMPETITOR_HELP.to_owned()));
            }
            Arg::Long("version") | Arg::Short('V') => {
                return Ok(Request::version("compete_for_memory"));
            }
            other => return Err(unreadable(other.unexpected())),
        }
    }
    Ok(Request::Run(bytes))
}

fn unreadable(error: lexopt::Error) -> String {
    format!("cannot read the command line: {error}")
}

fn value(parser: &mut Parser) -> Result<OsString, String> {
    parser.value().map_err(unreadable)
}

fn text(value: &OsStr) -> String {
    value.to_string_lossy().into_owned()
}

fn size(value: &OsStr) -> Result<u64, String> {
    parse_size(&text(value))
}

fn steps(value: &OsStr) -> Result<u64, String> {
    let steps = value.to_str().and_then(|text| text.parse().ok());
    steps
        .filter(|steps| (1..=1 << 32).contains(steps))
        .ok_or_else(|| format!("cannot take {value:?} steps: give a number from 1 to 4294967296"))
}

fn digit(name: &str, value: &OsStr, most: u8) -> Result<u8, String> {
    let digit = value.to_str().and_then(|text| text.parse().ok());
    digit
        .filter(|digit| *digit <= most)
        .ok_or_else(|| format!("cannot take {value:?} as {name}: give a number from 0 to {most}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Options, String> {
        match parse(line.split_whitespace().map(OsString::from))? {
            Request::Run(options) => Ok(options),
            Request::Print(text) => panic!("{text}"),
        }
    }

    #[test]
    fn five_zeros_are_the_first_published_run() {
        let options = parsed("0 0 0 0 0").unwrap();
        let expected = Options {
            order: AccessOrder::Sequential,
            mapping: Mapping::Anonymous,
            populates: false,
            clears: false,
            competes: false,
            buffer_bytes: 1 << 30,
            steps: 1 << 20,
            file: None,
            memory_bytes: None,
            wait: Duration::from_secs(5),
        };
        assert_eq!(options, expected);
    }

    #[test]
    fn each_argument_has_its_place() {
        let changed = |line: &str| {
            let options = parsed(line).unwrap();
            (
                options.order == AccessOrder::Random,
                options.mapping,
                [options.populates, options.clears, options.competes],
            )
        };
        let none = [false; 3];
        assert_eq!(changed("1 0 0 0 0"), (true, Mapping::Anonymous, none));
        assert_eq!(changed("0 1 0 0 0"), (false, Mapping::FilePrivate, none));
        assert_eq!(changed("0 2 0 0 0"), (false, Mapping::FileShared, none));
        for (place, line) in ["0 0 1 0 0", "0 0 0 1 0", "0 0 0 0 1"].iter().enumerate() {
            let mut flags = none;
            flags[place] = true;
            assert_eq!(changed(line), (false, Mapping::Anonymous, flags));
        }
    }

    #[test]
    fn what_is_no_run_is_refused() {
        for line in [
            "",
            "0 0 0 0",
            "0 0 0 0 0 0",
            "2 0 0 0 0",
            "0 3 0 0 0",
            "0 0 0 0 x",
            "0 0 0 0 -1",
            "--steps 0 0 0 0 0 0",
            "--buffer big 0 0 0 0 0",
        ] {
            assert!(parsed(line).is_err(), "{line}");
        }
    }
}
