//! Servers that fall silent or go away, and connections that cannot be made: every call
//! ends, and says why.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use toll_mount::sftp::{Options, Sftp};
use toll_mount::source::{Error, OpenFlags};
use toll_sshd::{Settings, Subsystem};

use crate::sftp::common::{Bench, READ_WRITE, attributes, open};

const PIECE: usize = 1 << 20;

#[test]
fn a_server_that_stops_answering_is_given_up_and_used_again_when_it_goes_on() {
    // By this client after the timeout, or by ssh, which probes the server.
    for (answer_s, alive) in [(6, None), (60, Some("ServerAliveInterval=4"))] {
        let Some(bench) = Bench::start() else { return };
        let source = bench.connect_with(|options| {
            options.answer_timeout = Duration::from_secs(answer_s);
            let alive = alive.into_iter().chain(["ServerAliveCountMax=1"]);
            options.settings.extend(alive.map(str::to_owned));
        });
        let source = source.unwrap();
        let file = open(&source, "f", READ_WRITE).unwrap();
        let signal = |signal| {
            for session in bench.server.sessions() {
                let process = Pid::from_raw(session.cast_signed()).unwrap();
                // A session may have ended.
                let _ = kill_process(process, signal);
            }
        };
        signal(Signal::STOP);
        // More than all buffers on the way hold.
        let written = file.write_at(&vec![1; 64 * PIECE], 0);
        let read = attributes(&source, "");
        signal(Signal::CONT);
        assert_eq!(written, Err(Error::Lost));
        assert!(read.is_ok() || read == Err(Error::Lost));
        file.write_at(&vec![2; PIECE], 0).unwrap();
    }
}

#[test]
fn a_server_that_is_away_gives_errors_and_is_used_again_when_it_is_back() {
    let Some(mut bench) = Bench::start() else {
        return;
    };
    std::fs::write(bench.path("f"), "content").unwrap();
    let timeout = Duration::from_millis(300);
    let source = bench.connect_with(|options| options.reconnect_timeout = timeout);
    let source = source.unwrap();
    let file = open(&source, "f", OpenFlags::READ).unwrap();
    bench.server.kill();
    for _ in 0..3 {
        assert_eq!(attributes(&source, "f"), Err(Error::Lost));
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

/// Panics unless connecting fails with an error that contains all these parts.
#[track_caller]
fn check_refused(bench: &Bench, change: impl FnOnce(&mut Options), parts: &[&str]) {
    let why = bench
        .connect_with(change)
        .err()
        .expect("it does not connect");
    for part in parts {
        assert!(why.contains(part), "{part}: {why}");
    }
    assert!(!why.contains('\x1b'), "{why}");
}

#[test]
fn why_there_is_no_connection_is_told_in_words() {
    let Some(bench) = Bench::start() else { return };
    let denied = ["cannot connect to 127.0.0.1", "Permission denied"];
    check_refused(&bench, |options| options.identity = None, &denied);
    let unknown = "UserKnownHostsFile=/dev/null".to_owned();
    let forget = |options: &mut Options| options.settings.insert(0, unknown);
    check_refused(&bench, forget, &["Host key verification failed"]);
    check_refused(&bench, |options| options.port = Some(1), &["refused"]);
    let away = |options: &mut Options| options.program = "/nonexistent/ssh".into();
    check_refused(&bench, away, &["install openssh-client"]);
    let address = bench.address(&bench.path("nothing"));
    let why = Sftp::connect(&address, &bench.options()).err().unwrap();
    let is_told = why.contains("No such file") && why.contains("give an existing directory");
    assert!(is_told, "{why}");
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
    check_refused(&bench, |_| {}, &["text before SFTP began", "Welcome"]);
}

#[test]
fn a_server_without_sftp_or_without_a_word_is_told() {
    let Some(bench) = with_command("/bin/false") else {
        return;
    };
    check_refused(&bench, |_| {}, &["the connection ended"]);
    let Some(bench) = with_command("sleep 1000") else {
        return;
    };
    let hurry = |options: &mut Options| options.connect_timeout = Duration::from_secs(2);
    check_refused(&bench, hurry, &["did not answer for 2 s"]);
}

/// Returns the ids of processes with a word in their command line.
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
    let (_, after_name) = stat.rsplit_once(')').unwrap();
    assert_eq!(after_name.split_whitespace().nth(2), Some(&*found[0]));
    let file = open(&source, "f", READ_WRITE).unwrap();
    drop(source);
    file.write_at(b"1", 0).unwrap();
    drop(file);
    assert_eq!(processes_with(&word), Vec::<String>::new());
}
