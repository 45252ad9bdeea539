//! The beginning of a file, which is asked for before its handle is known.

use std::path::Path;
use std::sync::{Arc, Mutex};

use userfs::source::{OpenFlags, Source};

use crate::common::{Bench, both_servers, pattern};
use crate::scripted::{Answer, FILE, kind, packet, source, stat, string, usual};

const BEGIN: OpenFlags = OpenFlags {
    begin: true,
    ..OpenFlags::READ
};

fn begin_of(source: &dyn Source, name: &str) -> Vec<u8> {
    source.open(Path::new(name), BEGIN).unwrap().begin
}

#[test]
fn openssh_gives_the_handle_away_first_that_was_closed_last() {
    for settings in both_servers() {
        let Some(bench) = Bench::with(&settings) else {
            return;
        };
        let lengths = [1, 0, 40_000, 300, 32 << 10];
        for (number, length) in lengths.into_iter().enumerate() {
            let content = pattern(length, number as u64);
            std::fs::write(bench.path(&number.to_string()), content).unwrap();
        }
        let source = bench.connect();
        let _another = source.open(Path::new("0"), OpenFlags::READ).unwrap();
        drop(source.open(Path::new("0"), OpenFlags::READ).unwrap());
        for (number, length) in lengths.into_iter().enumerate() {
            let content = pattern(length.min(32 << 10), number as u64);
            assert!(
                begin_of(&source, &number.to_string()) == content,
                "{length}"
            );
        }
    }
}

#[test]
fn what_comes_by_another_handle_is_not_taken() {
    let mut files = 0_u8;
    let guesses = Arc::new(Mutex::new(Vec::new()));
    let asked = Arc::clone(&guesses);
    let (source, _) = source(move |request| match request.kind {
        kind::OPEN => {
            // No handle is used twice.
            files += 1;
            Answer::Bytes(packet(kind::HANDLE, request.id, &string(&[files])))
        }
        kind::LSTAT => Answer::Bytes(packet(kind::ATTRS, request.id, &stat(FILE, 10))),
        kind::READ => {
            let [handle] = request.strings();
            let answer = packet(kind::DATA, request.id, &string(&handle));
            asked.lock().unwrap().push(handle);
            Answer::Bytes(answer)
        }
        _ => usual(request).unwrap_or(Answer::Silence),
    });
    for _ in 0..3 {
        assert_eq!(begin_of(&source, "f"), [] as [u8; 0]);
    }
    drop(source);
    let guesses = guesses.lock().unwrap();
    assert!(guesses.contains(&vec![1]), "{guesses:?}");
}
