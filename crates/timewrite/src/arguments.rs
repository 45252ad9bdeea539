//! `timewrite OUTFILE [sync] <INFILE`.

use std::ffi::OsString;
use std::path::PathBuf;

use toll_probe::program::Request;

const USAGE: &str = "usage: timewrite OUTFILE [sync] <INFILE";

const HELP: &str = "\
usage: timewrite OUTFILE [sync] <INFILE
Time writing a file, with buffers of 256, 512, ... 131072 bytes.

All of standard input is read into memory. OUTFILE is created or truncated and
opened once, with O_SYNC if `sync` is given. For each size of the buffer
everything is written to the start of OUTFILE, and a line is printed, with tabs
in between:

  buffer size in bytes
  user time in seconds
  system time in seconds
  elapsed time in seconds
  number of write calls

A pass that fails prints no line; the reason is on standard error, and the exit
status is 1, or 2 for wrong arguments.

Examples:
  timewrite f1 <f2             without O_SYNC
  timewrite f1 sync <f2        with O_SYNC
  head -c 131072 /dev/urandom | timewrite /mnt/f1 sync
";

pub struct Target {
    pub path: PathBuf,
    /// Whether it is opened with `O_SYNC`.
    pub is_synchronous: bool,
}

pub fn parse(arguments: impl Iterator<Item = OsString>) -> Result<Request<Target>, String> {
    let arguments: Vec<OsString> = arguments.collect();
    match &arguments[..] {
        [flag] if flag == "--help" || flag == "-h" => Ok(Request::Print(HELP.to_owned())),
        [flag] if flag == "--version" || flag == "-V" => Ok(Request::version("timewrite")),
        [] => Err(format!("no file to write is named; {USAGE}")),
        [path] => Ok(measure(path, false)),
        [path, word] if word == "sync" => Ok(measure(path, true)),
        [_, word] => Err(format!(
            "cannot take the second argument '{}': it can only be 'sync'; {USAGE}",
            word.display()
        )),
        _ => Err(format!("too many arguments; {USAGE}")),
    }
}

fn measure(path: &OsString, is_synchronous: bool) -> Request<Target> {
    Request::Run(Target {
        path: path.into(),
        is_synchronous,
    })
}
