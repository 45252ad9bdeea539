//! The sizes of pipes that are shared with other processes.

use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::process::Stdio;

use rustix::pipe::fcntl_getpipe_size;

use crate::common::{Files, Running, content, meow, wait_until, wait_until_full};

/// Size to which meow enlarges a pipe whose reader reads.
const LARGE: usize = 1 << 20;
const LONG: usize = 4 << 20;

fn size(pipe: impl std::os::fd::AsFd) -> usize {
    fcntl_getpipe_size(pipe).unwrap()
}

/// Copies `long` to a pipe and then continues with standard input, which stays empty.
fn start(files: &Files) -> (Running, PipeWriter, PipeReader, PipeWriter) {
    let (stdin, hold) = pipe().unwrap();
    let (reader, stdout) = pipe().unwrap();
    let mut command = files.meow();
    command.args(["long", "-"]);
    command.stdin(stdin).stdout(stdout.try_clone().unwrap());
    (Running::start(command), hold, reader, stdout)
}

#[test]
fn a_sink_gets_its_size_back_when_all_is_copied() {
    let files = Files::new();
    files.file("long", &content(LONG));
    let (mut meow, hold, mut reader, stdout) = start(&files);
    let before = size(&stdout);
    let mut bytes = vec![0; LONG];
    reader.read_exact(&mut bytes).unwrap();
    // It was enlarged: otherwise there is nothing to restore.
    assert_eq!(size(&stdout), LARGE);
    drop(hold);
    meow.succeed();
    assert_eq!(size(&stdout), before);
}

#[test]
fn a_sink_that_still_holds_much_is_shrunk_to_what_that_needs() {
    let files = Files::new();
    files.file("long", &content(LONG));
    let (mut meow, hold, mut reader, stdout) = start(&files);
    let left = 300_000;
    reader.read_exact(&mut vec![0; LONG - left]).unwrap();
    drop(hold);
    meow.succeed();
    assert_eq!(size(&stdout), 512 << 10);
}

#[test]
fn a_source_gets_its_size_back() {
    let (stdin, mut writer) = pipe().unwrap();
    let kept = stdin.try_clone().unwrap();
    let before = size(&kept);
    let mut command = meow();
    command.stdin(stdin).stdout(Stdio::null());
    let mut meow = Running::start(command);
    let bytes = content(LONG);
    let mut pieces = bytes.chunks(LARGE / 8);
    wait_until("the source is enlarged", || {
        let piece = pieces.next().expect("there is enough");
        writer.write_all(piece).unwrap();
        size(&kept) == LARGE
    });
    drop(writer);
    meow.succeed();
    assert_eq!(size(&kept), before);
}

#[test]
fn a_pipe_that_nobody_reads_is_left_as_it_is() {
    let files = Files::new();
    files.file("long", &content(LONG));
    let (reader, stdout) = pipe().unwrap();
    let before = size(&reader);
    let mut command = files.meow();
    command.arg("long").stdout(stdout.try_clone().unwrap());
    let mut meow = Running::start(command);
    wait_until_full(&stdout);
    assert_eq!(size(&reader), before);
    drop((reader, stdout));
    assert!(!meow.end().success());
}
