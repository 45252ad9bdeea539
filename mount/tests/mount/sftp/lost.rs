//! Connections that end at a chosen moment, and the connections that follow.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use toll_mount::sftp::{Sftp, Transport};
use toll_mount::source::{Error, OpenFlags};

use crate::sftp::common::{READ_WRITE, attributes, open, remove, rename, rename_new};
use crate::sftp::scripted::{
    self, Answer, FILE, Request, Told, greeting, kind, options, stat, string, transport,
};

/// A server with files of given lengths, which all its sessions share.
#[derive(Default)]
struct World {
    files: BTreeMap<Vec<u8>, u64>,
    /// The kind of request at which the session ends, before the request is done.
    ends_at: Option<u8>,
    opened: Vec<Vec<u8>>,
}

impl World {
    fn add(&mut self, name: &str, bytes: u64) {
        self.files.insert(name.into(), bytes);
    }
}

type Shared = Arc<Mutex<World>>;

const POSIX_RENAME: &str = "posix-rename@openssh.com";

fn answer(world: &Shared, request: &Request) -> Option<Answer> {
    let mut world = world.lock().unwrap();
    if world.ends_at == Some(request.kind) {
        world.ends_at = None;
        return Some(Answer::End(Vec::new()));
    }
    let [mut path, mut to] = request.strings();
    let mut kind = request.kind;
    if kind == kind::EXTENDED && path == POSIX_RENAME.as_bytes() {
        [_, path, to] = request.strings();
        kind = kind::RENAME;
    }
    let done = |is_done: bool| request.status(if is_done { 0 } else { 2 });
    match kind {
        kind::INIT => {
            let extensions = [POSIX_RENAME, "1", "fsync@openssh.com", "1"];
            Some(Answer::Bytes(greeting(&extensions)))
        }
        kind::REALPATH | kind::STAT => None,
        kind::OPEN if world.files.contains_key(&path) => {
            world.opened.push(path);
            request.answer(kind::HANDLE, &string(b"h"))
        }
        kind::LSTAT if world.files.contains_key(&path) => {
            request.answer(kind::ATTRS, &stat(FILE, world.files[&path]))
        }
        kind::OPEN | kind::LSTAT => done(false),
        kind::FSTAT => request.answer(kind::ATTRS, &stat(FILE, 1)),
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
        _ => done(true),
    }
}

fn connect(world: &Shared) -> Transport {
    let world = Arc::clone(world);
    transport(move |request| answer(&world, request))
}

/// A source whose server is connected again by `again`.
fn source_with(
    world: &Shared,
    again: impl Fn() -> Result<Transport, String> + Send + Sync + 'static,
) -> (Sftp, Told) {
    let (options, found) = options(PATIENCE_CALL);
    let source = scripted::connect(connect(world), again, &options);
    (source.unwrap(), found)
}

/// A source whose server has the files `f` and `g`, and can always be connected again.
fn source() -> (Sftp, Shared) {
    let world = Shared::default();
    world.lock().unwrap().add("/srv/f", 1);
    world.lock().unwrap().add("/srv/g", 1);
    let again = Arc::clone(&world);
    let (source, _) = source_with(&world, move || Ok(connect(&again)));
    (source, world)
}

fn end_at(world: &Shared, kind: u8) {
    world.lock().unwrap().ends_at = Some(kind);
}

/// Loses the connection by looking at a file that is not one of the test's.
fn lose(source: &Sftp, world: &Shared) {
    end_at(world, kind::LSTAT);
    assert_eq!(attributes(source, "g"), Err(Error::Lost));
}

const PATIENCE_CALL: Duration = Duration::from_secs(2);

#[test]
fn an_open_file_is_opened_again_without_being_made_or_emptied() {
    let (source, world) = source();
    let truncate = true;
    let flags = OpenFlags {
        truncate,
        ..READ_WRITE
    };
    let file = open(&source, "f", flags).unwrap();
    end_at(&world, kind::WRITE);
    assert_eq!(file.write_at(b"1", 0), Err(Error::Lost));
    let opened = || world.lock().unwrap().opened.len();
    let before = opened();
    assert_eq!(file.write_at(b"1", 0), Ok(()));
    assert_eq!(opened(), before + 1);
    world.lock().unwrap().files.remove(&b"/srv/f"[..]);
    end_at(&world, kind::WRITE);
    assert_eq!(file.write_at(b"1", 0), Err(Error::Lost));
    // The file is gone, and stays so.
    assert_eq!(file.write_at(b"1", 0), Err(Error::Lost));
    assert!(!world.lock().unwrap().files.contains_key(&b"/srv/f"[..]));
}

#[test]
fn open_files_follow_their_names_and_those_of_their_directories() {
    let (source, world) = source();
    for name in ["/srv/d/f", "/srv/d/e/g", "/srv/d.x"] {
        world.lock().unwrap().add(name, 1);
    }
    let files = ["d/f", "d/e/g", "d.x"].map(|name| open(&source, name, OpenFlags::READ).unwrap());
    let opened_again = || {
        lose(&source, &world);
        world.lock().unwrap().opened.clear();
        for file in &files {
            file.attributes().unwrap();
        }
        let opened = world.lock().unwrap().opened.clone();
        opened
            .into_iter()
            .map(|name| String::from_utf8(name).unwrap())
            .collect::<Vec<_>>()
    };
    rename_new(&source, "d", "n").unwrap();
    assert_eq!(opened_again(), ["/srv/n/f", "/srv/n/e/g", "/srv/d.x"]);
    rename_new(&source, "n/f", "h").unwrap();
    assert_eq!(opened_again(), ["/srv/h", "/srv/n/e/g", "/srv/d.x"]);
}

