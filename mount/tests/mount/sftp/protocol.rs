//! Requests to a server, byte for byte, and the interpretation of its answers.

use std::fs::File;
use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use toll_mount::sftp::{Address, Options, Sftp};
use toll_mount::source::{Content, Error, OpenFlags, SetAttributes, Source};

use crate::sftp::common::{
    Bench, READ_WRITE, assert_errno, at, attributes, link, open, set, set_mode,
};
use crate::sftp::scripted::{
    Answer, FILE, Request, connect, greeting, kind, name, options, source, stat, string, transport,
};

type Asked = Arc<Mutex<Vec<(u8, Vec<u8>)>>>;

/// A server that answers by a function, else as usual, else "failure"; and the requests
/// that it gets after its root is found.
fn recording(mut answer: impl FnMut(&Request) -> Option<Answer> + Send + 'static) -> (Sftp, Asked) {
    let asked = Asked::default();
    let record = Arc::clone(&asked);
    let refuse = move |request: &Request| match request.kind {
        kind::INIT | kind::REALPATH | kind::STAT => None,
        asked => {
            let fields = (asked, request.fields.clone());
            record.lock().unwrap().push(fields);
            request.status(4)
        }
    };
    let (source, _) = source(move |request| answer(request).or_else(|| refuse(request)));
    (source, asked)
}

#[test]
fn paths_lie_below_the_root() {
    for (root, path, remote, parent) in [
        ("/srv/data", "", "/srv/data", "/srv"),
        ("/srv/data", "a/b", "/srv/data/a/b", "/srv/data/a"),
        ("/srv", "", "/srv", "/"),
        ("/", "a", "/a", "/"),
        ("/", "", "/", "/"),
    ] {
        let (source, asked) = recording(move |request| match request.kind {
            kind::REALPATH => request.answer(kind::NAME, &name(root.as_bytes(), &[0; 4])),
            _ => None,
        });
        // After a refusal the source looks at the path, and at its parent directory.
        attributes(&source, path).unwrap_err();
        let looked = |path: &str| (kind::LSTAT, string(path.as_bytes()));
        let expected = [looked(remote), looked(remote), looked(parent)];
        assert_eq!(*asked.lock().unwrap(), expected, "{path}");
    }
}

fn one_file(request: &Request) -> Option<Answer> {
    match request.kind {
        kind::OPEN => request.answer(kind::HANDLE, &string(b"h")),
        kind::LSTAT => request.answer(kind::ATTRS, &stat(FILE, 1)),
        _ => None,
    }
}

#[test]
fn attributes_are_changed_in_the_order_that_keeps_set_user_id_safe() {
    let asked = |flags: u32, fields: &[u32]| {
        let fields = fields.iter().flat_map(|field| field.to_be_bytes());
        let bytes = flags.to_be_bytes().into_iter().chain(fields);
        (kind::SETSTAT, [string(b"/srv/f"), bytes.collect()].concat())
    };
    let owner_and_mode = SetAttributes {
        mode: Some(0o4755),
        uid: Some(7),
        ..SetAttributes::default()
    };
    let one_time = SetAttributes {
        mtime: at(50),
        ..SetAttributes::default()
    };
    let both_steps = vec![asked(2, &[7, u32::MAX]), asked(4, &[0o4755])];
    for (changes, expected) in [
        (owner_and_mode, both_steps),
        // The times of the file are 3 and 4.
        (one_time, vec![asked(8, &[3, 50])]),
        (SetAttributes::default(), vec![]),
    ] {
        let sets = Asked::default();
        let record = Arc::clone(&sets);
        let (source, _) = recording(move |request| {
            if request.kind != kind::SETSTAT {
                return one_file(request);
            }
            let mut record = record.lock().unwrap();
            record.push((request.kind, request.fields.clone()));
            request.status(0)
        });
        set(&source, "f", changes).unwrap();
        assert_eq!(*sets.lock().unwrap(), expected);
    }
}

