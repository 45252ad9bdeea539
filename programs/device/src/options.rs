//! Parses the command lines.

use std::ffi::OsString;
use std::net::{Ipv6Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use lexopt::{Arg, ValueExt};
use toll_probe::device::{
    BUFFER_BYTES_DEFAULT, BUFFER_BYTES_MAX, BUFFER_BYTES_MIN, End, Setup, Way,
};
use toll_probe::program::Request;
use toll_wire::quantity::parse_size;
use toll_wire::{SocketMode, from_word};

use crate::address;

/// Default TCP port of a master.
pub const PORT: u16 = 2325;

const MASTER_HELP: &str = "\
Usage: master [OPTION]... FILE... METHOD
Send FILE(s) in order through /dev/master_device to the program slave, and print
how long each took. Each FILE waits for a separate connection.

METHOD is how a file gets to the device:
  fcntl  read from the file and write to the device, through a buffer
  mmap   for each page of the file, map it and a page of the device, copy it
         to the device's page, and have the driver send that
  mmap-device
         copy larger parts of the mapped file to the device's buffer, which is
         mapped once, and have the driver send from there

      --buffer SIZE      bytes of one call, 512 to 16MiB; with mmap at most a
                         page; with mmap-device also the part of the file that
                         is mapped at a time [default: 64KiB, with mmap-device
                         1MiB]
      --mode MODE        how the driver uses its socket: sync; fasync (as sync,
                         with a flag that nothing reads); or async (through a
                         queue and a worker) [default: sync]
      --listen ADDRESS   wait on this address of the machine [default: any]
      --port PORT        wait on this port; 0 lets the kernel choose one, which
                         is printed [default: 2325]
      --verify           have the slave check the content by a hash (XXH3-64)
      --page             print the page-table entry of the last mapped page of
                         the file to standard error; with mmap only
      --timeout SECONDS  give up when no slave connects, or nothing moves, for
                         this long [default: wait forever]
      --help             display this help and exit
      --version          output version information and exit

Insert the kernel module master first, only in a guest: see toll guest --help.

Example:
  master movie.mkv mmap --verify
";

const SLAVE_HELP: &str = "\
Usage: slave [OPTION]... FILE... METHOD ADDRESS
Receive files through /dev/slave_device from the program master at ADDRESS into
FILE(s), in order, and print how long each took. A FILE gets its name when it is
complete. Give as many as the master sends.

METHOD is how a file gets from the device:
  fcntl  read from the device and write to the file, through a buffer
  mmap   read from the device into a buffer, and copy from there to the mapped
         file, which grows by a window when one is full
  mmap-device
         have the driver receive into its buffer, which is mapped, and copy from
         there to the mapped file

ADDRESS is IPv4 or IPv6, with or without a port: 10.0.77.1, fd77::1,
[fd77::1]:2325, fe80::1%eth0.

      --buffer SIZE      bytes of one call, 512 to 16MiB; with mmap-device also
                         the part of the file that is mapped at a time [default:
                         64KiB, with mmap-device 1MiB]
      --window SIZE      the part of the file that mmap maps at a time, in whole
                         pages, 4KiB to 1GiB [default: 1MiB]
      --mode MODE        how the driver uses its socket: sync; fasync (as sync,
                         with a flag that nothing reads); or async (through a
                         queue and a worker) [default: sync]
      --port PORT        the master's port [default: 2325]
      --verify           require that the content is checked by a hash; give
                         --verify to the master, too
      --page             print the page-table entry of the last mapped page of
                         the file to standard error; with mmap only
      --timeout SECONDS  wait this long for a master to start, and give up when
                         nothing moves for this long [default: do not wait for a
                         master, but wait for its bytes forever]
      --help             display this help and exit
      --version          output version information and exit

Insert the kernel module slave first, only in a guest: see toll guest --help.

Example:
  slave copy.mkv mmap 10.0.77.1 --verify
";

/// Default size of the part of a file that is mapped at a time, in bytes. Unmapping
/// costs about the same for every size.
const WINDOW_BYTES: u32 = 1 << 20;
const WINDOW_BYTES_MIN: u32 = 4 << 10;
const WINDOW_BYTES_MAX: u32 = 1 << 30;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The files, in the order of the command line; never empty.
    pub files: Vec<PathBuf>,
    pub setup: Setup,
    pub verifies: bool,
    pub shows_page: bool,
    /// Longest wait without any progress.
    pub timeout: Option<Duration>,
    /// Address of the master. A slave connects to it, and a master listens on it. A
    /// master with the unspecified address (`[::]`) listens on any address.
    pub address: SocketAddr,
}

