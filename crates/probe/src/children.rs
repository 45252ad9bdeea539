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

/// Opens the list of the main thread's children (proc(5)). It starts all of them, and to
/// it orphans go (find_new_reaper in kernel/exit.c).
fn open_list() -> Result<OwnedFd, Errno> {
    // By parts, since a path of them would have to be allocated.
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

/// The parent of a process, by its directory below /proc.
fn parent_of(proc: BorrowedFd<'_>, process: &CStr) -> Option<i32> {
    let directory = open_below(proc, process).ok()?;
    let stat = open_below(directory, c"stat").ok()?;
    // The parent comes before byte 100.
    let mut text = [0; 256];
    let length = read(stat, &mut text).ok()?;
    parent_in(&text[..length])
}

/// The fourth field of /proc/PID/stat (proc_pid_stat(5)). The second is a name in
/// parentheses, with any bytes in it.
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
