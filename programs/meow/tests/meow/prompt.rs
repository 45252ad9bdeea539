//! Input comes out at once, and not only after more input.

use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::sync::mpsc::channel;

use crate::common::{PATIENCE, Running, meow};

/// Writes two lines, the second only after the first came out. The threads
/// that might wait forever end with the program.
#[track_caller]
fn check(
    option: &str,
    (stdin, mut supplier): (OwnedFd, impl Write),
    (stdout, mut reader): (OwnedFd, impl Read + Send + 'static),
) {
    let mut command = meow();
    command
        .arg(option)
        .stdin(stdin)
        .stdout(stdout)
        .stderr(Stdio::null());
    let mut running = Running::start(command);
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut byte = [0];
        let mut line = Vec::new();
        while reader.read(&mut byte).is_ok_and(|length| length == 1) {
            line.push(byte[0]);
            if byte[0] == b'\n' && sender.send(std::mem::take(&mut line)).is_err() {
                return;
            }
        }
    });
    for line in ["one\n", "two\n"] {
        supplier.write_all(line.as_bytes()).unwrap();
        let shown = receiver.recv_timeout(PATIENCE / 4);
        let shown = shown.unwrap_or_else(|_| panic!("{line:?} did not come out"));
        let shown = String::from_utf8(shown).unwrap();
        assert!(shown.contains(line.trim_end()), "{shown:?}");
    }
    drop(supplier);
    assert!(running.end().success());
}

#[test]
fn pipes_and_sockets_are_answered_at_once() {
    for option in ["-u", "--copy", "-v", "-n", "-b", "-s", "-E", "-T", "-A"] {
        let [(stdin, supplier), (reader, stdout)] = [(); 2].map(|()| std::io::pipe().unwrap());
        check(option, (stdin.into(), supplier), (stdout.into(), reader));
        let [(stdin, supplier), (stdout, reader)] = [(); 2].map(|()| UnixStream::pair().unwrap());
        check(option, (stdin.into(), supplier), (stdout.into(), reader));
    }
}