#[derive(Default)]
struct Line {
    operands: Vec<OsString>,
    buffer: Option<String>,
    window: Option<String>,
    mode: Option<String>,
    listen: Option<String>,
    port: Option<u16>,
    timeout: Option<String>,
    verifies: bool,
    shows_page: bool,
}

pub fn parse(
    end: End,
    arguments: impl IntoIterator<Item = OsString>,
) -> Result<Request<Options>, String> {
    let mut line = match read(end, arguments)? {
        Request::Run(line) => line,
        Request::Print(text) => return Ok(Request::Print(text)),
    };
    let address = match end {
        End::Master => line.listen.take(),
        End::Slave if line.operands.len() < 2 => {
            return Err("cannot start: METHOD and ADDRESS are missing".to_owned());
        }
        End::Slave => line
            .operands
            .pop()
            .map(|word| word.to_string_lossy().into_owned()),
    };
    let any = (SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)), None);
    let address = address.as_deref().map(address::parse).transpose()?;
    let (mut address, its_port) = address.unwrap_or(any);
    let method = line.operands.pop();
    let way = way(method, &line)?;
    address.set_port(one_port(line.port, its_port)?);
    if end == End::Slave && address.port() == 0 {
        return Err("cannot connect to port 0: give the port that master printed".to_owned());
    }
    let mode = match &line.mode {
        None => SocketMode::Sync,
        Some(word) => from_word(word)
            .ok_or_else(|| format!("cannot use {word:?} as a mode: give sync, fasync or async"))?,
    };
    let buffer_bytes = match &line.buffer {
        Some(text) => buffer(text)?,
        None if way == Way::Mmap => WINDOW_BYTES,
        None => BUFFER_BYTES_DEFAULT,
    };
    let window_bytes = line.window.as_deref().map_or(Ok(WINDOW_BYTES), window)?;
    Ok(Request::Run(Options {
        files: line.operands.into_iter().map(PathBuf::from).collect(),
        setup: Setup {
            mode,
            way,
            buffer_bytes,
            window_bytes: window_bytes as usize,
        },
        verifies: line.verifies,
        shows_page: line.shows_page,
        timeout: line.timeout.as_deref().map(timeout).transpose()?,
        address,
    }))
}

fn read(end: End, arguments: impl IntoIterator<Item = OsString>) -> Result<Request<Line>, String> {
    let mut parser = lexopt::Parser::from_args(arguments);
    let mut line = Line::default();
    while let Some(argument) = parser.next().map_err(message)? {
        match argument {
            Arg::Value(operand) => line.operands.push(operand),
            Arg::Long("buffer") => line.buffer = Some(text(&mut parser)?),
            Arg::Long("window") if end == End::Slave => line.window = Some(text(&mut parser)?),
            Arg::Long("mode") => line.mode = Some(text(&mut parser)?),
            Arg::Long("listen") if end == End::Master => line.listen = Some(text(&mut parser)?),
            Arg::Long("port") => {
                line.port = Some(parser.value().and_then(|v| v.parse()).map_err(message)?);
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
                return Ok(Request::version(end.module_name()));
            }
            other => return Err(message(other.unexpected())),
        }
    }
    Ok(Request::Run(line))
}

fn text(parser: &mut lexopt::Parser) -> Result<String, String> {
    parser.value().and_then(|v| v.string()).map_err(message)
}

fn message(error: lexopt::Error) -> String {
    format!("cannot read the command line: {error}")
}

fn way(method: Option<OsString>, line: &Line) -> Result<Way, String> {
    let method = method.unwrap_or_default();
    let way = match method.to_str() {
        Some("mmap") => Way::MendedMmap,
        Some("mmap-device") => Way::Mmap,
        Some("fcntl") => Way::ReadWrite,
        _ => {
            return Err(format!(
                "cannot use {method:?} as a METHOD: give fcntl, mmap or mmap-device"
            ));
        }
    };
    if line.operands.is_empty() {
        return Err("cannot start: FILE is missing".to_owned());
    }
    if line.shows_page && !way.maps_file() {
        return Err("cannot show a page: --page needs the method mmap or mmap-device".to_owned());
    }
    if line.window.is_some() && way != Way::MendedMmap {
        return Err("cannot set a window: --window needs the method mmap".to_owned());
    }
    Ok(way)
}

