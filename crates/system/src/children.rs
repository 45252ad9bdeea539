//! Processes that trials start, and how they are ended.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Child;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, getpid, kill_process, kill_process_group,
    set_child_subreaper, waitid, waitpid,
};

use crate::process_stat::{ProcessStat, all_processes};

/// Longest wait for killed processes to exit. A process in an uninterruptible system call lives
/// until that call returns.
const END_PATIENCE: Duration = Duration::from_secs(10);

/// Interval between checks whether killed processes have exited.
const END_POLL: Duration = Duration::from_millis(1);

/// Makes this process the parent of all orphaned descendants (PR_SET_CHILD_SUBREAPER of prctl(2)):
/// if a probe dies, the processes that it started become children of this process.
pub fn adopt_orphans() {
    // The call cannot fail since Linux 3.4.
    let _ = set_child_subreaper(Some(getpid()));
}

/// Children of this process.
pub fn of_this_process() -> BTreeSet<i32> {
    // This function is called twice a trial, mostly without children. The next call detects that
    // case, and leaves every exit status in place.
    let any = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    if let Err(Errno::CHILD) = waitid(WaitId::All, any) {
        return BTreeSet::new();
    }
    // Orphans go to the main thread (find_new_reaper in kernel/exit.c), which
    // also starts all other children.
    let main = getpid().as_raw_pid();
    let listed = children_of_thread(main, main);
    let listed = listed.unwrap_or_else(|| children_by_parent(main));
    listed.into_iter().collect()
}

/// Kills all children of this process except the known ones, with all their descendants.
pub fn end_all_but(known: &BTreeSet<i32>) {
    let deadline = Instant::now() + END_PATIENCE;
    loop {
        // When a process dies, its children become ours, and are found in the next round.
        let others = &of_this_process() - known;
        if others.is_empty() || Instant::now() > deadline {
            return;
        }
        for pid in others.into_iter().filter_map(Pid::from_raw) {
            let _ = kill_process(pid, Signal::KILL);
            let _ = waitpid(Some(pid), WaitOptions::NOHANG);
        }
        std::thread::sleep(END_POLL);
    }
}

/// Kills a probe and everything that it started, including processes in other
/// groups.
pub fn end_tree(child: &mut Child) {
    let Ok(root) = i32::try_from(child.id()) else {
        return;
    };
    kill_tree(root);
    if let Some(group) = Pid::from_raw(root) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    let _ = child.wait();
}

/// Kills a process and all its descendants.
pub fn kill_tree(root: i32) {
    // Processes are stopped first, so that no child is forked between the lookup and the kill.
    let found = tree(root, |pid| signal(pid, Signal::STOP));
    for &pid in found.iter().rev() {
        signal(pid, Signal::KILL);
    }
}

/// Finds a stopped process among a probe and all its descendants. Returns its
/// PID and name.
pub fn stopped_below(child: &Child) -> Option<(i32, String)> {
    let root = i32::try_from(child.id()).ok()?;
    tree(root, |_| {}).into_iter().find_map(|pid| {
        let stat = ProcessStat::read(pid.try_into().ok()?)?;
        // The state T means stopped (proc_pid_stat(5)).
        (stat.state == "T").then_some((pid, stat.name))
    })
}

/// Returns a process and all its descendants. Calls `each` on a process before
/// its children are looked up.
pub fn tree(root: i32, mut each: impl FnMut(i32)) -> Vec<i32> {
    let mut found = vec![root];
    let mut next = 0;
    while let Some(&pid) = found.get(next) {
        each(pid);
        found.extend(children(pid));
        next += 1;
    }
    found
}

fn signal(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        let _ = kill_process(pid, signal);
    }
}

/// Returns the children of all threads of a process.
pub fn children(pid: i32) -> Vec<i32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task"));
    let threads = tasks.into_iter().flatten().flatten();
    let lists: Option<Vec<Vec<i32>>> = threads
        .filter_map(|task| task.file_name().to_str()?.parse().ok())
        .map(|thread| children_of_thread(pid, thread))
        .collect();
    match lists {
        Some(lists) => lists.into_iter().flatten().collect(),
        None => children_by_parent(pid),
    }
}

/// Returns the children of one thread; `None` if the kernel has no such lists
/// (CONFIG_PROC_CHILDREN).
fn children_of_thread(pid: i32, thread: i32) -> Option<Vec<i32>> {
    static HAS_LISTS: LazyLock<bool> =
        LazyLock::new(|| Path::new("/proc/thread-self/children").exists());
    if !*HAS_LISTS {
        return None;
    }
    let list = std::fs::read_to_string(format!("/proc/{pid}/task/{thread}/children"));
    let list = list.unwrap_or_default();
    let words = list.split_whitespace();
    Some(words.filter_map(|pid| pid.parse().ok()).collect())
}

fn children_by_parent(parent: i32) -> Vec<i32> {
    let is_child = |pid: &u32| ProcessStat::read(*pid).is_some_and(|stat| stat.parent == parent);
    let children = all_processes().filter(is_child);
    children.filter_map(|pid| i32::try_from(pid).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test starts what it looks for")]
    fn a_child_is_found_in_the_list_and_by_its_parent() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let own = getpid().as_raw_pid();
        let found = (children(own), children_by_parent(own));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(
            found.0.contains(&pid) && found.1.contains(&pid),
            "{found:?}"
        );
    }
}
