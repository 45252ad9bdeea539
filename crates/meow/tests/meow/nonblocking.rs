//! Streams that are set not to wait, as those of a terminal or of another
//! program may be. GNU `cat` gives up on them; every byte must arrive.

use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::Stdio;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use crate::common::{
    Files, MORE_THAN_PIPES_HOLD, Running, WAYS, assert_same, collect, content, join, meow,
    wait_until_full,
};

fn set_nonblocking(fd: impl AsFd) {
    let flags = fcntl_getfl(&fd).expect("it is open");
    fcntl_setfl(&fd, flags | OFlags::NONBLOCK).expect("flags can be set");
}

fn is_nonblocking(fd: impl AsFd) -> bool {
    let flags = fcntl_getfl(&fd).expect("it is open");
    flags.contains(OFlags::NONBLOCK)
}

/// The sources from which a full sink must be reached.
fn with_each_source(long: &[u8], check: impl Fn(&[&str], Stdio)) {
    let files = Files::new();
    let path = files.file("long", long);
    for way in WAYS {
        let name = path.to_str().expect("the path is UTF-8");
        check(&[way, &[name]].concat(), Stdio::null());
        let (reader, writer) = std::io::pipe().expect("a pipe");
        crate::common::supply(writer, long.to_vec());
        check(way, reader.into());
    }
    check(
        &["-u", "-b", "-s"],
        std::fs::File::open(&path).expect("it is there").into(),
    );
}

#[track_caller]
fn check_sink(
    arguments: &[&str],
    stdin: Stdio,
    long: &[u8],
    (near, far): (OwnedFd, impl Read + Send + 'static),
) {
    set_nonblocking(&near);
    let mut command = meow();
    command.args(arguments).stdin(stdin).stderr(Stdio::piped());
    command.stdout(near.try_clone().expect("one more descriptor"));
    let mut running = Running::start(command);
    wait_until_full(&near);
    assert!(
        is_nonblocking(&near),
        "the descriptor is shared and not meow's to change"
    );
    drop(near);
    let output = collect(far);
    let status = running.end();
    let errors = join(collect(running.0.stderr.take().expect("it is piped")));
    assert!(status.success(), "{status}: {}", errors.escape_ascii());
    let output = join(output);
    if arguments.contains(&"-b") {
        assert!(output.len() > long.len());
    } else {
        assert_same(&output, long, &format!("{arguments:?}"));
    }
}

#[test]
fn a_full_pipe_is_waited_for() {
    let long = content(MORE_THAN_PIPES_HOLD);
    with_each_source(&long, |arguments, stdin| {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        check_sink(arguments, stdin, &long, (writer.into(), reader));
    });
}

#[test]
fn a_full_socket_is_waited_for() {
    let long = content(MORE_THAN_PIPES_HOLD);
    with_each_source(&long, |arguments, stdin| {
        let (near, far) = UnixStream::pair().expect("sockets");
        check_sink(arguments, stdin, &long, (near.into(), far));
    });
}

#[track_caller]
fn check_source(option: &str, (near, mut far): (OwnedFd, impl Write), is_piped: bool) {
    set_nonblocking(&near);
    let files = Files::new();
    let mut command = files.meow();
    command
        .arg(option)
        .stdin(near.try_clone().expect("one more descriptor"));
    command.stderr(Stdio::piped());
    if is_piped {
        command.stdout(Stdio::piped());
    } else {
        command.stdout(files.sink("out"));
    }
    let mut running = Running::start(command);
    let output = running.0.stdout.take().map(collect);
    for _ in 0..50 {
        far.write_all(b"piece\n").expect("meow reads");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    assert!(
        is_nonblocking(&near),
        "the descriptor is shared and not meow's to change"
    );
    drop((far, near));
    let status = running.end();
    let errors = join(collect(running.0.stderr.take().expect("it is piped")));
    assert!(status.success(), "{status}: {}", errors.escape_ascii());
    let output = output.map_or_else(|| files.content("out"), join);
    assert_eq!(output, b"piece\n".repeat(50), "{option}");
}

#[test]
fn an_empty_source_is_waited_for() {
    for option in ["-u", "--copy", "-s"] {
        for is_piped in [false, true] {
            let (reader, writer) = std::io::pipe().expect("a pipe");
            check_source(option, (reader.into(), writer), is_piped);
            let (near, far) = UnixStream::pair().expect("sockets");
            check_source(option, (near.into(), far), is_piped);
        }
    }
}
