//! What a reader sees of a file that changes before it reads.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::process::Stdio;

use crate::common::{Files, MORE_THAN_PIPES_HOLD, Running, collect, join, wait_until_full};

/// The first byte that a reader gets if the file's first page is overwritten
/// while meow waits at a full pipe, and the whole output's length.
fn first_byte_after_a_change(options: &[&str]) -> (u8, usize) {
    let files = Files::new();
    let path = files.file("changing", &vec![b'o'; MORE_THAN_PIPES_HOLD]);
    let (mut reader, writer) = std::io::pipe().unwrap();
    let watched = writer.try_clone().unwrap();
    let mut command = files.meow();
    command
        .args(options)
        .arg(&path)
        .stdin(Stdio::null())
        .stdout(writer);
    let mut running = Running::start(command);
    wait_until_full(&watched);
    drop(watched);
    let file = File::options().write(true).open(&path).unwrap();
    file.write_all_at(&[b'n'; 4096], 0).unwrap();
    let mut first = [0];
    reader.read_exact(&mut first).unwrap();
    let rest = join(collect(reader));
    assert!(running.end().success());
    (first[0], 1 + rest.len())
}

#[test]
fn with_copy_a_reader_gets_what_was_read() {
    assert_eq!(
        first_byte_after_a_change(&["--copy"]),
        (b'o', MORE_THAN_PIPES_HOLD)
    );
}

#[test]
fn without_copy_a_reader_may_get_the_change_but_always_every_byte() {
    // That the pipe holds the file's own pages is how it saves a copy; were the
    // old byte read here, nothing would be shared and --copy without a use.
    assert_eq!(first_byte_after_a_change(&[]), (b'n', MORE_THAN_PIPES_HOLD));
}
