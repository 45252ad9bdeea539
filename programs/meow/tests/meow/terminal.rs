//! A terminal as input, as output, and as both.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::Stdio;

use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

use crate::common::{
    Files, Running, WAYS, assert_same, collect, content, join, meow, pipe_of, run,
};

/// Opens both sides of a terminal. A raw one changes no byte.
fn terminal(is_raw: bool) -> (File, OwnedFd) {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let near = openpt(flags).unwrap();
    grantpt(&near).unwrap();
    unlockpt(&near).unwrap();
    let far = ioctl_tiocgptpeer(&near, flags).unwrap();
    if is_raw {
        let mut settings = tcgetattr(&far).unwrap();
        settings.make_raw();
        tcsetattr(&far, OptionalActions::Now, &settings).unwrap();
    }
    (File::from(near), far)
}

fn read_exactly(mut near: File, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    near.read_exact(&mut bytes).unwrap();
    bytes
}

#[test]
fn files_and_pipes_come_out_on_a_terminal() {
    let files = Files::new();
    let bytes = content(100_000);
    let path = files.file("in", &bytes);
    for way in WAYS {
        for is_operand in [true, false] {
            let (near, far) = terminal(true);
            let mut command = meow();
            command.args(way).stdout(far);
            if is_operand {
                command.arg(&path).stdin(Stdio::null())
            } else {
                command.stdin(pipe_of(&bytes))
            };
            let length = bytes.len();
            let output = std::thread::spawn(move || read_exactly(near, length));
            run(command).succeeded();
            assert_same(&join(output), &bytes, "the terminal");
        }
    }
}

#[test]
fn lines_typed_come_out_of_a_pipe_and_of_a_file() {
    for way in WAYS {
        let files = Files::new();
        let (mut near, far) = terminal(false);
        near.write_all(b"one\ntwo\n\x04").unwrap();
        let ended = files.run_between(far.try_clone().unwrap(), way, Stdio::piped());
        assert_eq!(ended.succeeded(), b"one\ntwo\n");
        near.write_all(b"three\n\x04").unwrap();
        assert_eq!(files.copied(far, way), b"three\n");
    }
}

#[test]
fn a_terminal_is_read_again_after_its_end_was_typed() {
    let (mut near, far) = terminal(false);
    near.write_all(b"one\n\x04two\n\x04").unwrap();
    let ended = Files::new().run_between(far, &["-n", "-", "-"], Stdio::piped());
    assert_eq!(ended.succeeded(), b"     1\tone\n     2\ttwo\n");
}

#[test]
fn a_terminal_may_be_both_even_in_append_mode() {
    for is_appending in [false, true] {
        let (mut near, far) = terminal(true);
        if is_appending {
            let flags = rustix::fs::fcntl_getfl(&far).unwrap();
            let flags = flags | rustix::fs::OFlags::APPEND;
            rustix::fs::fcntl_setfl(&far, flags).unwrap();
        }
        near.write_all(b"typed\n").unwrap();
        let mut command = meow();
        command.stdin(far.try_clone().unwrap());
        command.stdout(far).stderr(Stdio::piped());
        let mut running = Running::start(command);
        let shown = read_exactly(near.try_clone().unwrap(), 6);
        assert_eq!(shown, b"typed\n");
        // Closing this side ends the terminal: some reads fail, others return nothing,
        // and meow ends in either case.
        drop(near);
        running.end();
        let errors = join(collect(running.0.stderr.take().unwrap()));
        let errors = String::from_utf8(errors).unwrap();
        assert!(!errors.contains("output file"), "{errors}");
    }
}