#[test]
fn times_outside_of_the_protocols_are_the_nearest_of_it() {
    for (seconds, sent) in [(-3, 0), (1_700_000_000, 1_700_000_000), (1 << 40, u32::MAX)] {
        let changes = SetAttributes {
            atime: at(seconds),
            mtime: at(seconds),
            ..SetAttributes::default()
        };
        // An LSTAT comes first, because this server would follow a symbolic link.
        let (source, asked) = recording(|_| None);
        set(&source, "f", changes).unwrap_err();
        assert_eq!(asked.lock().unwrap()[0].0, kind::LSTAT);
        let (source, asked) = recording(one_file);
        set(&source, "f", changes).unwrap_err();
        let fields = [8_u32, sent, sent].map(u32::to_be_bytes).concat();
        assert!(asked.lock().unwrap()[0].1.ends_with(&fields), "{seconds}");
    }
}

#[test]
fn attributes_may_have_further_fields_but_not_endless_ones() {
    let answered = |fields: Vec<u8>| {
        let (source, _) = source(move |request| match request.kind {
            kind::LSTAT => request.answer(kind::ATTRS, &fields),
            _ => None,
        });
        attributes(&source, "f")
    };
    let mut extended = stat(FILE | 0o022, 5);
    extended[0] = 0x80;
    let further = [&1_u32.to_be_bytes()[..], &string(b"k"), &string(b"v")].concat();
    let found = answered([&extended[..], &further].concat()).unwrap();
    let found = (found.mode, found.size_bytes, found.mtime.tv_sec);
    assert_eq!(found, (0o666, 5, 4));
    let endless = [&extended[..], &[255; 4]].concat();
    assert_eq!(answered(endless), Err(Error::Lost));
    // A length that no file can have, and attributes without a file type.
    assert_errno(answered(stat(FILE, u64::MAX)), libc::EIO);
    assert_errno(answered(stat(0o644, 5)), libc::EIO);
    assert_errno(answered(vec![0; 4]), libc::EIO);
}

#[test]
fn extensions_count_in_the_version_that_is_known() {
    let (source, asked) = recording(|request| {
        let known = ["statvfs@openssh.com", "2"];
        let unknown = ["hardlink@openssh.com", "7", "unheard-of", "1"];
        let greet = || Answer::Bytes(greeting(&[&known[..], &unknown].concat()));
        (request.kind == kind::INIT).then(greet)
    });
    assert_errno(link(&source, "f", "g"), libc::EPERM);
    assert_eq!(*asked.lock().unwrap(), []);
    source.space().err().unwrap();
    let (kind, fields) = asked.lock().unwrap()[0].clone();
    assert!(kind == kind::EXTENDED && fields.starts_with(&string(b"statvfs@openssh.com")));
}

#[test]
fn limits_choose_among_sound_sizes() {
    for (limit, bytes) in [
        (0, 128 << 10),
        (1, 32 << 10),
        (33 << 10, 32 << 10),
        (65 << 10, 64 << 10),
        (261_120, 128 << 10),
        (u64::MAX, 128 << 10),
    ] {
        let lengths = Arc::new(Mutex::new(Vec::new()));
        let record = Arc::clone(&lengths);
        let (source, _) = recording(move |request| match request.kind {
            kind::INIT => Some(Answer::Bytes(greeting(&["limits@openssh.com", "1"]))),
            kind::EXTENDED => {
                let limits = [0, limit, limit, 0].map(u64::to_be_bytes).concat();
                request.answer(kind::EXTENDED_REPLY, &limits)
            }
            kind::READ => {
                record.lock().unwrap().push(request.fields[13..].to_vec());
                request.status(1)
            }
            _ => one_file(request),
        });
        let file = open(&source, "f", OpenFlags::READ).unwrap();
        assert_eq!(file.read_at(&mut vec![0; 256 << 10], 0), Ok(0));
        let first = lengths.lock().unwrap()[0].clone();
        assert_eq!(first, u32::to_be_bytes(bytes), "{limit}");
    }
}

#[test]
fn text_of_a_server_cannot_command_a_terminal() {
    let long = "x".repeat(1000);
    let cut = format!("{}…", &long[..200]);
    for (text, shown) in [
        ("plain \u{e9}\n", "plain é"),
        ("it's \"quoted\" \\", "it's \"quoted\" \\"),
        ("\u{1b}]0;title\u{7}", "\\u{1b}]0;title\\u{7}"),
        ("a\u{202e}b\u{9b}", "a\\u{202e}b\\u{9b}"),
        (&long, &cut),
    ] {
        let (options, _) = options(Duration::ZERO);
        let sent = text.as_bytes().to_vec();
        let server = transport(move |_| Some(Answer::End(sent.clone())));
        let refused = connect(server, || Err(String::new()), &options);
        let why = refused.err().unwrap();
        assert!(why.contains(&format!("(\"{shown}\")")), "{why}");
    }
}

