//! Servers that break the protocol: nothing they send is trusted, nothing hangs, nothing
//! panics.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proptest::prelude::*;

use toll_mount::sftp::Sftp;
use toll_mount::source::{Attributes, Entry, Error, OpenFlags, Result, Source};

use crate::sftp::common::{assert_errno, attributes, list, open};
use crate::sftp::scripted::{
    Answer, DIRECTORY, FILE, Request, connect, greeting, kind, name, options, packet, source, stat,
    status, string, transport,
};

fn look(source: &Sftp) -> Result<Attributes> {
    attributes(source, "x")
}

fn refused(answer: impl FnMut(&Request) -> Option<Answer> + Send + 'static) -> String {
    let (options, _) = options(Duration::ZERO);
    let again = || Err(String::new());
    let refused = connect(transport(answer), again, &options);
    refused.err().expect("there is no source")
}

#[test]
fn a_greeting_that_is_none_is_told_in_words() {
    let text = refused(|_| Some(Answer::End(b"\x1b[31mWelcome to \xff!\r\n".to_vec())));
    assert!(text.contains("text before SFTP began"), "{text}");
    assert!(text.contains("Welcome to"), "{text}");
    assert!(
        !text.contains('\x1b') && text.contains("start-up files"),
        "{text}"
    );
    let half = packet(kind::VERSION, 3, &string(b"half"));
    let endless = vec![0xff, 0xff, 0xff, 0xff, kind::VERSION];
    for (greeting, part) in [
        (packet(kind::VERSION, 6, &[]), "version 6"),
        (half, "ends within a field"),
        (status(0, 0), "before SFTP began"),
        (Vec::new(), "the connection ended"),
        (greeting(&[])[..6].to_vec(), "the connection ended"),
        (endless, "before SFTP began"),
    ] {
        let why = refused(move |_| Some(Answer::End(greeting.clone())));
        assert!(why.contains(part), "{why}: {part}");
    }
}

#[test]
fn a_server_that_never_greets_or_never_answers_is_given_up() {
    let (mut options, actual) = options(Duration::ZERO);
    let again = || Err("still gone".to_owned());
    options.connect_timeout = Duration::from_millis(20);
    let silent = connect(transport(|_| Some(Answer::Silence)), again, &options);
    assert!(silent.err().unwrap().contains("did not answer"));
    // Long enough for a busy machine to find the root.
    options.connect_timeout = Duration::from_secs(60);
    options.answer_timeout = Duration::from_secs(3);
    let source = connect(transport(|_| None), again, &options).unwrap();
    assert_eq!(look(&source), Err(Error::Lost));
    assert_eq!(look(&source), Err(Error::Lost));
    let actual = actual.lock().unwrap().join("\n");
    assert!(actual.contains("did not answer"), "{actual}");
}

/// Returns replies to an LSTAT that end the connection.
fn wrong_answers(id: u32) -> Vec<(&'static str, Vec<u8>)> {
    let attrs = |id| packet(kind::ATTRS, id, &stat(FILE, 5));
    let with_length = |bytes: u32| [&bytes.to_be_bytes(), &attrs(id)[4..]].concat();
    let half = packet(kind::ATTRS, id, &stat(FILE, 5)[..9]);
    vec![
        ("another id", attrs(id + 1)),
        ("an answer to the greeting", attrs(0)),
        ("two answers", attrs(id).repeat(3)),
        ("another kind", packet(kind::HANDLE, id, &string(b"h"))),
        ("an unheard-of kind", packet(99, id, &stat(FILE, 5))),
        ("a success", status(id, 0)),
        ("half of the attributes", half),
        ("no fields", packet(kind::ATTRS, id, &[])),
        ("a status without a code", packet(kind::STATUS, id, &[0])),
        ("an endless packet", with_length(u32::MAX)),
        ("a packet that is too long", with_length(2 << 20)),
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
        let (source, _) = source(move |request| {
            let wrong = || Answer::Bytes(wrong_answers(request.id)[number].1.clone());
            (request.kind == kind::LSTAT).then(wrong)
        });
        // The first of two replies is right.
        let first = look(&source);
        assert!(
            name == "two answers" || first == Err(Error::Lost),
            "{name}: {first:?}"
        );
        assert_eq!(look(&source), Err(Error::Lost), "{name}");
    }
}

/// Lists a directory of which the server sends one name and announces `count`.
fn list_of(listed: &[u8], count: u32) -> Result<Vec<Entry>> {
    list_of_all(&[listed], count).0
}

