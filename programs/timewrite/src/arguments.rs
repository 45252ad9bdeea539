//! Parses the command line `timewrite [--] OUTFILE [sync] <INFILE`.

use std::ffi::OsString;
use std::path::PathBuf;

use lexopt::Arg;
use toll_probe::program::Request;

const USAGE: &str = "usage: timewrite [--] OUTFILE [sync] <INFILE";

const HELP: &str = "\
usage: timewrite [--] OUTFILE [sync] <INFILE
Time writing a file, with buffers of 256, 512, ... 131072 bytes.

All of standard input is read into memory. OUTFILE, which must be another file,
is then created or truncated and opened once, with O_SYNC if `sync` is given.
For each buffer size, all of it is written to the start of OUTFILE, and a line
is printed with these columns, separated by tabs:

  buffer size in bytes
  user time in seconds
  system time in seconds
  elapsed time in seconds
  number of write calls

A pass that fails prints no line; the reason is on standard error, and the exit
status is 1, or 2 for wrong arguments. OUTFILE stays as it was if standard input
cannot be read or standard output cannot be written.

Examples:
  timewrite f1 <f2             without O_SYNC
  timewrite f1 sync <f2        with O_SYNC
  head -c 131072 /dev/urandom | timewrite /mnt/f1 sync
";

pub struct Target {
    pub path: PathBuf,
    /// Whether the file is opened with `O_SYNC`.
    pub is_synchronous: bool,
}

pub fn parse(arguments: impl Iterator<Item = OsString>) -> Result<Request<Target>, String> {
    let mut parser = lexopt::Parser::from_args(arguments);
    let mut operands = Vec::new();
    while let Some(argument) = parser.next().map_err(unreadable)? {
        match argument {
            Arg::Value(operand) => operands.push(operand),
            Arg::Long("help") | Arg::Short('h') => return Ok(Request::Print(HELP.to_owned())),
            Arg::Long("version") | Arg::Short('V') => return Ok(Request::version("timewrite")),
            other => return Err(unreadable(other.unexpected())),
        }
    }
    match &operands[..] {
        [] => Err(format!("OUTFILE is missing; {USAGE}")),
        [path] => Ok(measure(path, false)),
        [path, word] if word == "sync" => Ok(measure(path, true)),
        [_, word] => Err(format!(
            "cannot take the second argument '{}': it can only be 'sync'; {USAGE}",
            word.display()
        )),
        _ => Err(format!("too many arguments; {USAGE}")),
    }
}

fn unreadable(error: lexopt::Error) -> String {
    format!("{error}; put a file whose name begins with '-' after '--'; {USAGE}")
}

fn measure(path: &OsString, is_synchronous: bool) -> Request<Target> {
    Request::Run(Target {
        path: path.into(),
        is_synchronous,
    })
}
