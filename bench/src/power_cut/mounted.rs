//! File operations through a mount of `toll-mount`.
#![expect(
    clippy::disallowed_methods,
    reason = "the mount is a program of its own"
)]

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Longest wait for the mount, which is slow under emulation on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// File for the standard error of the mount.
const LOG: &str = "/tmpfs/mount.log";

/// Mounts `source` on `at` with a cache mode, and then carries out operations below `at`.
pub fn serve(mode: &str, source: &Path, at: &Path, is_without_fsync: bool) -> io::Result<()> {
    let own = std::env::current_exe()?;
    let program = own.with_file_name("toll-mount");
    let mut command = if is_without_fsync {
        let mut command = Command::new(&own);
        command.arg("without-fsync").arg(&program);
        command
    } else {
        Command::new(&program)
    };
    fs::create_dir_all(at)?;
    let before = fs::metadata(at)?.dev();
    let mut daemon = command
        .args(["--foreground", "--cache", mode])
        // As on a user's machine, the copies are on the disk whose power is cut. So the journal
        // of temporary files survives a restart.
        .args(["--copies", "/work/copies"])
        .args([source, at])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(File::create(LOG)?)
        .spawn()?;
    let deadline = Instant::now() + PATIENCE;
    while fs::metadata(at)?.dev() == before {
        if daemon.try_wait()?.is_some() || Instant::now() > deadline {
            let said = fs::read_to_string(LOG).unwrap_or_default();
            return Err(io::Error::other(format!("cannot mount: {said}")));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    super::work::serve(at)
}
