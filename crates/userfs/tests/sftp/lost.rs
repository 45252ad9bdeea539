//! Connections that end at a chosen moment, and those that follow.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use userfs::sftp::{Sftp, Transport};
use userfs::source::{Creation, Error, OpenFlags, RenameFlags, Source};

use crate::common::open;
use crate::scripted::{
    self, Answer, FILE, Request, Told, kind, options, packet, stat, status, string, transport,
    usual,
};

/// A server with files of a length, all sessions of which see the same.
#[derive(Default)]
struct World {
    /// Lengths by path.
    files: BTreeMap<Vec<u8>, u64>,
    /// The kind of request at which the session ends, before it is done.
    ends_at: Option<u8>,
    opened: Vec<Vec<u8>>,
}

type Shared = Arc<Mutex<World>>;

const EXTENDED: u8 = 200;
const POSIX_RENAME: &[u8] = b"posix-rename@openssh.com";

fn answer(world: &Shared, request: &Request) -> Answer {
    let mut world = world.lock().unwrap();
    if world.ends_at == Some(request.kind) {
        world.ends_at = None;
        return Answer::End(Vec::new());
    }
    let id = request.id;
    let [mut path, mut to] = request.strings();
    let mut kind = request.kind;
    if kind == EXTENDED && path == POSIX_RENAME {
        [_, path, to] = request.strings();
        kind = kind::RENAME;
    }
    let done = |is_done: bool| status(id, if is_done { 0 } else { 2 });
    Answer::Bytes(match kind {
        kind::INIT => {
            let words = [POSIX_RENAME, b"1", b"fsync@openssh.com", b"1"].map(string);
            packet(kind::VERSION, 3, &words.concat())
        }
        kind::OPEN if world.files.contains_key(&path) => {
            world.opened.push(path);
            packet(kind::HANDLE, id, &string(b"h"))
        }
        kind::LSTAT if world.files.contains_key(&path) => {
            packet(kind::ATTRS, id, &stat(FILE, world.files[&path]))
        }
        kind::OPEN | kind::LSTAT => status(id, 2),
        kind::FSTAT => packet(kind::ATTRS, id, &stat(FILE, 1)),
        kind::REMOVE => done(world.files.remove(&path).is_some()),
        kind::RENAME => {
            let below = [&path[..], b"/"].concat();
            let is_moved = |name: &&Vec<u8>| **name == path || name.starts_with(&below);
            let moved: Vec<_> = world.files.keys().filter(is_moved).cloned().collect();
            for name in &moved {
                let bytes = world.files.remove(name).unwrap();
                let new = [&to, &name[path.len()..]].concat();
                world.files.insert(new, bytes);
            }
            done(!moved.is_empty())
        }
        _ => return usual(request).unwrap_or(Answer::Bytes(status(id, 0))),
    })
}

fn connect(world: &Shared) -> Transport {
    let world = Arc::clone(world);
    transport(move |request| answer(&world, request))
}

/// A source of a server that is reached again by `again`.
fn source_with(
    world: &Shared,
    again: impl Fn() -> Result<Transport, String> + Send + Sync + 'static,
) -> (Sftp, Told) {
    let (options, told) = options(PATIENCE_CALL);
    let source = scripted::connect(connect(world), again, &options);
    (source.unwrap(), told)
}

/// A source of a server with the files `f` and `g`, which can always be
/// reached again.
fn source() -> (Sftp, Shared) {
    let world = Shared::default();
    for name in [&b"/srv/f"[..], b"/srv/g"] {
        world.lock().unwrap().files.insert(name.to_vec(), 1);
    }
    let again = Arc::clone(&world);
    let (source, _) = source_with(&world, move || Ok(connect(&again)));
    (source, world)
}

fn end_at(world: &Shared, kind: u8) {
    world.lock().unwrap().ends_at = Some(kind);
}

fn opened(world: &Shared) -> usize {
    world.lock().unwrap().opened.len()
}

const PATH: &str = "f";

/// How long a call waits for a connection.
const PATIENCE_CALL: Duration = Duration::from_secs(2);

#[test]
fn a_call_in_flight_is_lost_and_the_next_one_connects_again() {
    let (source, world) = source();
    end_at(&world, kind::LSTAT);
    assert_eq!(source.attributes(Path::new(PATH)), Err(Error::Lost));
    assert_eq!(source.attributes(Path::new(PATH)).unwrap().size_bytes, 1);
}

