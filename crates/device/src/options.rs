//! What the command lines ask for.

use std::ffi::OsString;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use lexopt::{Arg, ValueExt};
use toll_probe::device::{
    BUFFER_BYTES_DEFAULT, BUFFER_BYTES_MAX, BUFFER_BYTES_MIN, End, Setup, Way,
};
use toll_wire::{SocketMode, from_word};

use crate::address;

/// TCP port of a master that is told no other.
pub const PORT: u16 = 2325;

const MASTER_HELP: &str = "\
Usage: master [OPTION]... FILE... METHOD
Send FILE(s) through /dev/master_device to the program slave, in their order,
and print for each what it took. For each a slave's connection is waited for.

METHOD is how a file gets to the device:
  fcntl  read from the file and write to the device, through a buffer
  mmap   copy from the mapped file to the device's mapped buffer, and have the
         driver send from there

      --buffer SIZE      bytes of one call, and of what is mapped of the file at
                         a time, 512 to 16MiB [default: 64KiB, with mmap 1MiB]
      --mode MODE        how the kernel's socket is used: sync; fasync, which is
                         sync with a flag that nothing reads; or async, a queue
                         and a worker [default: sync]
      --listen ADDRESS   wait on this address of the machine [default: any]
      --port PORT        wait on this port; 0 lets the kernel choose one, which
                         is told [default: 2325]
      --verify           have the slave compare the content (XXH3-64)
      --page             print the page-table entry of the file's page that was
                         mapped last to standard error; with mmap only
      --timeout SECONDS  give up when no slave comes, or nothing moves, for so
                         long [default: wait for ever]
      --help             display this help and exit
      --version          output version information and exit

The module master must be inserted, which is for guests: see toll guest --help.

Example:
  master movie.mkv mmap --verify
";

const SLAVE_HELP: &str = "\
Usage: slave [OPTION]... FILE... METHOD ADDRESS
Receive files through /dev/slave_device from the program master at ADDRESS into
FILE(s), in their order, and print for each what it took. A FILE gets its name
when it is complete; there must be as many as the master sends.

METHOD is how a file gets from the device:
  fcntl  read from the device and write to the file, through a buffer
  mmap   have the driver receive into the device's mapped buffer, and copy from
         there to the mapped file

ADDRESS is IPv4 or IPv6, with or without a port: 10.0.77.1, fd77::1,
[fd77::1]:2325, fe80::1%eth0.

      --buffer SIZE      bytes of one call, and of what is mapped of the file at
                         a time, 512 to 16MiB [default: 64KiB, with mmap 1MiB]
      --mode MODE        how the kernel's socket is used: sync; fasync, which is
                         sync with a flag that nothing reads; or async, a queue
                         and a worker [default: sync]
      --port PORT        the master's port [default: 2325]
      --verify           insist on comparing the content, which the master is
                         asked for, too
      --page             print the page-table entry of the file's page that was
                         mapped last to standard error; with mmap only
      --timeout SECONDS  wait so long for a master that is not there yet, and
                         give up when nothing moves for so long [default: do not
                         wait for a master, and wait for its bytes for ever]
      --help             display this help and exit
      --version          output version information and exit

The module slave must be inserted, which is for guests: see toll guest --help.

Example:
  slave copy.mkv mmap 10.0.77.1 --verify
";

/// Buffer of the method mmap that is told no other, in bytes: taking a window
/// down costs about the same whatever its size.
const MAPPED_BUFFER_BYTES: u32 = 1 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Common {
    /// The files in their order; never empty.
    pub files: Vec<PathBuf>,
    pub setup: Setup,
    pub verifies: bool,
    pub shows_page: bool,
    /// Longest wait without anything happening.
    pub timeout: Option<Duration>,
}

/// A command line of `master`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MasterOptions {
    pub common: Common,
    pub way: Way,
    /// `None` is any address.
    pub listen: Option<IpAddr>,
    pub port: u16,
}

/// A command line of `slave`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlaveOptions {
    pub common: Common,
    pub way: Way,
    pub address: SocketAddr,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Request<T> {
    Run(T),
    Print(String),
}

#[derive(Default)]
struct Line {
    operands: Vec<OsString>,
    buffer: Option<String>,
    mode: Option<String>,
    listen: Option<String>,
    port: Option<u16>,
    timeout: Option<String>,
    verifies: bool,
    shows_page: bool,
}

