//! Bytes from every kind of source to every kind of sink, and what is left of
//! both afterwards.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

use crate::common::{
    Files, WAYS, assert_same, collect, content, join, pipe_of, run, supply, writable,
};

const SOURCES: [&str; 7] = [
    "operand",
    "standard input",
    "memory",
    "pipe",
    "FIFO",
    "Unix socket",
    "TCP socket",
];

const SINKS: [&str; 7] = [
    "file",
    "appended file",
    "memory",
    "pipe",
    "FIFO",
    "Unix socket",
    "TCP socket",
];

fn tcp_pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let near = TcpStream::connect(address).unwrap();
    (near, listener.accept().unwrap().0)
}

fn memory() -> File {
    let flags = rustix::fs::MemfdFlags::CLOEXEC;
    File::from(rustix::fs::memfd_create("memory", flags).unwrap())
}

fn make_fifo(files: &Files, name: &str) {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let mode = Mode::RUSR | Mode::WUSR;
    mknodat(CWD, files.path(name), FileType::Fifo, mode, 0).unwrap();
}

fn set_source(files: &Files, source: &str, command: &mut Command, bytes: &[u8]) {
    match source {
        "operand" => {
            command.arg(files.file("in", bytes)).stdin(Stdio::null());
        }
        "standard input" => {
            files.file("in", bytes);
            command.stdin(files.open("in"));
        }
        "memory" => {
            let mut file = memory();
            file.write_all(bytes).unwrap();
            file.rewind().unwrap();
            command.stdin(file);
        }
        "pipe" => {
            command.stdin(pipe_of(bytes));
        }
        "FIFO" => {
            make_fifo(files, "fifo in");
            let (path, bytes) = (files.path("fifo in"), bytes.to_vec());
            command.arg(&path).stdin(Stdio::null());
            std::thread::spawn(move || {
                let _ = writable(path).write_all(&bytes);
            });
        }
        "Unix socket" => {
            let (near, far) = UnixStream::pair().unwrap();
            supply(far, bytes.to_vec());
            command.stdin(OwnedFd::from(near));
        }
        "TCP socket" => {
            let (near, far) = tcp_pair();
            supply(far, bytes.to_vec());
            command.stdin(OwnedFd::from(near));
        }
        other => panic!("unknown source {other}"),
    }
}

/// Returns what arrived at a sink, once all has.
type Received = Box<dyn FnOnce() -> Vec<u8>>;

fn receive(far: impl Read + Send + 'static) -> Received {
    let thread = collect(far);
    Box::new(|| join(thread))
}

fn set_sink(files: &Files, sink: &str, command: &mut Command) -> Received {
    let mut file = |mut file: File| -> Received {
        command.stdout(file.try_clone().unwrap());
        Box::new(move || {
            file.rewind().unwrap();
            join(collect(file))
        })
    };
    let mut options = File::options();
    let options = options.read(true).create(true);
    match sink {
        "file" => file(options.write(true).open(files.path("out")).unwrap()),
        "appended file" => file(options.append(true).open(files.path("out")).unwrap()),
        "memory" => file(memory()),
        "pipe" => {
            let (reader, writer) = std::io::pipe().unwrap();
            command.stdout(writer);
            receive(reader)
        }
        "FIFO" => {
            make_fifo(files, "fifo out");
            // Opening a FIFO for both directions does not wait for its other end.
            let path = files.path("fifo out");
            let both = File::options().read(true).write(true).open(&path);
            let reader = File::open(&path).unwrap();
            command.stdout(writable(&path));
            drop(both.unwrap());
            receive(reader)
        }
        "Unix socket" => {
            let (near, far) = UnixStream::pair().unwrap();
            command.stdout(OwnedFd::from(near));
            receive(far)
        }
        "TCP socket" => {
            let (near, far) = tcp_pair();
            command.stdout(OwnedFd::from(near));
            receive(far)
        }
        other => panic!("unknown sink {other}"),
    }
}

/// Moves bytes from every source to one kind of sink.
#[track_caller]
fn check(sink: &str, bytes: &[u8]) {
    for source in SOURCES {
        for way in WAYS {
            let files = Files::new();
            let mut command = files.meow();
            command.args(way);
            let received = set_sink(&files, sink, &mut command);
            set_source(&files, source, &mut command, bytes);
            run(command).succeeded();
            let what = format!("{source} to {sink} {way:?}");
            assert_same(&received(), bytes, &what);
        }
    }
}

#[test]
fn empty_short_and_long_content_goes_from_everywhere_to_everywhere() {
    let long = content((1 << 20) + 7);
    for sink in SINKS {
        for bytes in [b"", &b"short"[..], &long] {
            check(sink, bytes);
        }
    }
}

#[test]
fn sizes_around_pages_and_buffers_come_out_whole() {
    let files = Files::new();
    for edge in [4096, 65536, 131_072, 262_144, 1 << 20] {
        for size in [edge - 1, edge, edge + 1] {
            let bytes = content(size);
            files.file("in", &bytes);
            for way in WAYS {
                let arguments = [way, &["in"]].concat();
                let what = format!("{size} bytes {way:?}");
                assert_same(&files.run(&arguments).succeeded(), &bytes, &what);
                assert_same(&files.copied(Stdio::null(), &arguments), &bytes, &what);
            }
        }
    }
}

#[test]
fn different_kinds_of_sources_follow_each_other() {
    let files = Files::new();
    let long = content(200_000);
    files.file("long", &long);
    files.file("empty", b"");
    let version = std::fs::read("/proc/version").unwrap();
    let expected = [&long[..], &version, b"in", &version, &long].concat();
    let names = [
        "long",
        "/proc/version",
        "-",
        "empty",
        "/proc/version",
        "long",
    ];
    for way in WAYS {
        let ended = files.run_with_pipes(b"in", &[way, &names].concat());
        assert_same(&ended.succeeded(), &expected, "all");
    }
}

#[test]
fn standard_input_is_read_from_where_it_stands_and_left_at_its_end() {
    let files = Files::new();
    let bytes = content(300_000);
    let path = files.file("in", &bytes);
    for way in WAYS {
        for sink in SINKS {
            let mut file = File::open(&path).unwrap();
            file.seek(SeekFrom::Start(100_001)).unwrap();
            let files = Files::new();
            let mut command = files.meow();
            command.args(way);
            let received = set_sink(&files, sink, &mut command);
            command.stdin(file.try_clone().unwrap());
            run(command).succeeded();
            assert_same(&received(), &bytes[100_001..], &format!("{sink} {way:?}"));
            let position = file.stream_position().unwrap();
            assert_eq!(position, 300_000, "{sink} {way:?}");
        }
    }
}

#[test]
fn standard_input_beyond_its_end_is_empty() {
    let files = Files::new();
    files.file("in", b"short");
    for way in WAYS {
        let mut file = files.open("in");
        file.seek(SeekFrom::Start(100)).unwrap();
        let ended = files.run_between(file, way, Stdio::piped());
        assert_eq!(ended.succeeded(), b"");
    }
}
