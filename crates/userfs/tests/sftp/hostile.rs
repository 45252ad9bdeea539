//! Servers that break the protocol: nothing they send is believed, nothing
//! hangs, nothing panics.

use std::path::Path;
use std::time::Duration;

use proptest::prelude::*;

use userfs::source::{Entry, Error, OpenFlags, Result, Source};

use crate::common::{list, open};
use crate::scripted::{
    Answer, DIRECTORY, FILE, Request, connect, greeting, kind, options, packet, source, stat,
    status, string, transport, usual,
};

fn refused(answer: impl FnMut(&Request) -> Answer + Send + 'static) -> String {
    let (options, _) = options(Duration::ZERO);
    let again = || Err(String::new());
    let refused = connect(transport(answer), again, &options);
    refused.err().expect("there is no source")
}

#[test]
fn a_greeting_that_is_none_is_told_in_words() {
    let text = refused(|_| Answer::End(b"\x1b[31mWelcome to \xff!\r\n".to_vec()));
    assert!(text.contains("text before SFTP began"), "{text}");
    assert!(text.contains("Welcome to"), "{text}");
    assert!(
        !text.contains('\x1b') && text.contains("start-up files"),
        "{text}"
    );
    for (greeting, part) in [
        (packet(kind::VERSION, 6, &[]), "version 6"),
        (
            packet(kind::VERSION, 3, &string(b"half")),
            "ends within a field",
        ),
        (status(0, 0), "before SFTP began"),
        (Vec::new(), "the connection ended"),
        (greeting()[..6].to_vec(), "the connection ended"),
        (
            vec![0xff, 0xff, 0xff, 0xff, kind::VERSION],
            "before SFTP began",
        ),
    ] {
        let why = refused(move |_| Answer::End(greeting.clone()));
        assert!(why.contains(part), "{why}: {part}");
    }
}

#[test]
fn a_server_that_never_greets_or_never_answers_is_given_up() {
    let (mut options, told) = options(Duration::ZERO);
    let again = || Err("still gone".to_owned());
    options.connect_timeout = Duration::from_millis(20);
    let silent = connect(transport(|_| Answer::Silence), again, &options);
    assert!(silent.err().unwrap().contains("did not answer"));
    // Long enough for a busy machine to find the root.
    options.connect_timeout = Duration::from_secs(60);
    options.answer_timeout = Duration::from_secs(3);
    let answer = |request: &Request| usual(request).unwrap_or(Answer::Silence);
    let source = connect(transport(answer), again, &options).unwrap();
    assert_eq!(source.attributes(Path::new("x")), Err(Error::Lost));
    assert_eq!(source.attributes(Path::new("x")), Err(Error::Lost));
    let told = told.lock().unwrap().join("\n");
    assert!(told.contains("did not answer"), "{told}");
}

/// What a server answers to an LSTAT that ends the connection.
fn wrong_answers(id: u32) -> Vec<(&'static str, Vec<u8>)> {
    let good = packet(kind::ATTRS, id, &stat(FILE, 5));
    let mut endless = good.clone();
    endless[..4].copy_from_slice(&u32::MAX.to_be_bytes());
    let mut too_long = good.clone();
    too_long[..4].copy_from_slice(&(2_u32 << 20).to_be_bytes());
    vec![
        ("another id", packet(kind::ATTRS, id + 1, &stat(FILE, 5))),
        (
            "an answer to the greeting",
            packet(kind::ATTRS, 0, &stat(FILE, 5)),
        ),
        (
            "two answers",
            [good.clone(), good.clone(), good.clone()].concat(),
        ),
        ("another kind", packet(kind::HANDLE, id, &string(b"h"))),
        ("an unheard-of kind", packet(99, id, &stat(FILE, 5))),
        ("a success", status(id, 0)),
        (
            "half of the attributes",
            packet(kind::ATTRS, id, &stat(FILE, 5)[..9]),
        ),
        ("no fields", packet(kind::ATTRS, id, &[])),
        ("a status without a code", packet(kind::STATUS, id, &[0])),
        ("an endless packet", endless),
        ("a packet that is too long", too_long),
        ("an empty packet", vec![0; 4]),
        (
            "a packet without an id",
            vec![0, 0, 0, 1, kind::ATTRS, 0, 0, 0, 0],
        ),
    ]
}

