//! What an init owes the processes of its guest.

use std::time::{Duration, Instant};

use rustix::process::{Signal, WaitOptions, wait};

/// Longest wait for killed processes. One in a system call that cannot be
/// interrupted takes as long as that call.
const END_PATIENCE: Duration = Duration::from_secs(5);

const END_POLL: Duration = Duration::from_millis(1);

/// Ends every process but the init itself, and those of the kernel, and clears
/// away what is left of them. Call it only where no child is waited for.
///
/// Whatever runs here descends from the init, and becomes its child when its own
/// parent goes: where there is no child, there is no process.
pub fn end_all() {
    let deadline = Instant::now() + END_PATIENCE;
    while Instant::now() < deadline {
        kill_all();
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(_) => return,
            }
        }
        std::thread::sleep(END_POLL);
    }
}

fn kill_all() {
    // SAFETY: kill(2) takes plain integers; -1 names every process but process
    // 1, which the caller is.
    unsafe { libc::kill(-1, Signal::KILL.as_raw()) };
}