/// Lists a directory of which the server sends several names and announces `count`. Also
/// returns the messages, which must contain no control characters.
fn list_of_all(listed: &[&[u8]], count: u32) -> (Result<Vec<Entry>>, String) {
    let each = listed
        .iter()
        .map(|listed| name(listed, &stat(FILE, 1))[4..].to_vec());
    let mut names = [vec![0; 4], each.collect::<Vec<_>>().concat()].concat();
    names[..4].copy_from_slice(&count.to_be_bytes());
    let mut reads = 0;
    let (source, actual) = source(move |request| match request.kind {
        kind::OPENDIR => request.answer(kind::HANDLE, &string(b"h")),
        kind::READDIR if reads == 0 => {
            reads += 1;
            request.answer(kind::NAME, &names)
        }
        kind::READDIR => request.status(1),
        kind::CLOSE => request.status(0),
        _ => None,
    });
    let listed = list(&source, "");
    for line in actual.lock().unwrap().iter() {
        assert!(!line.contains(|c: char| c.is_control()), "{line}");
    }
    let actual = actual.lock().unwrap().join("\n");
    (listed, actual)
}

#[test]
fn a_name_that_cannot_be_is_never_passed_on() {
    assert_eq!(list_of(b"good", 1).unwrap()[0].name, "good");
    assert_eq!(list_of(b"..", 1), Ok(Vec::new()));
    assert_eq!(list_of(b"none", 0), Ok(Vec::new()));
    let bad = [
        &b"a/b"[..],
        b"../../etc/passwd",
        b"/",
        b"",
        b"a\0b",
        b"\x1b/",
    ];
    for name in bad {
        assert_errno(list_of(name, 1), libc::EIO);
    }
    assert_eq!(list_of(b"good", 2), Err(Error::Lost));
    assert_eq!(list_of(b"good", u32::MAX), Err(Error::Lost));
}

#[test]
fn a_directory_is_listed_without_the_names_that_are_too_long() {
    let too_long = [b'n'; 256];
    let (listed, actual) = list_of_all(&[b"one", &too_long, &too_long[1..]], 3);
    let names: Vec<_> = listed
        .unwrap()
        .into_iter()
        .map(|entry| entry.name)
        .collect();
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(actual.contains("names of more than 255 bytes"), "{actual}");
    assert!(actual.contains("1 left out"), "{actual}");
}

/// A server whose directories have no end, with as many names in a packet as are allowed.
fn endless() -> (Sftp, crate::sftp::scripted::Told) {
    let one = name(b"12345678", &stat(FILE, 1))[4..].to_vec();
    let count = (1 << 20) / one.len() - 1;
    let names = [
        &u32::try_from(count).unwrap().to_be_bytes()[..],
        &one.repeat(count),
    ]
    .concat();
    source(move |request| match request.kind {
        kind::OPENDIR => request.answer(kind::HANDLE, &string(b"h")),
        kind::READDIR => request.answer(kind::NAME, &names),
        _ => None,
    })
}

#[test]
#[ignore = "not a test: the process of the next test"]
fn list_without_an_end() {
    let (source, actual) = endless();
    assert_errno(list(&source, ""), libc::EOVERFLOW);
    let actual = actual.lock().unwrap().join("\n");
    assert!(actual.contains("more than 1000000 names"), "{actual}");
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find(|line| line.starts_with("VmHWM"));
    crate::sftp::common::tell(peak.unwrap());
}