/// Understands the arguments of `master`.
pub fn master(
    arguments: impl IntoIterator<Item = OsString>,
) -> Result<Request<MasterOptions>, String> {
    let mut line = match read(End::Master, arguments)? {
        Request::Run(line) => line,
        Request::Print(text) => return Ok(Request::Print(text)),
    };
    let method = line.operands.pop();
    let is_mapped = is_mapped(method, &line)?;
    let listen = line.listen.as_deref().map(address::parse).transpose()?;
    let (listen, its_port) = match listen {
        Some((address, port)) => (Some(address.ip()), port),
        None => (None, None),
    };
    Ok(Request::Run(MasterOptions {
        port: one_port(line.port, its_port)?,
        common: common(line, is_mapped)?,
        way: match is_mapped {
            true => Way::Mmap,
            false => Way::ReadWrite,
        },
        listen,
    }))
}

/// Understands the arguments of `slave`.
pub fn slave(
    arguments: impl IntoIterator<Item = OsString>,
) -> Result<Request<SlaveOptions>, String> {
    let mut line = match read(End::Slave, arguments)? {
        Request::Run(line) => line,
        Request::Print(text) => return Ok(Request::Print(text)),
    };
    let [.., _, _] = &line.operands[..] else {
        return Err("cannot begin: METHOD and ADDRESS are not named".to_owned());
    };
    let address = line.operands.pop().unwrap_or_default();
    let (mut address, its_port) = address::parse(&address.to_string_lossy())?;
    let method = line.operands.pop();
    let is_mapped = is_mapped(method, &line)?;
    address.set_port(one_port(line.port, its_port)?);
    if address.port() == 0 {
        return Err("cannot connect to port 0: name the one that master told".to_owned());
    }
    Ok(Request::Run(SlaveOptions {
        common: common(line, is_mapped)?,
        way: match is_mapped {
            true => Way::Mmap,
            false => Way::ReadWrite,
        },
        address,
    }))
}

fn read(end: End, arguments: impl IntoIterator<Item = OsString>) -> Result<Request<Line>, String> {
    let mut parser = lexopt::Parser::from_args(arguments);
    let mut line = Line::default();
    while let Some(argument) = parser.next().map_err(told)? {
        match argument {
            Arg::Value(operand) => line.operands.push(operand),
            Arg::Long("buffer") => line.buffer = Some(text(&mut parser)?),
            Arg::Long("mode") => line.mode = Some(text(&mut parser)?),
            Arg::Long("listen") if end == End::Master => line.listen = Some(text(&mut parser)?),
            Arg::Long("port") => {
                line.port = Some(parser.value().and_then(|v| v.parse()).map_err(told)?);
            }
            Arg::Long("timeout") => line.timeout = Some(text(&mut parser)?),
            Arg::Long("verify") => line.verifies = true,
            Arg::Long("page") => line.shows_page = true,
            Arg::Long("help") | Arg::Short('h') => {
                let help = match end {
                    End::Master => MASTER_HELP,
                    End::Slave => SLAVE_HELP,
                };
                return Ok(Request::Print(help.to_owned()));
            }
            Arg::Long("version") | Arg::Short('V') => {
                let (name, version) = (end.module_name(), env!("CARGO_PKG_VERSION"));
                return Ok(Request::Print(format!("{name} (toll) {version}\n")));
            }
            other => return Err(told(other.unexpected())),
        }
    }
    Ok(Request::Run(line))
}

fn text(parser: &mut lexopt::Parser) -> Result<String, String> {
    parser.value().and_then(|v| v.string()).map_err(told)
}

fn told(error: lexopt::Error) -> String {
    format!("cannot read the command line: {error}")
}

fn is_mapped(method: Option<OsString>, line: &Line) -> Result<bool, String> {
    let method = method.unwrap_or_default();
    let is_mapped = match method.to_str() {
        Some("mmap") => true,
        Some("fcntl") => false,
        _ => {
            return Err(format!(
                "cannot use {method:?} as a METHOD: it is fcntl or mmap"
            ));
        }
    };
    if line.operands.is_empty() {
        return Err("cannot begin: no FILE is named".to_owned());
    }
    if line.shows_page && !is_mapped {
        return Err("cannot show a page: --page takes the method mmap".to_owned());
    }
    Ok(is_mapped)
}

fn one_port(option: Option<u16>, of_address: Option<u16>) -> Result<u16, String> {
    match (option, of_address) {
        (Some(one), Some(other)) if one != other => Err(format!(
            "cannot use two ports: --port is {one} and the address has {other}"
        )),
        (one, other) => Ok(one.or(other).unwrap_or(PORT)),
    }
}

