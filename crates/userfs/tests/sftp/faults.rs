//! Servers that are killed, connections that are cut or go silent: every
//! call ends, nothing wrong is read, and nothing that was acknowledged is
//! gone.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use toll_sshd::{Settings, Subsystem};
use userfs::sftp::Sftp;
use userfs::source::{Error, Finish, OpenFlags, RenameFlags, Result, SetAttributes, Source};

use crate::common::{Bench, READ_WRITE, both_servers, open, pattern};
use crate::proxy::Proxy;

const PIECE: usize = 1 << 20;

/// Kills the server's sessions again and again while something runs, until
/// that has seen some lost calls.
fn while_killed(bench: &Bench, run: impl FnOnce(&AtomicUsize, &AtomicBool) + Send) {
    let (lost, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let runner = scope.spawn(|| {
            run(&lost, &is_over);
        });
        for _ in 0..1000 {
            if lost.load(Ordering::Relaxed) >= 5 || runner.is_finished() {
                break;
            }
            // Long enough for a connection to be made.
            std::thread::sleep(Duration::from_millis(700));
            bench.server.kill_sessions();
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert!(
        lost.load(Ordering::Relaxed) >= 5,
        "no session was killed in mid-call"
    );
}

#[test]
fn what_is_read_from_a_server_that_is_killed_in_between_is_right_or_an_error() {
    for settings in both_servers() {
        let Some(bench) = Bench::with(&settings) else {
            return;
        };
        let content = pattern(24 * PIECE, 1);
        std::fs::write(bench.path("f"), &content).unwrap();
        let source = bench.connect();
        let file = open(&source, "f", OpenFlags::READ).unwrap();
        while_killed(&bench, |lost, is_over| {
            let mut buffer = vec![0; PIECE];
            for number in (0..24).cycle() {
                let offset = number * PIECE;
                match file.read_at(&mut buffer, offset as u64) {
                    Ok(read) => {
                        assert_eq!(read, PIECE);
                        assert!(buffer == content[offset..offset + PIECE]);
                        if is_over.load(Ordering::Relaxed) {
                            return;
                        }
                    }
                    Err(Error::Lost) => {
                        lost.fetch_add(1, Ordering::Relaxed);
                    }
                    Err(error) => panic!("{error}"),
                }
            }
        });
    }
}

#[test]
fn what_a_sync_acknowledged_is_on_the_server_however_often_it_is_killed() {
    for settings in both_servers() {
        let Some(bench) = Bench::with(&settings) else {
            return;
        };
        let source = bench.connect();
        let file = open(&source, "f", READ_WRITE).unwrap();
        let path = bench.path("f");
        while_killed(&bench, |lost, is_over| {
            for round in 0.. {
                let content = pattern(8 * PIECE, round);
                let write = || -> Result<()> {
                    for (number, piece) in content.chunks(PIECE).enumerate() {
                        file.write_at(piece, (number * PIECE) as u64)?;
                    }
                    file.sync()
                };
                while let Err(error) = write() {
                    assert_eq!(error, Error::Lost);
                    lost.fetch_add(1, Ordering::Relaxed);
                }
                assert!(std::fs::read(&path).unwrap() == content);
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
            }
        });
    }
}

/// Replaces `f` by a content, as a write-back does.
fn replace(source: &Sftp, content: &[u8], temporary: &str) -> Result<()> {
    let flags = OpenFlags {
        exclusive: true,
        ..READ_WRITE
    };
    let file = open(source, temporary, flags)?;
    file.finish(&Finish {
        bytes: content,
        offset: 0,
        changes: &SetAttributes::default(),
        is_sync: true,
        looks_at_name: false,
    })?;
    source.rename(Path::new(temporary), Path::new("f"), RenameFlags::empty())
}

#[test]
fn a_file_that_is_replaced_is_the_old_or_the_new_one_whenever_the_server_is_killed() {
    let Some(bench) = Bench::start() else { return };
    let source = bench.connect();
    let path = bench.path("f");
    let mut before = pattern(6 * PIECE, 0);
    replace(&source, &before, ".t").unwrap();
    while_killed(&bench, |lost, is_over| {
        for round in 1.. {
            let content = pattern(6 * PIECE + usize::try_from(round).unwrap(), round);
            let mut attempt = 0;
            while let Err(error) = replace(&source, &content, &format!(".t{round}.{attempt}")) {
                assert_eq!(error, Error::Lost);
                lost.fetch_add(1, Ordering::Relaxed);
                attempt += 1;
                let found = std::fs::read(&path).unwrap();
                assert!(found == before || found == content);
            }
            assert!(std::fs::read(&path).unwrap() == content);
            before = content;
            if is_over.load(Ordering::Relaxed) {
                return;
            }
        }
    });
}

#[test]
fn a_connection_that_is_cut_is_made_again() {
    let Some(bench) = Bench::start() else { return };
    let proxy = Proxy::to(bench.server.port());
    let source = connect_by(&bench, &proxy, &[]);
    for _ in 0..3 {
        source.attributes(Path::new("")).unwrap();
        proxy.cut();
        // The end may be seen before the next call, or by it.
        let seen = source.attributes(Path::new(""));
        assert!(seen.is_ok() || seen == Err(Error::Lost));
        source.attributes(Path::new("")).unwrap();
    }
    let told = bench.told.lock().unwrap();
    assert!(
        told.iter().any(|line| line.contains("connection lost")),
        "{told:?}"
    );
    assert!(
        told.iter().any(|line| line.contains("connected again")),
        "{told:?}"
    );
}

/// A source through a proxy, which has the server's host key.
fn connect_by(bench: &Bench, proxy: &Proxy, settings: &[&str]) -> Sftp {
    let mut options = bench.options();
    options.port = Some(proxy.port());
    let alias = format!("HostKeyAlias=[127.0.0.1]:{}", bench.server.port());
    options.settings.push(alias);
    options
        .settings
        .extend(settings.iter().map(|setting| (*setting).to_owned()));
    Sftp::connect(&bench.address(bench.directory.path()), &options).unwrap()
}

#[test]
fn a_connection_on_which_nothing_comes_any_more_is_found_by_ssh() {
    let Some(bench) = Bench::start() else { return };
    let proxy = Proxy::to(bench.server.port());
    let alive = ["ServerAliveInterval=4", "ServerAliveCountMax=1"];
    let source = connect_by(&bench, &proxy, &alive);
    proxy.stall(true);
    assert_eq!(source.attributes(Path::new("")), Err(Error::Lost));
    proxy.stall(false);
    source.attributes(Path::new("")).unwrap();
}

#[test]
fn a_server_that_stops_answering_is_given_up_after_the_time_that_was_set() {
    let Some(bench) = Bench::start() else { return };
    let mut options = bench.options();
    options.answer_timeout = Duration::from_secs(6);
    let address = bench.address(bench.directory.path());
    let source = Sftp::connect(&address, &options).unwrap();
    let file = open(&source, "f", READ_WRITE).unwrap();
    let stop = |signal| {
        for session in bench.server.sessions() {
            let process = rustix::process::Pid::from_raw(i32::try_from(session).unwrap());
            // One of them may have ended.
            let _ = rustix::process::kill_process(process.unwrap(), signal);
        }
    };
    stop(rustix::process::Signal::STOP);
    // More than all buffers on the way hold.
    let written = file.write_at(&vec![1; 64 * PIECE], 0);
    let read = source.attributes(Path::new(""));
    stop(rustix::process::Signal::CONT);
    assert_eq!(written, Err(Error::Lost));
    assert!(read.is_ok() || read == Err(Error::Lost));
    file.write_at(&vec![2; PIECE], 0).unwrap();
}

#[test]
fn a_server_that_is_away_gives_errors_and_is_used_again_when_it_is_back() {
    let Some(mut bench) = Bench::start() else {
        return;
    };
    std::fs::write(bench.path("f"), "content").unwrap();
    let mut options = bench.options();
    options.reconnect_patience = Duration::from_millis(300);
    let address = bench.address(bench.directory.path());
    let source = Sftp::connect(&address, &options).unwrap();
    let file = open(&source, "f", OpenFlags::READ).unwrap();
    bench.server.kill();
    for _ in 0..3 {
        assert_eq!(source.attributes(Path::new("f")), Err(Error::Lost));
        assert_eq!(file.read_at(&mut [0; 7], 0), Err(Error::Lost));
    }
    bench.server.start_again().unwrap();
    let mut buffer = [0; 7];
    // The pause after the last attempt may not be over.
    let is_back = (0..3000).any(|_| {
        let read = file.read_at(&mut buffer, 0);
        read == Ok(7) || {
            std::thread::sleep(Duration::from_millis(100));
            false
        }
    });
    assert!(is_back);
    assert_eq!(&buffer, b"content");
}

/// Why there is no source.
fn refused(bench: &Bench, change: impl FnOnce(&mut userfs::sftp::Options)) -> String {
    let mut options = bench.options();
    change(&mut options);
    let address = bench.address(bench.directory.path());
    match Sftp::connect(&address, &options) {
        Ok(_) => panic!("it connected"),
        Err(why) => why,
    }
}

#[test]
fn why_there_is_no_connection_is_told_in_words() {
    let Some(bench) = Bench::start() else { return };
    let why = refused(&bench, |options| options.identity = None);
    assert!(why.contains("cannot connect to 127.0.0.1"), "{why}");
    assert!(why.contains("Permission denied"), "{why}");
    let why = refused(&bench, |options| {
        let other = "UserKnownHostsFile=/dev/null".to_owned();
        options.settings.insert(0, other);
    });
    assert!(why.contains("Host key verification failed"), "{why}");
    let why = refused(&bench, |options| options.port = Some(1));
    assert!(why.contains("refused"), "{why}");
    let why = refused(&bench, |options| {
        options.program = "/nonexistent/ssh".into()
    });
    assert!(why.contains("install openssh-client"), "{why}");
    let address = bench.address(&bench.path("nothing"));
    let why = Sftp::connect(&address, &bench.options()).err().unwrap();
    assert!(
        why.contains("No such file") && why.contains("name a directory"),
        "{why}"
    );
}

fn with_command(command: &str) -> Option<Bench> {
    Bench::with(&Settings {
        subsystem: Subsystem::Command(command.to_owned()),
        ..Settings::default()
    })
}

#[test]
fn a_shell_that_prints_is_told_in_words() {
    let shell = "printf 'Welcome \\033[2J to the server\\n'; exec /usr/lib/openssh/sftp-server";
    let Some(bench) = with_command(shell) else {
        return;
    };
    let why = refused(&bench, |_| {});
    assert!(why.contains("text before SFTP began"), "{why}");
    assert!(why.contains("Welcome") && !why.contains('\x1b'), "{why}");
}

#[test]
fn a_server_without_sftp_or_without_a_word_is_told() {
    let Some(bench) = with_command("/bin/false") else {
        return;
    };
    let why = refused(&bench, |_| {});
    assert!(why.contains("the connection ended"), "{why}");
    let Some(bench) = with_command("sleep 1000") else {
        return;
    };
    let why = refused(&bench, |options| {
        options.connect_timeout = Duration::from_secs(2)
    });
    assert!(why.contains("did not answer for 2 s"), "{why}");
}

/// The numbers of processes with a word in their command line.
fn processes_with(word: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if String::from_utf8_lossy(&line).contains(word) {
            found.push(entry.file_name().into_string().unwrap());
        }
    }
    found
}

#[test]
fn ssh_has_a_process_group_of_its_own_and_ends_with_the_source() {
    let Some(bench) = Bench::start() else { return };
    let source = bench.connect();
    let word = bench.server.identity().display().to_string();
    let found = processes_with(&word);
    assert_eq!(found.len(), 1, "{found:?}");
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", found[0])).unwrap();
    let group = stat
        .rsplit(')')
        .next()
        .unwrap()
        .split_whitespace()
        .nth(2)
        .unwrap();
    assert_eq!(group, found[0]);
    let file = open(&source, "f", READ_WRITE).unwrap();
    drop(source);
    file.write_at(b"1", 0).unwrap();
    drop(file);
    assert_eq!(processes_with(&word), Vec::<String>::new());
}
