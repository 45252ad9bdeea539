//! Processes that a measured command leaves behind. They would disturb the next
//! iteration, and none may outlive the trial.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::{Errno, read};
use rustix::path::DecInt;
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, wait};
use rustix::thread::{NanosleepRelativeResult, nanosleep};
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Longest wait for killed processes, in seconds. One in a system call that
/// cannot be interrupted takes as long as that call.
const END_PATIENCE_S: i64 = 5;

const END_POLL: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 1_000_000,
};

/// Makes this process the parent of all that descends from it and loses its own
/// (PR_SET_CHILD_SUBREAPER of prctl(2)), so that a process does not get away by
/// being forked twice, or by a session of its own.
pub fn adopt_orphans() {
    // It cannot fail on a kernel since 3.4; on another only the process group
    // is ended.
    let _ = set_child_subreaper(Some(getpid()));
}

/// Ends every process that descends from this one, but for orphans from before
/// [`adopt_orphans`]. Call it only where no child is waited for.
///
/// The children are killed, theirs become ours, and so on until there is none.
/// It allocates nothing and calls nothing but system calls, since it must serve
/// a signal handler, too (signal-safety(7)).
pub fn end_all() {
    end(kill_children);
}

/// Kills by `kill` whatever is left until there is no child, and waits for them.
pub fn end(kill: fn()) {
    let deadline_s = clock_gettime(ClockId::Monotonic).tv_sec + END_PATIENCE_S;
    loop {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => break,
                // There is no child any more.
                Err(_) => return,
            }
        }
        kill();
        if clock_gettime(ClockId::Monotonic).tv_sec > deadline_s {
            return;
        }
        if let NanosleepRelativeResult::Err(_) = nanosleep(&END_POLL) {
            return;
        }
    }
}

/// Sends SIGKILL to the children of the main thread, which proc(5) lists. It starts
/// all of them, and to it orphans go (find_new_reaper in kernel/exit.c).
fn kill_children() {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let below =
        |directory: BorrowedFd<'_>, name: &CStr| openat(directory, name, flags, Mode::empty());
    // By parts, since a path of them would have to be allocated.
    let list = below(CWD, c"/proc/self/task")
        .and_then(|tasks| below(tasks.as_fd(), DecInt::new(getpid().as_raw_pid()).as_c_str()))
        .and_then(|task| below(task.as_fd(), c"children"));
    let Ok(list) = list else {
        return;
    };
    let mut numbers = Numbers::default();
    let mut chunk = [0; 1024];
    loop {
        match read(&list, &mut chunk) {
            Ok(0) => return,
            Ok(count) => numbers.take(&chunk[..count], |pid| {
                if let Some(pid) = Pid::from_raw(pid) {
                    let _ = kill_process(pid, Signal::KILL);
                }
            }),
            Err(Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

/// Numbers with spaces between and after them, which come in pieces.
#[derive(Default)]
struct Numbers {
    begun: i32,
}

impl Numbers {
    fn take(&mut self, text: &[u8], mut each: impl FnMut(i32)) {
        for byte in text {
            match byte {
                b'0'..=b'9' => {
                    let digit = i32::from(byte - b'0');
                    self.begun = self.begun.saturating_mul(10).saturating_add(digit);
                }
                _ if self.begun > 0 => each(std::mem::take(&mut self.begun)),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_may_be_cut_anywhere() {
        let text = b"1 23 4567 ";
        for cut in 0..text.len() {
            let (mut numbers, mut found) = (Numbers::default(), Vec::new());
            numbers.take(&text[..cut], |number| found.push(number));
            numbers.take(&text[cut..], |number| found.push(number));
            assert_eq!(found, [1, 23, 4567], "cut at {cut}");
        }
    }
}
