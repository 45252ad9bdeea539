//! Processes that trials start, and what becomes of them.

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

/// Longest wait for killed processes. One in a system call that cannot be
/// interrupted takes as long as that call.
const END_PATIENCE: Duration = Duration::from_secs(10);

/// Time between looks whether they have gone.
const END_POLL: Duration = Duration::from_millis(1);

/// Makes this process the parent of all that descends from it and loses its own
/// (PR_SET_CHILD_SUBREAPER of prctl(2)): what a probe had started comes here if
/// the probe itself dies.
pub fn adopt_orphans() {
    // It cannot fail on a kernel since 3.4.
    let _ = set_child_subreaper(Some(getpid()));
}

/// Children of this process.
pub fn of_this_process() -> BTreeSet<i32> {
    // Asked twice a trial, and mostly there is none: that one call tells, and
    // takes nobody's status away.
    let any = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    if let Err(Errno::CHILD) = waitid(WaitId::All, any) {
        return BTreeSet::new();
    }
    // Orphans go to the main thread (find_new_reaper in kernel/exit.c), which
    // also starts all others.
    let main = getpid().as_raw_pid();
    let listed = children_of_thread(main, main);
    let listed = listed.unwrap_or_else(|| children_by_parent(main));
    listed.into_iter().collect()
}

/// Ends all children of this process but some, with all that descends from them.
pub fn end_all_but(known: &BTreeSet<i32>) {
    let deadline = Instant::now() + END_PATIENCE;
    loop {
        // Theirs become ours when they die, and are seen in the next round.
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

/// Ends a probe and everything that it started, also what made groups of its
/// own.
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

/// Kills a process and all that descend from it.
pub fn kill_tree(root: i32) {
    // Stopped first, so that no child is born between the look and the kill.
    let found = tree(root, |pid| signal(pid, Signal::STOP));
    for &pid in found.iter().rev() {
        signal(pid, Signal::KILL);
    }
}

/// A process among a probe and all that descend from it that is stopped: its
/// number and name.
pub fn stopped_below(child: &Child) -> Option<(i32, String)> {
    let root = i32::try_from(child.id()).ok()?;
    tree(root, |_| {}).into_iter().find_map(|pid| {
        let stat = ProcessStat::of(pid.try_into().ok()?)?;
        // State T of proc_pid_stat(5).
        (stat.state == "T").then_some((pid, stat.name))
    })
}

/// A process and all that descend from it, each told of before its children are
/// looked for.
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

/// Children of a process, of all its threads.
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

/// `None` if the kernel has no such lists (CONFIG_PROC_CHILDREN).
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
    let is_child = |pid: &u32| ProcessStat::of(*pid).is_some_and(|stat| stat.parent == parent);
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