#[test]
fn a_directory_without_an_end_is_refused_and_takes_a_bounded_memory() {
    let arguments = [
        "--exact",
        "sftp::hostile::list_without_an_end",
        "--ignored",
        "--nocapture",
    ];
    let output = crate::sftp::common::again(&arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let peak = said.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    let peak_kib: u64 = peak.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(peak_kib < 500 << 10, "{peak}");
}

#[test]
fn an_answer_is_no_longer_than_its_kind_can_be() {
    for (answer, bytes) in [
        (kind::STATUS, 70 << 10),
        (kind::DATA, 200 << 10),
        (kind::NAME, 2 << 20),
    ] {
        let (source, actual) = source(move |request| {
            // A valid answer, except for the bytes after it.
            let code = [&2_u32.to_be_bytes()[..], &vec![0; bytes]].concat();
            let wrong = || Answer::Bytes(packet(answer, request.id, &code));
            (request.kind == kind::LSTAT).then(wrong)
        });
        assert_eq!(look(&source), Err(Error::Lost), "{answer}");
        assert_eq!(look(&source), Err(Error::Lost), "{answer}");
        let actual = actual.lock().unwrap().join("\n");
        assert!(actual.contains("sent a packet of"), "{actual}");
    }
}

#[test]
fn a_target_or_a_root_that_no_kernel_takes_is_refused() {
    let (source, _) = source(|request| match request.kind {
        kind::READLINK => request.answer(kind::NAME, &name(&[b'x'; 4096], &[0; 4])),
        _ => None,
    });
    assert_errno(source.read_link(Path::new("l")), libc::EIO);
    let root = [&b"/"[..], &[b'x'; 300]].concat();
    let why = refused(move |request| match request.kind {
        kind::REALPATH => request.answer(kind::NAME, &name(&root, &[0; 4])),
        _ => None,
    });
    assert!(
        why.contains("does not return a valid absolute path"),
        "{why}"
    );
}

/// Reads 10 bytes of a file; returns the result and the buffer.
fn read_of(
    mut data: impl FnMut(&Request) -> Option<Answer> + Send + 'static,
) -> (Result<usize>, [u8; 10]) {
    let (source, _) = source(move |request| match request.kind {
        kind::OPEN => request.answer(kind::HANDLE, &string(b"h")),
        kind::LSTAT => request.answer(kind::ATTRS, &stat(FILE, 10)),
        kind::READ => data(request),
        _ => None,
    });
    let file = open(&source, "f", OpenFlags::READ).unwrap();
    let mut buffer = [0; 10];
    (file.read_at(&mut buffer, 0), buffer)
}

#[test]
fn data_is_neither_more_than_was_asked_for_nor_nothing() {
    let with =
        |bytes: &'static [u8]| read_of(move |request| request.answer(kind::DATA, &string(bytes))).0;
    assert_eq!(with(b"0123456789"), Ok(10));
    assert_eq!(with(b"0123456789+"), Err(Error::Lost));
    assert_eq!(with(b""), Err(Error::Lost));
    assert_eq!(read_of(|request| request.status(1)).0, Ok(0));
    assert_eq!(read_of(|request| request.status(0)).0, Err(Error::Lost));
}

#[test]
fn a_short_answer_is_asked_on_for() {
    let mut at = 0;
    let (read, buffer) = read_of(move |request| {
        at += 3;
        match at {
            ..=9 => request.answer(kind::DATA, &string(b"abc")),
            _ => request.status(1),
        }
    });
    assert_eq!((read, &buffer), (Ok(9), b"abcabcabc\0"));
}

#[test]
fn a_handle_that_is_too_long_is_refused() {
    let (source, _) = source(|request| match request.kind {
        kind::OPENDIR => request.answer(kind::HANDLE, &string(&[1; 257])),
        _ => None,
    });
    assert_eq!(list(&source, ""), Err(Error::Lost));
}

#[test]
fn the_beginning_of_a_file_that_comes_by_another_handle_is_not_taken() {
    let mut files = 0_u8;
    let guesses = Arc::new(Mutex::new(Vec::new()));
    let asked = Arc::clone(&guesses);
    let (source, _) = source(move |request| match request.kind {
        kind::OPEN => {
            // No handle is used twice.
            files += 1;
            request.answer(kind::HANDLE, &string(&[files]))
        }
        kind::LSTAT => request.answer(kind::ATTRS, &stat(FILE, 10)),
        kind::READ => {
            let [handle] = request.strings();
            let answer = request.answer(kind::DATA, &string(&handle));
            asked.lock().unwrap().push(handle);
            answer
        }
        _ => None,
    });
    let begin = true;
    for _ in 0..3 {
        let found = source.open(
            Path::new("f"),
            OpenFlags {
                begin,
                ..OpenFlags::READ
            },
        );
        assert_eq!(found.unwrap().begin, [] as [u8; 0]);
    }
    drop(source);
    let guesses = guesses.lock().unwrap();
    assert!(guesses.contains(&vec![1]), "{guesses:?}");
}

/// The answer of a server that keeps to the protocol.
fn sound(request: &Request) -> Option<Answer> {
    match request.kind {
        kind::OPEN | kind::OPENDIR => request.answer(kind::HANDLE, &string(b"h")),
        kind::LSTAT | kind::FSTAT => request.answer(kind::ATTRS, &stat(FILE, 9)),
        kind::READ => request.answer(kind::DATA, &string(b"123456789")),
        kind::READLINK => request.answer(kind::NAME, &name(b"name", &stat(FILE, 9))),
        kind::READDIR => request.status(1),
        kind::INIT | kind::REALPATH | kind::STAT => None,
        _ => request.status(0),
    }
}

/// Makes the calls of a mount to a server whose answers are changed by `change` from some
/// point on. The results do not matter: the test is that every call returns.
fn survive(changed_from: usize, change: impl Fn(Vec<u8>) -> Vec<u8> + Send + 'static) {
    let mut answers = 0;
    let (source, _) = source(move |request| {
        answers += 1;
        match sound(request) {
            // The first three answers find the root.
            Some(Answer::Bytes(bytes)) if answers > 3 + changed_from => {
                Some(Answer::End(change(bytes)))
            }
            answer => answer,
        }
    });
    let _ = attributes(&source, "f");
    let _ = list(&source, "f");
    let _ = source.read_link(Path::new("f"));
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
fn a_root_that_is_no_directory_or_nowhere_is_refused() {
    for (permissions, root, part) in [
        (FILE, &b"/srv"[..], "not a directory"),
        (DIRECTORY, b"srv", "does not return a valid absolute path"),
        (DIRECTORY, b"/a\0b", "does not return a valid absolute path"),
    ] {
        let why = refused(move |request| match request.kind {
            kind::REALPATH => request.answer(kind::NAME, &name(root, &[0; 4])),
            kind::STAT => request.answer(kind::ATTRS, &stat(permissions, 0)),
            _ => None,
        });
        assert!(why.contains(part), "{why}");
    }
}