fn one_port(option: Option<u16>, of_address: Option<u16>) -> Result<u16, String> {
    match (option, of_address) {
        (Some(one), Some(other)) if one != other => Err(format!(
            "cannot use two ports: --port is {one} and the address has {other}"
        )),
        (one, other) => Ok(one.or(other).unwrap_or(PORT)),
    }
}

fn buffer(text: &str) -> Result<u32, String> {
    size_within(text, BUFFER_BYTES_MIN..=BUFFER_BYTES_MAX).ok_or_else(|| {
        format!("cannot use {text:?} as a buffer size: give 512 to 16MiB, such as 4096 or 64KiB")
    })
}

fn window(text: &str) -> Result<u32, String> {
    size_within(text, WINDOW_BYTES_MIN..=WINDOW_BYTES_MAX).ok_or_else(|| {
        format!("cannot use {text:?} as a window size: give 4KiB to 1GiB, such as 4096 or 1MiB")
    })
}

/// Parses a size such as `512`, `64KiB`, `64k`, `1MiB` or `1m`.
fn size_within(text: &str, bounds: RangeInclusive<u32>) -> Option<u32> {
    let bytes = parse_size(text).ok()?.try_into().ok()?;
    bounds.contains(&bytes).then_some(bytes)
}

/// Parses a number of seconds, with or without a fraction.
fn timeout(text: &str) -> Result<Duration, String> {
    // A longer time would overflow the driver's 32-bit count of milliseconds.
    const SECONDS_MAX: f64 = 4_000_000.0;
    text.parse()
        .ok()
        .filter(|seconds| (0.001..=SECONDS_MAX).contains(seconds))
        .map(Duration::from_secs_f64)
        .ok_or_else(|| {
            format!("cannot wait for {text:?}: give a number of seconds, such as 10 or 0.5")
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(end: End, line: &str) -> Result<Options, String> {
        let words = line.split_whitespace().map(OsString::from);
        parse(end, words).map(|request| match request {
            Request::Run(options) => options,
            Request::Print(text) => panic!("{text}"),
        })
    }

    #[test]
    fn files_stand_before_method_and_address() {
        let options = parsed(End::Master, "a b mmap").unwrap();
        assert_eq!(options.files, ["a", "b"].map(PathBuf::from));
        assert_eq!(options.setup.way, Way::MendedMmap);
        assert_eq!(options.address, "[::]:2325".parse().unwrap());
        assert_eq!(options.setup.buffer_bytes, 64 << 10);
        assert_eq!(options.setup.mode, SocketMode::Sync);

        let options = parsed(End::Slave, "x fcntl [fd77::1]:9 --timeout 0.5 --verify").unwrap();
        assert_eq!(options.files, [PathBuf::from("x")]);
        assert_eq!(options.setup.way, Way::ReadWrite);
        assert_eq!(options.setup.buffer_bytes, 65536);
        assert_eq!(options.address, "[fd77::1]:9".parse().unwrap());
        assert_eq!(options.timeout, Some(Duration::from_millis(500)));
        assert!(options.verifies);

        let options = parsed(End::Slave, "x mmap-device ::1").unwrap();
        assert_eq!(options.setup.way, Way::Mmap);
        assert_eq!(options.setup.buffer_bytes, 1 << 20);
        let options = parsed(End::Slave, "x mmap ::1 --window 4KiB").unwrap();
        assert_eq!(options.setup.window_bytes, 4096);

        // A file may have the name of a method or of an option.
        let options = parsed(End::Master, "--mode async -- fcntl --page mmap").unwrap();
        assert_eq!(options.files, ["fcntl", "--page"].map(PathBuf::from));
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
            "1.3k",
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
            "f mmap --window 4KiB",
        ] {
            let message = parsed(End::Master, line).unwrap_err();
            assert!(message.starts_with("cannot "), "{line}: {message}");
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
            "f mmap ::1 --window 4095",
            "f fcntl ::1 --window 4KiB",
            "f mmap-device ::1 --window 4KiB",
        ] {
            let message = parsed(End::Slave, line).unwrap_err();
            assert!(message.starts_with("cannot "), "{line}: {message}");
        }
    }
}
