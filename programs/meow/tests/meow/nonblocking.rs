//! Streams in nonblocking mode, such as streams of a terminal or of another program. GNU
//! `cat` gives up on them; here every byte must arrive.

use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::Stdio;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use crate::common::{
    Files, MORE_THAN_PIPES_HOLD, Running, WAYS, assert_same, collect, content, join, pipe_of,
    wait_until_full,
};

fn set_nonblocking(fd: impl AsFd) {
    let flags = fcntl_getfl(&fd).unwrap();
    fcntl_setfl(&fd, flags | OFlags::NONBLOCK).unwrap();
}

/// Fails if meow has changed the mode of the open file, which is shared.
#[track_caller]
fn assert_nonblocking(fd: impl AsFd) {
    assert!(fcntl_getfl(&fd).unwrap().contains(OFlags::NONBLOCK));
}

#[track_caller]
fn check_sink(
    files: &Files,
    arguments: &[&str],
    stdin: Stdio,
    (near, far): (OwnedFd, impl Read + Send + 'static),
) {
    set_nonblocking(&near);
    let mut command = files.meow();
    command.args(arguments).stdin(stdin).stderr(Stdio::piped());
    command.stdout(near.try_clone().unwrap());
    let mut running = Running::start(command);
    wait_until_full(&near);
    assert_nonblocking(&near);
    drop(near);
    let output = collect(far);
    running.succeed();
    let (output, long) = (join(output), content(MORE_THAN_PIPES_HOLD));
    if arguments.contains(&"-b") {
        assert!(output.len() > long.len());
    } else {
        assert_same(&output, &long, &format!("{arguments:?}"));
    }
}

#[test]
fn a_full_sink_is_waited_for() {
    let long = content(MORE_THAN_PIPES_HOLD);
    let files = Files::new();
    files.file("long", &long);
    let check = |arguments: &[&str], stdin: &dyn Fn() -> Stdio| {
        let (reader, writer) = std::io::pipe().unwrap();
        check_sink(&files, arguments, stdin(), (writer.into(), reader));
        let (near, far) = UnixStream::pair().unwrap();
        check_sink(&files, arguments, stdin(), (near.into(), far));
    };
    for way in WAYS {
        check(&[way, &["long"]].concat(), &Stdio::null);
        check(way, &|| pipe_of(&long).into());
    }
    check(&["-u", "-b", "-s"], &|| files.open("long").into());
}

#[track_caller]
fn check_source(option: &str, (near, mut far): (OwnedFd, impl Write), is_piped: bool) {
    set_nonblocking(&near);
    let files = Files::new();
    let mut command = files.meow();
    command.arg(option).stdin(near.try_clone().unwrap());
    command.stderr(Stdio::piped());
    if is_piped {
        command.stdout(Stdio::piped())
    } else {
        command.stdout(files.sink("out"))
    };
    let mut running = Running::start(command);
    let output = running.0.stdout.take().map(collect);
    for _ in 0..50 {
        far.write_all(b"piece\n").unwrap();
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    assert_nonblocking(&near);
    drop((far, near));
    running.succeed();
    let output = output.map_or_else(|| files.content("out"), join);
    assert_eq!(output, b"piece\n".repeat(50), "{option}");
}

#[test]
fn an_empty_source_is_waited_for() {
    for option in ["-u", "--copy", "-s"] {
        for is_piped in [false, true] {
            let (reader, writer) = std::io::pipe().unwrap();
            check_source(option, (reader.into(), writer), is_piped);
            let (near, far) = UnixStream::pair().unwrap();
            check_source(option, (near.into(), far), is_piped);
        }
    }
}