#[test]
fn a_file_that_is_removed_or_replaced_has_no_path_any_more() {
    let (source, world) = source();
    world.lock().unwrap().add("/srv/h", 1);
    let open = |name| open(&source, name, OpenFlags::READ).unwrap();
    let (removed, replaced, kept) = (open("f"), open("g"), open("h"));
    remove(&source, "f").unwrap();
    rename(&source, "h", "g").unwrap();
    world.lock().unwrap().add("/srv/f", 1);
    end_at(&world, kind::LSTAT);
    assert_eq!(attributes(&source, "f"), Err(Error::Lost));
    assert_eq!(removed.attributes(), Err(Error::Lost));
    assert_eq!(replaced.attributes(), Err(Error::Lost));
    kept.attributes().unwrap();
    assert_eq!(world.lock().unwrap().opened.last().unwrap(), b"/srv/g");
}

#[test]
fn a_file_that_may_be_another_one_stays_lost() {
    let change: [fn(&Sftp, &Shared); 3] = [
        // The file is removed, and another one is created under its name.
        |source, world| {
            remove(source, "f").unwrap();
            world.lock().unwrap().add("/srv/f", 1);
        },
        // Somebody else changes the file.
        |_, world| {
            world.lock().unwrap().add("/srv/f", 2);
        },
        // The file is renamed by a request that may or may not have been done.
        |source, world| {
            end_at(world, kind::RENAME);
            assert_eq!(rename_new(source, "f", "h"), Err(Error::Lost));
        },
    ];
    for (number, change) in change.into_iter().enumerate() {
        let (source, world) = source();
        let file = open(&source, "f", OpenFlags::READ).unwrap();
        change(&source, &world);
        end_at(&world, kind::LSTAT);
        let _ = attributes(&source, "g");
        assert_eq!(file.attributes(), Err(Error::Lost), "{number}");
        assert_eq!(file.attributes(), Err(Error::Lost), "{number}");
    }
}

#[test]
fn a_sync_never_says_that_what_an_earlier_session_took_is_safe() {
    let (source, world) = source();
    let file = open(&source, "f", OpenFlags::WRITE).unwrap();
    file.write_at(b"1", 0).unwrap();
    lose(&source, &world);
    // The server may have lost the data with the session.
    assert_eq!(file.sync(), Err(Error::Lost));
    assert_eq!(file.sync(), Ok(()));
    file.write_at(b"1", 0).unwrap();
    assert_eq!(file.sync(), Ok(()));
    lose(&source, &world);
    assert_eq!(file.sync(), Ok(()));
}

#[test]
fn many_callers_connect_once() {
    let world = Shared::default();
    world.lock().unwrap().add("/srv/f", 1);
    let connected = Arc::new(AtomicUsize::new(0));
    let (again, count) = (Arc::clone(&world), Arc::clone(&connected));
    let (source, _) = source_with(&world, move || {
        count.fetch_add(1, Ordering::Relaxed);
        Ok(connect(&again))
    });
    end_at(&world, kind::LSTAT);
    assert_eq!(attributes(&source, "f"), Err(Error::Lost));
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| attributes(&source, "f").unwrap());
        }
    });
    assert_eq!(connected.load(Ordering::Relaxed), 1);
}

#[test]
fn a_server_that_cannot_be_reached_is_tried_with_pauses_and_each_call_ends() {
    let world = Shared::default();
    let tries = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&tries);
    let (source, found) = source_with(&world, move || {
        count.fetch_add(1, Ordering::Relaxed);
        Err("it is away".to_owned())
    });
    end_at(&world, kind::LSTAT);
    for _ in 0..3 {
        assert_eq!(attributes(&source, "f"), Err(Error::Lost));
    }
    // Pauses of 0.1, 0.2, 0.4, 0.8 s fit into the 2 s of a call; the next do not.
    let tries = tries.load(Ordering::Relaxed);
    assert!((1..=8).contains(&tries), "{tries}");
    let found = found.lock().unwrap();
    let failures = found.iter().filter(|line| line.contains("it is away"));
    assert_eq!(failures.count(), 1, "{found:?}");
}

#[test]
fn a_file_is_closed_at_the_server_though_nothing_else_is_asked() {
    let world = Shared::default();
    world.lock().unwrap().add("/srv/f", 1);
    let (sender, closed) = std::sync::mpsc::channel();
    let seen = Arc::clone(&world);
    let first = transport(move |request| {
        if request.kind == kind::CLOSE {
            sender.send(()).unwrap();
        }
        answer(&seen, request)
    });
    let (options, _) = options(Duration::ZERO);
    let again = || Err("it is gone".to_owned());
    let source = scripted::connect(first, again, &options).unwrap();
    drop(open(&source, "f", OpenFlags::READ).unwrap());
    let is_closed = closed.recv_timeout(Duration::from_secs(60));
    assert!(is_closed.is_ok(), "no CLOSE arrived");
    drop(source);
}