#[test]
fn an_open_file_is_opened_again_without_being_made_or_emptied() {
    let (source, world) = source();
    let flags = OpenFlags {
        read: true,
        truncate: true,
        create: Some(Creation {
            mode: 0o644,
            owner: None,
        }),
        ..OpenFlags::WRITE
    };
    let file = open(&source, PATH, flags).unwrap();
    end_at(&world, kind::WRITE);
    assert_eq!(file.write_at(b"1", 0), Err(Error::Lost));
    let before = opened(&world);
    assert_eq!(file.write_at(b"1", 0), Ok(()));
    assert_eq!(opened(&world), before + 1);
    world.lock().unwrap().files.remove(&b"/srv/f"[..]);
    end_at(&world, kind::WRITE);
    assert_eq!(file.write_at(b"1", 0), Err(Error::Lost));
    // It is gone, and stays so.
    assert_eq!(file.write_at(b"1", 0), Err(Error::Lost));
    assert!(!world.lock().unwrap().files.contains_key(&b"/srv/f"[..]));
}

#[test]
fn a_file_is_opened_again_under_the_name_that_it_has_now() {
    let (source, world) = source();
    let file = open(&source, PATH, OpenFlags::READ).unwrap();
    source
        .rename(Path::new(PATH), Path::new("h"), RenameFlags::NOREPLACE)
        .unwrap();
    end_at(&world, kind::LSTAT);
    assert_eq!(source.attributes(Path::new("g")), Err(Error::Lost));
    file.attributes().unwrap();
    assert_eq!(world.lock().unwrap().opened.last().unwrap(), b"/srv/h");
}

#[test]
fn open_files_follow_their_names_and_those_of_their_directories() {
    let (source, world) = source();
    for name in [&b"/srv/d/f"[..], b"/srv/d/e/g", b"/srv/d.x"] {
        world.lock().unwrap().files.insert(name.to_vec(), 1);
    }
    let files = ["d/f", "d/e/g", "d.x"].map(|name| open(&source, name, OpenFlags::READ).unwrap());
    let opened_again = || {
        end_at(&world, kind::LSTAT);
        assert_eq!(source.attributes(Path::new("g")), Err(Error::Lost));
        world.lock().unwrap().opened.clear();
        for file in &files {
            file.attributes().unwrap();
        }
        world.lock().unwrap().opened.clone()
    };
    let rename = |from, to| {
        let (from, to) = (Path::new(from), Path::new(to));
        source.rename(from, to, RenameFlags::NOREPLACE).unwrap();
    };
    rename("d", "n");
    assert_eq!(
        opened_again(),
        [&b"/srv/n/f"[..], b"/srv/n/e/g", b"/srv/d.x"]
    );
    rename("n/f", "h");
    assert_eq!(opened_again(), [&b"/srv/h"[..], b"/srv/n/e/g", b"/srv/d.x"]);
}

#[test]
fn a_file_that_is_removed_or_replaced_has_no_path_any_more() {
    let (source, world) = source();
    world.lock().unwrap().files.insert(b"/srv/h".to_vec(), 1);
    let open = |name| open(&source, name, OpenFlags::READ).unwrap();
    let (removed, replaced, kept) = (open("f"), open("g"), open("h"));
    source.remove(Path::new("f"), false).unwrap();
    source
        .rename(Path::new("h"), Path::new("g"), RenameFlags::empty())
        .unwrap();
    world.lock().unwrap().files.insert(b"/srv/f".to_vec(), 1);
    end_at(&world, kind::LSTAT);
    assert_eq!(source.attributes(Path::new("f")), Err(Error::Lost));
    assert_eq!(removed.attributes(), Err(Error::Lost));
    assert_eq!(replaced.attributes(), Err(Error::Lost));
    kept.attributes().unwrap();
    assert_eq!(world.lock().unwrap().opened.last().unwrap(), b"/srv/g");
}