fn common(line: Line, is_mapped: bool) -> Result<Common, String> {
    let mode = match &line.mode {
        None => SocketMode::Sync,
        Some(word) => from_word(word)
            .ok_or_else(|| format!("cannot use {word:?} as a mode: it is sync, fasync or async"))?,
    };
    let buffer_bytes = match &line.buffer {
        Some(text) => buffer(text)?,
        None if is_mapped => MAPPED_BUFFER_BYTES,
        None => BUFFER_BYTES_DEFAULT,
    };
    Ok(Common {
        files: line.operands.into_iter().map(PathBuf::from).collect(),
        setup: Setup { mode, buffer_bytes },
        verifies: line.verifies,
        shows_page: line.shows_page,
        timeout: line.timeout.as_deref().map(timeout).transpose()?,
    })
}

/// A size such as `512`, `64KiB`, `64k`, `1MiB` or `1m`.
fn buffer(text: &str) -> Result<u32, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "b" => Some(1),
        "k" | "kib" => Some(1 << 10),
        "m" | "mib" => Some(1 << 20),
        _ => None,
    };
    unit.zip(digits.parse().ok())
        .and_then(|(unit, count): (u32, u32)| count.checked_mul(unit))
        .filter(|bytes| (BUFFER_BYTES_MIN..=BUFFER_BYTES_MAX).contains(bytes))
        .ok_or_else(|| {
            format!("cannot use {text:?} as a buffer: it has 512 to 16MiB, such as 4096 or 64KiB")
        })
}

/// Seconds, with or without a fraction.
fn timeout(text: &str) -> Result<Duration, String> {
    // Longer than the driver counts in milliseconds.
    const SECONDS_MAX: f64 = 4_000_000.0;
    text.parse()
        .ok()
        .filter(|seconds| (0.001..=SECONDS_MAX).contains(seconds))
        .map(Duration::from_secs_f64)
        .ok_or_else(|| {
            format!("cannot wait for {text:?}: a timeout is a number of seconds, such as 10 or 0.5")
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    fn run<T>(request: Result<Request<T>, String>) -> T {
        match request.unwrap() {
            Request::Run(options) => options,
            Request::Print(text) => panic!("{text}"),
        }
    }

    #[test]
    fn files_stand_before_method_and_address() {
        let options = run(master(words("a b mmap")));
        assert_eq!(options.common.files, ["a", "b"].map(PathBuf::from));
        assert_eq!(options.way, Way::Mmap);
        assert_eq!((options.listen, options.port), (None, PORT));
        assert_eq!(options.common.setup.buffer_bytes, 1 << 20);
        assert_eq!(options.common.setup.mode, SocketMode::Sync);

        let options = run(slave(words("x fcntl [fd77::1]:9 --timeout 0.5 --verify")));
        assert_eq!(options.common.files, [PathBuf::from("x")]);
        assert_eq!(options.way, Way::ReadWrite);
        assert_eq!(options.common.setup.buffer_bytes, 65536);
        assert_eq!(options.address, "[fd77::1]:9".parse().unwrap());
        assert_eq!(options.common.timeout, Some(Duration::from_millis(500)));
        assert!(options.common.verifies);

        // A file may be called like a method, or like an option.
        let options = run(master(words("--mode async -- fcntl --page mmap")));
        assert_eq!(options.common.files, ["fcntl", "--page"].map(PathBuf::from));
    }

    #[test]
    fn sizes_have_binary_units_and_limits() {
        for (text, bytes) in [
            ("512", 512),
            ("5000", 5000),
            ("64KiB", 65536),
            ("4k", 4096),
            ("16MiB", 16 << 20),
        ] {
            assert_eq!(buffer(text), Ok(bytes));
        }
        for text in [
            "",
            "511",
            "17MiB",
            "1x",
            "-4096",
            "4096000000k",
            "1.5k",
            "k",
            "é",
        ] {
            assert!(buffer(text).is_err(), "{text}");
        }
    }

    #[test]
    fn wrong_command_lines_are_refused() {
        for line in [
            "",
            "mmap",
            "f",
            "f splice",
            "f mmap --mode slow",
            "f mmap --timeout 0",
            "f mmap --timeout -1",
            "f mmap --timeout nan",
            "f mmap --port 70000",
            "f mmap --unknown",
            "f mmap --listen localhost",
            "f mmap --listen 10.0.0.1:5 --port 6",
            "f fcntl --page",
        ] {
            let told = master(words(line)).unwrap_err();
            assert!(told.starts_with("cannot "), "{line}: {told}");
        }
        for line in [
            "",
            "f",
            "f mmap",
            "mmap ::1",
            "f mmap localhost",
            "f mmap ::1 --listen ::1",
            "f mmap 10.0.0.1:5 --port 6",
            "f mmap 10.0.0.1:0",
        ] {
            let told = slave(words(line)).unwrap_err();
            assert!(told.starts_with("cannot "), "{line}: {told}");
        }
    }
}