#[test]
fn an_answer_that_breaks_the_protocol_ends_the_connection() {
    for number in 0..wrong_answers(0).len() {
        let (name, _) = wrong_answers(0)[number];
        let (source, _) = source(move |request| match request.kind {
            kind::LSTAT => Answer::Bytes(wrong_answers(request.id)[number].1.clone()),
            _ => usual(request).unwrap_or(Answer::Silence),
        });
        // Of two answers the first is right.
        let first = source.attributes(Path::new("x"));
        assert!(
            name == "two answers" || first == Err(Error::Lost),
            "{name}: {first:?}"
        );
        assert_eq!(
            source.attributes(Path::new("x")),
            Err(Error::Lost),
            "{name}"
        );
    }
}

#[test]
fn attributes_without_a_kind_of_file_are_an_error_and_no_file() {
    let (source, _) = source(|request| match request.kind {
        kind::LSTAT => Answer::Bytes(packet(kind::ATTRS, request.id, &[0; 4])),
        _ => usual(request).unwrap_or(Answer::Silence),
    });
    assert_eq!(
        source.attributes(Path::new("x")),
        Err(Error::Errno(libc::EIO))
    );
}

/// A listing with one name, told twice if `is_endless`.
fn list_of(name: &[u8], count: u32) -> Result<Vec<Entry>> {
    let name = [string(name), string(b"-rw-r--r-- junk"), stat(FILE, 1)].concat();
    let mut reads = 0;
    let (source, told) = source(move |request| match request.kind {
        kind::OPENDIR => Answer::Bytes(packet(kind::HANDLE, request.id, &string(b"h"))),
        kind::READDIR if reads == 0 => {
            reads += 1;
            let fields = [&count.to_be_bytes()[..], &name].concat();
            Answer::Bytes(packet(kind::NAME, request.id, &fields))
        }
        kind::READDIR => Answer::Bytes(status(request.id, 1)),
        kind::CLOSE => Answer::Bytes(status(request.id, 0)),
        _ => usual(request).unwrap_or(Answer::Silence),
    });
    let listed = list(&source, "");
    for line in told.lock().unwrap().iter() {
        assert!(!line.contains(|c: char| c.is_control()), "{line}");
    }
    listed
}

#[test]
fn a_name_that_cannot_be_is_never_passed_on() {
    assert_eq!(list_of(b"good", 1).unwrap()[0].name, "good");
    assert_eq!(list_of(b"..", 1), Ok(Vec::new()));
    assert_eq!(list_of(b"none", 0), Ok(Vec::new()));
    let too_long = [b'n'; 256];
    for name in [
        &b"a/b"[..],
        b"../../etc/passwd",
        b"/",
        b"",
        b"a\0b",
        b"\x1b/",
        &too_long,
    ] {
        assert_eq!(list_of(name, 1), Err(Error::Errno(libc::EIO)), "{name:?}");
    }
    assert_eq!(list_of(b"good", 2), Err(Error::Lost));
    assert_eq!(list_of(b"good", u32::MAX), Err(Error::Lost));
}

/// What a read of 10 bytes of a file gives.
fn read_of(
    mut data: impl FnMut(&Request) -> Vec<u8> + Send + 'static,
) -> (Result<usize>, [u8; 10]) {
    let (source, _) = source(move |request| match request.kind {
        kind::OPEN => Answer::Bytes(packet(kind::HANDLE, request.id, &string(b"h"))),
        kind::LSTAT => Answer::Bytes(packet(kind::ATTRS, request.id, &stat(FILE, 10))),
        kind::READ => Answer::Bytes(data(request)),
        _ => usual(request).unwrap_or(Answer::Silence),
    });
    let file = open(&source, "f", OpenFlags::READ).unwrap();
    let mut buffer = [0; 10];
    (file.read_at(&mut buffer, 0), buffer)
}

