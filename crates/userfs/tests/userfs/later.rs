//! Writes without a copy that are answered before their server has them: what
//! reads them finds them, and what became of them is told.

use std::fs::{self, File};
use std::io::Result;
use std::os::fd::IntoRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::common::{Mounted, Setting, can_mount_remote};

const TRIES: usize = 600;
const PAUSE: Duration = Duration::from_millis(50);

const DIRECT: Setting = Setting::remote("none", "direct");

fn close(file: File) -> Result<()> {
    // SAFETY: the descriptor is this function's own.
    match unsafe { libc::close(file.into_raw_fd()) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// Stops what serves the mount's connection.
fn stop_server(mounted: &Mounted) {
    let sessions = mounted.server.as_ref().unwrap().sessions();
    assert!(!sessions.is_empty());
    for process in sessions {
        let process = Pid::from_raw(process.cast_signed()).unwrap();
        kill_process(process, Signal::STOP).unwrap();
    }
}

/// A mount on whose file something was written that no server has answered
/// for, or will.
fn with_lost_write(test: impl Fn(&Mounted, File)) {
    if !can_mount_remote() {
        return;
    }
    let mounted = Mounted::new(&DIRECT);
    let file = File::create(mounted.path("f")).unwrap();
    file.write_all_at(b"here", 0).unwrap();
    file.sync_all().unwrap();
    stop_server(&mounted);
    // Returns though nobody is there to answer.
    file.write_all_at(&[1; 100_000], 4).unwrap();
    mounted.server.as_ref().unwrap().kill_sessions();
    test(&mounted, file);
    assert_eq!(fs::read(mounted.behind("f")).unwrap(), b"here");
    fs::write(mounted.path("f"), b"again").unwrap();
    assert_eq!(fs::read(mounted.behind("f")).unwrap(), b"again");
}

fn is_lost(outcome: Result<()>) {
    assert_eq!(outcome.unwrap_err().raw_os_error(), Some(libc::EIO));
}

#[test]
fn a_lost_write_is_told_to_each_close() {
    with_lost_write(|_, file| {
        is_lost(close(file.try_clone().unwrap()));
        is_lost(close(file));
    });
}

#[test]
fn a_lost_write_is_told_to_fsync() {
    with_lost_write(|_, file| {
        is_lost(file.sync_all());
        close(file).unwrap();
    });
}

#[test]
fn a_lost_write_is_told_to_the_next_write() {
    with_lost_write(|_, file| {
        // Until the end of the connection is seen, there is nothing to tell.
        let told = (0..TRIES).find_map(|_| {
            std::thread::sleep(PAUSE);
            file.write_all_at(b"here", 0).err()
        });
        is_lost(Err(told.expect("it is told")));
        close(file).unwrap();
    });
}

#[test]
fn a_full_disk_is_told_to_close_and_to_fsync() {
    if !can_mount_remote() {
        return;
    }
    let mounted = Mounted::new(&DIRECT);
    let small = mounted.behind("small");
    fs::create_dir(&small).unwrap();
    let flags = rustix::mount::MountFlags::empty();
    rustix::mount::mount("none", &small, "tmpfs", flags, c"size=1m").unwrap();
    fs::write(small.join("ballast"), vec![0; 1 << 20]).unwrap();
    let write = |name: &str| {
        let file = File::create(mounted.path(name)).unwrap();
        (file.write_all_at(&[1; 100_000], 0), file)
    };
    let (written, file) = write("small/f");
    let closed = close(file);
    let (written_too, file) = write("small/g");
    let synced = file.sync_all();
    drop((mounted, file));
    rustix::mount::unmount(&small, rustix::mount::UnmountFlags::DETACH).unwrap();
    for told in [written.and(closed), written_too.and(synced)] {
        assert_eq!(told.unwrap_err().raw_os_error(), Some(libc::ENOSPC));
    }
}

#[test]
fn what_was_written_is_seen_by_whatever_is_asked_next() {
    if !can_mount_remote() {
        return;
    }
    let mounted = Mounted::new(&DIRECT);
    let open = || File::options().read(true).write(true).clone();
    let one = open().create(true).open(mounted.path("f")).unwrap();
    let two = open().open(mounted.path("f")).unwrap();
    for round in 0..50_u8 {
        // Several requests, more than are in flight at a time in some rounds.
        let length = 1 + usize::from(round) * 60_000;
        let new = vec![round; length];
        let (writer, reader) = if round % 2 == 0 {
            (&one, &two)
        } else {
            (&two, &one)
        };
        writer.write_all_at(&new, 0).unwrap();
        let mut found = vec![0; length];
        match round % 4 {
            0 => reader.read_exact_at(&mut found, 0).unwrap(),
            1 => writer.read_exact_at(&mut found, 0).unwrap(),
            2 => found = fs::read(mounted.path("f")).unwrap(),
            _ => {
                assert_eq!(
                    fs::metadata(mounted.path("f")).unwrap().len(),
                    length as u64
                );
                fs::rename(mounted.path("f"), mounted.path("g")).unwrap();
                found = fs::read(mounted.behind("g")).unwrap();
                fs::rename(mounted.path("g"), mounted.path("f")).unwrap();
            }
        }
        assert!(found == new, "round {round}");
        reader.set_len(7).unwrap();
        let mut cut = new;
        cut.resize(7, 0);
        assert_eq!(fs::read(mounted.behind("f")).unwrap(), cut);
    }
}

#[test]
fn a_write_that_is_to_be_durable_is_at_the_server_when_it_returns() {
    if !can_mount_remote() {
        return;
    }
    let mounted = Mounted::new(&DIRECT);
    for flag in [libc::O_DSYNC, libc::O_SYNC] {
        let mut options = File::options();
        let file = options.create(true).write(true).custom_flags(flag);
        let file = file.open(mounted.path("f")).unwrap();
        for round in 0..20_u8 {
            let new = [round; 50_000];
            file.write_all_at(&new, 0).unwrap();
            assert!(fs::read(mounted.behind("f")).unwrap() == new);
        }
    }
}