#[test]
fn the_end_reaches_all_who_wait_and_those_who_come_after() {
    let mut waiting = 0;
    let (source, actual) = source(move |request| match request.kind {
        kind::LSTAT if waiting == 2 => Some(Answer::End(Vec::new())),
        kind::LSTAT => {
            waiting += 1;
            None
        }
        _ => None,
    });
    let look = || assert_eq!(attributes(&source, "f"), Err(Error::Lost));
    std::thread::scope(|scope| (0..3).for_each(|_| drop(scope.spawn(look))));
    look();
    let actual = actual.lock().unwrap();
    assert!(actual[0].contains("the connection ended"), "{actual:?}");
}

#[test]
fn a_part_of_a_file_arrives_with_zeros_behind_its_end() {
    let Some(bench) = Bench::start() else { return };
    let source = bench.connect();
    let content: Vec<u8> = (0..300_000_u32).flat_map(u32::to_le_bytes).collect();
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&content).unwrap();
    // The kernel passes on no pages of a file that is not stored.
    let unstored = File::open("/proc/version").unwrap();
    let version = std::fs::read("/proc/version").unwrap();
    for (file, content) in [(file, content), (unstored, version)] {
        let mut expected = content[5..].to_vec();
        expected.resize(2 << 20, 0);
        let to = open(&source, "f", READ_WRITE).unwrap();
        to.write_later(Content::File(&file, 5, 2 << 20), 0).unwrap();
        to.sync().unwrap();
        assert!(bench.read("f") == expected);
    }
}

#[test]
fn a_write_that_nobody_reads_ends() {
    let (mut options, actual) = options(Duration::ZERO);
    options.answer_timeout = Duration::from_secs(3);
    let server = transport(|request| match request.kind {
        kind::WRITE => loop {
            std::thread::park();
        },
        _ => one_file(request),
    });
    let source = connect(server, || Err("it is gone".to_owned()), &options).unwrap();
    let file = open(&source, "f", OpenFlags::WRITE).unwrap();
    assert_eq!(file.write_at(&vec![0; 1 << 20], 0), Err(Error::Lost));
    attributes(&source, "f").unwrap_err();
    let actual = actual.lock().unwrap();
    let why = "cannot send to the server: timed out";
    assert!(actual[0].contains(why), "{actual:?}");
}

fn arguments(address: &str, options: Options) -> Vec<String> {
    let place = tempfile::tempdir().unwrap();
    let (program, found) = (place.path().join("ssh"), place.path().join("found"));
    let script = format!("#!/bin/sh\nprintf '%s\\n' \"$@\" > {}\n", found.display());
    std::fs::write(&program, script).unwrap();
    set_mode(&program, 0o755);
    let options = Options { program, ..options };
    let refused = Sftp::connect(&Address::parse(address).unwrap(), &options);
    let why = refused.err().unwrap();
    assert!(why.contains("cannot connect to host"), "{why}");
    let found = std::fs::read_to_string(found).unwrap();
    found.lines().map(str::to_owned).collect()
}

#[test]
fn ssh_is_asked_for_the_subsystem_and_never_for_a_password() {
    let found = arguments("ann@host:dir", Options::default());
    assert!(found.contains(&"BatchMode=yes".to_owned()), "{found:?}");
    assert!(found.ends_with(&["-l", "ann", "-s", "--", "host", "sftp"].map(str::to_owned)));
}

#[test]
fn settings_of_the_user_go_before_those_of_the_program() {
    let options = Options {
        port: Some(2222),
        settings: vec!["ServerAliveInterval=3".to_owned()],
        ..Options::default()
    };
    let found = arguments("host:", options);
    let at = |word: &str| found.iter().position(|found| found == word);
    assert!(at("ServerAliveInterval=3") < at("ServerAliveInterval=15"));
    assert_eq!(found[at("-p").unwrap() + 1], "2222");
}