#[test]
fn data_is_neither_more_than_was_asked_for_nor_nothing() {
    let with = |bytes: &'static [u8]| {
        read_of(move |request| packet(kind::DATA, request.id, &string(bytes))).0
    };
    assert_eq!(with(b"0123456789"), Ok(10));
    assert_eq!(with(b"0123456789+"), Err(Error::Lost));
    assert_eq!(with(b""), Err(Error::Lost));
    assert_eq!(read_of(|request| status(request.id, 1)).0, Ok(0));
    assert_eq!(read_of(|request| status(request.id, 0)).0, Err(Error::Lost));
}

#[test]
fn a_short_answer_is_asked_on_for() {
    let mut at = 0;
    let (read, buffer) = read_of(move |request| {
        at += 3;
        match at {
            ..=9 => packet(kind::DATA, request.id, &string(b"abc")),
            _ => status(request.id, 1),
        }
    });
    assert_eq!((read, &buffer), (Ok(9), b"abcabcabc\0"));
}

#[test]
fn a_handle_that_is_too_long_is_refused() {
    let (source, _) = source(|request| match request.kind {
        kind::OPENDIR => Answer::Bytes(packet(kind::HANDLE, request.id, &string(&[1; 257]))),
        _ => usual(request).unwrap_or(Answer::Silence),
    });
    assert_eq!(list(&source, ""), Err(Error::Lost));
}

/// The answer of a server that means well.
fn sound(request: &Request) -> Answer {
    let id = request.id;
    let listing = [
        &1_u32.to_be_bytes()[..],
        &string(b"name"),
        &string(b"long"),
        &stat(FILE, 9),
    ];
    Answer::Bytes(match request.kind {
        kind::OPEN | kind::OPENDIR => packet(kind::HANDLE, id, &string(b"h")),
        kind::LSTAT | kind::FSTAT => packet(kind::ATTRS, id, &stat(FILE, 9)),
        kind::READ => packet(kind::DATA, id, &string(b"123456789")),
        kind::READLINK => packet(kind::NAME, id, &listing.concat()),
        kind::READDIR => status(id, 1),
        _ => return usual(request).unwrap_or(Answer::Bytes(status(id, 0))),
    })
}

/// Runs what a mount would against a server whose answers are changed from
/// some moment on, by `change`. Answers are whatever they are; the test is
/// that there are some.
fn survive(changed_from: usize, change: impl Fn(Vec<u8>) -> Vec<u8> + Send + 'static) {
    let mut answers = 0;
    let (source, _) = source(move |request| {
        answers += 1;
        match sound(request) {
            // The first three find the root.
            Answer::Bytes(bytes) if answers > 3 + changed_from => Answer::End(change(bytes)),
            answer => answer,
        }
    });
    let path = Path::new("f");
    let _ = source.attributes(path);
    let _ = list(&source, "f");
    let _ = source.read_link(path);
    if let Ok(file) = open(&source, "f", OpenFlags::READ) {
        let _ = file.read_at(&mut [0; 100], 0);
        let _ = file.attributes();
    }
    let _ = source.space();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn whatever_bytes_a_server_sends_every_call_ends(
        changed_from in 0_usize..8,
        bytes in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        survive(changed_from, move |_| bytes.clone());
    }

    #[test]
    fn whatever_byte_of_an_answer_is_wrong_every_call_ends(
        changed_from in 0_usize..8,
        at: prop::sample::Index,
        value: u8,
    ) {
        survive(changed_from, move |mut bytes| {
            let at = at.index(bytes.len());
            bytes[at] = value;
            bytes
        });
    }
}

#[test]
fn a_root_that_is_no_directory_is_refused() {
    for (permissions, path, part) in [
        (FILE, &b"/srv"[..], "no directory"),
        (DIRECTORY, b"srv", "where it lies"),
    ] {
        let name = [
            &1_u32.to_be_bytes()[..],
            &string(path),
            &string(b""),
            &[0; 4],
        ]
        .concat();
        let why = refused(move |request| match request.kind {
            kind::REALPATH => Answer::Bytes(packet(kind::NAME, request.id, &name)),
            kind::STAT => Answer::Bytes(packet(kind::ATTRS, request.id, &stat(permissions, 0))),
            _ => usual(request).unwrap_or(Answer::Silence),
        });
        assert!(why.contains(part), "{why}");
    }
}