#[test]
fn a_file_that_may_be_another_one_stays_lost() {
    let lose: [fn(&Sftp, &Shared); 3] = [
        // Removed, and another one made under the name.
        |source, world| {
            source.remove(Path::new(PATH), false).unwrap();
            world.lock().unwrap().files.insert(b"/srv/f".to_vec(), 1);
        },
        // Changed by somebody else.
        |_, world| {
            world.lock().unwrap().files.insert(b"/srv/f".to_vec(), 2);
        },
        // Given another name by a rename of which it is not known whether it was done.
        |source, world| {
            end_at(world, kind::RENAME);
            let done = source.rename(Path::new(PATH), Path::new("h"), RenameFlags::NOREPLACE);
            assert_eq!(done, Err(Error::Lost));
        },
    ];
    for (number, lose) in lose.into_iter().enumerate() {
        let (source, world) = source();
        let file = open(&source, PATH, OpenFlags::READ).unwrap();
        lose(&source, &world);
        end_at(&world, kind::LSTAT);
        let _ = source.attributes(Path::new("g"));
        assert_eq!(file.attributes(), Err(Error::Lost), "{number}");
        assert_eq!(file.attributes(), Err(Error::Lost), "{number}");
    }
}

#[test]
fn a_sync_never_says_that_what_an_earlier_session_took_is_safe() {
    let (source, world) = source();
    let file = open(&source, PATH, OpenFlags::WRITE).unwrap();
    file.write_at(b"1", 0).unwrap();
    end_at(&world, kind::LSTAT);
    assert_eq!(source.attributes(Path::new("g")), Err(Error::Lost));
    // The server may have lost it with the session.
    assert_eq!(file.sync(), Err(Error::Lost));
    assert_eq!(file.sync(), Ok(()));
    file.write_at(b"1", 0).unwrap();
    assert_eq!(file.sync(), Ok(()));
    end_at(&world, kind::LSTAT);
    assert_eq!(source.attributes(Path::new("g")), Err(Error::Lost));
    assert_eq!(file.sync(), Ok(()));
}

#[test]
fn many_callers_connect_once() {
    let world = Shared::default();
    world.lock().unwrap().files.insert(b"/srv/f".to_vec(), 1);
    let connected = Arc::new(AtomicUsize::new(0));
    let (again, count) = (Arc::clone(&world), Arc::clone(&connected));
    let (source, _) = source_with(&world, move || {
        count.fetch_add(1, Ordering::Relaxed);
        Ok(connect(&again))
    });
    end_at(&world, kind::LSTAT);
    assert_eq!(source.attributes(Path::new(PATH)), Err(Error::Lost));
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| source.attributes(Path::new(PATH)).unwrap());
        }
    });
    assert_eq!(connected.load(Ordering::Relaxed), 1);
}

#[test]
fn a_server_that_cannot_be_reached_is_tried_with_pauses_and_each_call_ends() {
    let world = Shared::default();
    let tries = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&tries);
    let (source, told) = source_with(&world, move || {
        count.fetch_add(1, Ordering::Relaxed);
        Err("it is away".to_owned())
    });
    end_at(&world, kind::LSTAT);
    for _ in 0..3 {
        assert_eq!(source.attributes(Path::new(PATH)), Err(Error::Lost));
    }
    // Pauses of 0.1, 0.2, 0.4, 0.8 s fit the 2 s of a call; the next do not.
    let tries = tries.load(Ordering::Relaxed);
    assert!((1..=8).contains(&tries), "{tries}");
    let told = told.lock().unwrap();
    let failures = told
        .iter()
        .filter(|line| line.contains("it is away"))
        .count();
    assert_eq!(failures, 1, "{told:?}");
}

#[test]
fn a_file_is_closed_at_the_server_though_nothing_else_is_asked() {
    let world = Shared::default();
    world.lock().unwrap().files.insert(b"/srv/f".to_vec(), 1);
    let (sender, closed) = std::sync::mpsc::channel();
    let seen = Arc::clone(&world);
    let first = transport(move |request| {
        if request.kind == kind::CLOSE {
            sender.send(()).unwrap();
        }
        usual(request).unwrap_or_else(|| answer(&seen, request))
    });
    let (options, _) = options(Duration::ZERO);
    let again = || Err("it is gone".to_owned());
    let source = scripted::connect(first, again, &options).unwrap();
    drop(open(&source, "f", OpenFlags::READ).unwrap());
    let is_closed = closed.recv_timeout(Duration::from_secs(60));
    assert!(is_closed.is_ok(), "no CLOSE came");
    drop(source);
}
