//! Processes that a measured command leaves behind. They would disturb the next
//! iteration, and none may outlive the trial.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{CWD, Mode, OFlags, RawDir, openat};
use rustix::io::{Errno, read};
use rustix::path::DecInt;
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, wait};
use rustix::thread::{NanosleepRelativeResult, nanosleep};
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Longest wait for killed processes, in seconds. A process in an uninterruptible
/// system call ends only when that call does.
const END_PATIENCE_S: i64 = 5;

const END_POLL: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 1_000_000,
};

/// Makes this process adopt its orphaned descendants (PR_SET_CHILD_SUBREAPER of
/// prctl(2)), so that a process cannot escape by a double fork or a session of
/// its own.
pub fn adopt_orphans() {
    // This cannot fail since Linux 3.4. On an older kernel only the process
    // group is ended.
    let _ = set_child_subreaper(Some(getpid()));
}

/// Ends every descendant of this process, except orphans from before
/// [`adopt_orphans`]. Call it only while nothing else waits for a child.
///
/// Kills the children; their children become ours, and so on until none is left.
/// It allocates nothing and only makes system calls, since a signal handler uses
/// it too (signal-safety(7)).
pub fn end_all() {
    end(kill_children);
}

/// Calls `kill` and reaps children until none is left, for at most
/// `END_PATIENCE_S`.
pub fn end(kill: fn()) {
    let deadline_s = clock_gettime(ClockId::Monotonic).tv_sec + END_PATIENCE_S;
    loop {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => break,
                // No child is left.
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

/// Sends SIGKILL to the children of this process.
fn kill_children() {
    match open_list() {
        Ok(list) => kill_listed(&list),
        // The kernel was built without CONFIG_PROC_CHILDREN.
        Err(_) => kill_by_parent(),
    }
}

fn open_below(directory: impl AsFd, name: &CStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    openat(directory, name, flags, Mode::empty())
}

/// Opens the list of the main thread's children (proc(5)). That thread starts all of
/// them, and orphans go to it (find_new_reaper in kernel/exit.c).
fn open_list() -> Result<OwnedFd, Errno> {
    // Opened component by component: the whole path would have to be allocated.
    let tasks = open_below(CWD, c"/proc/self/task")?;
    let main = open_below(tasks, DecInt::new(getpid().as_raw_pid()).as_c_str())?;
    open_below(main, c"children")
}

fn kill_listed(list: &OwnedFd) {
    let mut numbers = Numbers::default();
    let mut chunk = [0; 1024];
    loop {
        match read(list, &mut chunk) {
            Ok(0) => return,
            Ok(count) => numbers.take(&chunk[..count], kill),
            Err(Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

/// Sends SIGKILL to every process whose parent is this one.
fn kill_by_parent() {
    let Ok(all) = open_below(CWD, c"/proc") else {
        return;
    };
    let own = getpid().as_raw_pid();
    let mut buffer = [MaybeUninit::uninit(); 2048];
    let mut entries = RawDir::new(&all, &mut buffer);
    while let Some(Ok(entry)) = entries.next() {
        let name = entry.file_name();
        let pid = number(name.to_bytes());
        if let Some(pid) = pid.filter(|_| parent_of(all.as_fd(), name) == Some(own)) {
            kill(pid);
        }
    }
}

/// Returns the parent of a process, given its directory below /proc.
fn parent_of(proc: BorrowedFd<'_>, process: &CStr) -> Option<i32> {
    let directory = open_below(proc, process).ok()?;
    let stat = open_below(directory, c"stat").ok()?;
    // The parent is within the first 100 bytes.
    let mut text = [0; 256];
    let length = read(stat, &mut text).ok()?;
    parent_in(&text[..length])
}

/// Returns the fourth field of /proc/PID/stat (proc_pid_stat(5)). The second is a
/// name in parentheses, which may contain any bytes.
fn parent_in(stat: &[u8]) -> Option<i32> {
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let mut words = stat[end + 1..].split(|byte| *byte == b' ');
    number(words.nth(2)?)
}

fn number(text: &[u8]) -> Option<i32> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn kill(pid: i32) {
    if let Some(pid) = Pid::from_raw(pid) {
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// Parser of numbers that are each followed by a space and arrive in pieces.
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
    fn the_parent_follows_a_name_of_any_bytes() {
        assert_eq!(parent_in(b"12 (sh) S 7 12 12 0"), Some(7));
        assert_eq!(parent_in(b"12 (a) R 1 (\xff b) S 45 1"), Some(45));
        assert_eq!(parent_in(b"12 (sh) S"), None);
        assert_eq!(parent_in(b""), None);
    }

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
