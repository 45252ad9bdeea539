//! A terminal as input, as output, and as both.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::Stdio;

use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

use crate::common::{
    Files, Running, WAYS, assert_same, collect, content, join, meow, run, wait_until,
};

/// Both sides of a terminal. A raw one changes no byte.
fn terminal(is_raw: bool) -> (File, OwnedFd) {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let near = openpt(flags).expect("a terminal");
    grantpt(&near).expect("a terminal of one's own");
    unlockpt(&near).expect("a terminal of one's own");
    let far = ioctl_tiocgptpeer(&near, flags).expect("its other side");
    if is_raw {
        let mut settings = tcgetattr(&far).expect("a terminal has settings");
        settings.make_raw();
        tcsetattr(&far, OptionalActions::Now, &settings).expect("settings can be set");
    }
    (File::from(near), far)
}

/// Reads a number of bytes.
fn read_exactly(mut near: File, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    near.read_exact(&mut bytes).expect("meow writes");
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
                command.arg(&path).stdin(Stdio::null());
            } else {
                let (reader, writer) = std::io::pipe().expect("a pipe");
                crate::common::supply(writer, bytes.clone());
                command.stdin(reader);
            }
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
        near.write_all(b"one\ntwo\n\x04").expect("there is room");
        let mut command = files.meow();
        command
            .args(way)
            .stdin(far.try_clone().expect("one more descriptor"));
        command.stdout(Stdio::piped());
        assert_eq!(run(command).succeeded(), b"one\ntwo\n");
        near.write_all(b"three\n\x04").expect("there is room");
        let mut command = files.meow();
        command.args(way).stdin(far).stdout(files.sink("out"));
        run(command).succeeded();
        assert_eq!(files.content("out"), b"three\n");
    }
}

#[test]
fn a_terminal_is_read_again_after_its_end_was_typed() {
    let (mut near, far) = terminal(false);
    near.write_all(b"one\n\x04two\n\x04")
        .expect("there is room");
    let mut command = meow();
    command
        .args(["-n", "-", "-"])
        .stdin(far)
        .stdout(Stdio::piped());
    assert_eq!(run(command).succeeded(), b"     1\tone\n     2\ttwo\n");
}

#[test]
fn a_terminal_may_be_both_even_in_append_mode() {
    for is_appending in [false, true] {
        let (mut near, far) = terminal(true);
        if is_appending {
            let flags = rustix::fs::fcntl_getfl(&far).expect("it is open");
            let flags = flags | rustix::fs::OFlags::APPEND;
            rustix::fs::fcntl_setfl(&far, flags).expect("flags can be set");
        }
        near.write_all(b"typed\n").expect("there is room");
        let mut command = meow();
        command.stdin(far.try_clone().expect("one more descriptor"));
        command.stdout(far).stderr(Stdio::piped());
        let mut running = Running::start(command);
        let shown = read_exactly(near.try_clone().expect("one more descriptor"), 6);
        assert_eq!(shown, b"typed\n");
        // Closing this side is the end of the terminal: an error for some
        // reads, an empty one for others, and for meow the end in any case.
        drop(near);
        let mut errors = None;
        wait_until("meow ends", || {
            errors = running.0.try_wait().expect("a child can be waited for");
            errors.is_some()
        });
        let errors = join(collect(running.0.stderr.take().expect("it is piped")));
        let errors = String::from_utf8(errors).expect("messages are UTF-8");
        assert!(!errors.contains("output file"), "{errors}");
    }
}
