//! Writes without a copy that are acknowledged before their server has them: reads find
//! them, and their errors are reported.

use std::fs::{self, File};
use std::io::Result;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::mounts::common::{
    DIRECT, Mounted, Small, assert_errno, assert_same, close, content, each,
};

fn stop_server(mounted: &Mounted) {
    let sessions = mounted.server.as_ref().unwrap().sessions();
    assert!(!sessions.is_empty());
    for process in sessions {
        let process = Pid::from_raw(process.cast_signed()).unwrap();
        kill_process(process, Signal::STOP).unwrap();
    }
}

fn closed(file: File) -> Result<()> {
    Ok(close(file)?)
}

#[test]
fn a_lost_write_is_told_once_by_whatever_is_called_next() {
    let actual: [fn(File); 3] = [
        // Each close reports it.
        |file| {
            assert_errno(closed(file.try_clone().unwrap()), libc::EIO);
            assert_errno(closed(file), libc::EIO);
        },
        |file| {
            assert_errno(file.sync_all(), libc::EIO);
            close(file).unwrap();
        },
        |file| {
            // A write fails only once the end of the connection is seen.
            let mut last = Ok(());
            while last.is_ok() {
                std::thread::sleep(Duration::from_millis(50));
                last = file.write_all_at(b"here", 0);
            }
            assert_errno(last, libc::EIO);
            close(file).unwrap();
        },
    ];
    for actual in actual {
        each(&[DIRECT], |mounted| {
            let file = File::create(mounted.path("f")).unwrap();
            file.write_all_at(b"here", 0).unwrap();
            file.sync_all().unwrap();
            stop_server(mounted);
            // Returns although nobody is there to answer.
            file.write_all_at(&[1; 100_000], 4).unwrap();
            mounted.server.as_ref().unwrap().kill_sessions();
            actual(file);
            mounted.assert_behind("f", b"here");
            fs::write(mounted.path("f"), b"again").unwrap();
            mounted.assert_behind("f", b"again");
        });
    }
}

#[test]
fn a_full_disk_is_told_to_close_and_to_fsync() {
    each(&[DIRECT], |mounted| {
        let small = Small::new(&mounted.behind("small"), "size=1m").unwrap();
        fs::write(mounted.behind("small/ballast"), vec![0; 1 << 20]).unwrap();
        let write = |name: &str| {
            let file = File::create(mounted.path(name)).unwrap();
            (file.write_all_at(&[1; 100_000], 0), file)
        };
        let (written, file) = write("small/f");
        assert_errno(written.and(closed(file)), libc::ENOSPC);
        let (written, file) = write("small/g");
        assert_errno(written.and(file.sync_all()), libc::ENOSPC);
        drop(small);
    });
}

#[test]
fn what_was_written_is_seen_by_whatever_is_asked_next() {
    each(&[DIRECT], |mounted| {
        drop(File::create(mounted.path("f")).unwrap());
        let (one, two) = (mounted.open("f"), mounted.open("f"));
        // SFTP has no request for it.
        let allocated = rustix::fs::fallocate(&one, rustix::fs::FallocateFlags::empty(), 0, 10);
        assert_eq!(allocated, Err(rustix::io::Errno::OPNOTSUPP));
        for round in 0..50 {
            // Several requests; in some rounds more than may be in flight at a time.
            let length = 1 + round * 60_000;
            let new = content(round, length);
            let (writer, reader) = match round % 2 {
                0 => (&one, &two),
                _ => (&two, &one),
            };
            writer.write_all_at(&new, 0).unwrap();
            let mut found = vec![0; length];
            match round % 4 {
                0 => reader.read_exact_at(&mut found, 0).unwrap(),
                1 => writer.read_exact_at(&mut found, 0).unwrap(),
                2 => found = mounted.read("f"),
                _ => {
                    let size = fs::metadata(mounted.path("f")).unwrap().len();
                    assert_eq!(size, length as u64);
                    fs::rename(mounted.path("f"), mounted.path("g")).unwrap();
                    found = mounted.read_behind("g");
                    fs::rename(mounted.path("g"), mounted.path("f")).unwrap();
                }
            }
            assert_same(&found, &new, &format!("round {round}"));
            reader.set_len(7).unwrap();
            let mut cut = new;
            cut.resize(7, 0);
            mounted.assert_behind("f", cut);
        }
    });
}

#[test]
fn a_write_that_is_to_be_durable_is_at_the_server_when_it_returns() {
    each(&[DIRECT], |mounted| {
        for flag in [libc::O_DSYNC, libc::O_SYNC] {
            let mut options = File::options();
            let options = options.create(true).write(true).custom_flags(flag);
            let file = options.open(mounted.path("f")).unwrap();
            for round in 0..20_u8 {
                file.write_all_at(&[round; 50_000], 0).unwrap();
                mounted.assert_behind("f", [round; 50_000]);
            }
        }
    });
}
