//! File systems that toll makes for itself, on loop devices and elsewhere.

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use toll_testing::{
    Bench, Running, all_are, capability, has, is_root, list, processes_marked, skip, wait_until,
};

fn mounts() -> String {
    std::fs::read_to_string("/proc/self/mountinfo").unwrap()
}

fn loop_devices_of(bench: &Bench) -> String {
    let mut losetup = Command::new("losetup");
    let output = losetup.args(["-l", "-n", "-O", "BACK-FILE"]).output();
    let text = String::from_utf8(output.map(|o| o.stdout).unwrap_or_default()).unwrap();
    let own = bench.path("").display().to_string();
    text.lines().filter(|line| line.contains(&own)).collect()
}

/// An experiment on file systems that programs serve.
const SERVED: &str = r#"
format = 1
name = "served"
metric = "duration_ns"

require = [
    "fs in [userfs, userfs-sftp] or (mount_cache == blocks and fs in [sshfs, passthrough-hp]) or mount_cache == none",
    "fs != passthrough-hp or mount_cache == blocks",
]

[workload]
kind = "files"
size = "300KiB"
count = 25

[[factor]]
name = "fs"
levels = ["userfs", "userfs-writeback", "userfs-passthrough", "userfs-sftp", "sshfs", "passthrough-hp"]

[[factor]]
name = "mount_cache"
levels = ["whole", "blocks", "none"]

[[factor]]
name = "operation"
levels = ["read-sequential", "write-random", "create", "open-tree"]
"#;

/// Returns the processes of a bench that still run, except those that run a test.
fn servers(bench: &Bench) -> Vec<i32> {
    processes_marked(&bench.path("state").display().to_string())
}

#[test]
fn every_served_file_system_that_can_be_had_keeps_what_it_is_given() {
    let bench = Bench::new();
    bench.write("served.toml", SERVED);
    let run = bench.measured("served.toml -r 2");
    for treatment in list(&run["analysis"]["treatments"]) {
        let Some(reason) = treatment["skipped"].as_str() else {
            continue;
        };
        let known = "fuse,missing,root,older,pass through,passthrough_hp";
        let is_known = known.split(',').any(|word| reason.contains(word));
        assert!(is_known, "{treatment:#}");
        skip(&format!("{}: {reason}", treatment["label"]));
    }
    for trial in list(&run["trials"]) {
        let state = trial["state"].as_str().unwrap();
        assert!(["completed", "unsupported"].contains(&state), "{trial:#}");
    }
    assert_eq!(servers(&bench), Vec::<i32>::new());
    is_clean(&bench);
}

#[test]
fn a_run_killed_over_served_file_systems_leaves_no_server_and_no_mount() {
    let bench = Bench::new();
    for name in ["userfs-sftp", "sshfs"] {
        if let Err(reason) = capability(&bench, &format!("file system {name}")) {
            skip(&format!("{name}: {reason}"));
            return;
        }
    }
    bench.write("served.toml", SERVED);
    let line = "run served.toml -q --no-html -r 1000 -L fs=userfs-sftp,sshfs";
    let mut running = bench.start(line);
    // Other programs mount FUSE file systems, too.
    let own = bench.path("").display().to_string();
    let mounts_of_run = || {
        let path = format!("/proc/{}/mountinfo", running.0.id());
        let mounts = std::fs::read_to_string(path).unwrap_or_default();
        let is_served = |line: &&str| line.contains(" - fuse") && line.contains(&own);
        mounts.lines().filter(is_served).count()
    };
    wait_until("all file systems are mounted", || mounts_of_run() >= 4);
    running.kill();
    wait_until("the servers have ended", || servers(&bench).is_empty());
    let printed = bench.ok("doctor --restore").stdout;
    has(&printed, &["cleared after a killed run"]);
    is_clean(&bench);
}

/// Asserts that nothing of a bench is mounted, attached or left over.
#[track_caller]
fn is_clean(bench: &Bench) {
    let own = bench.path("").display().to_string();
    // A device is detached when the last process of the mount namespace has ended.
    wait_until("the loop devices are detached", || {
        loop_devices_of(bench).is_empty()
    });
    let is_mounted = mounts().contains(own.trim_end_matches('/'));
    assert!(!is_mounted, "{}", mounts());
    assert_eq!(bench.leftovers(), Vec::<std::path::PathBuf>::new());
}

fn write_on(bench: &Bench, file_system: &str, options: &str) -> Value {
    bench.measured(&format!(
        "write --profile quick -r 2 -L fs={file_system} -L input=128KiB -L buffer=4KiB,64KiB \
         -L durability=none,fsync -L placement=overwrite {options}"
    ))
}

#[track_caller]
fn all_completed(run: &Value) {
    assert!(!list(&run["trials"]).is_empty(), "{run:#}");
    all_are("completed", list(&run["trials"]));
}

#[test]
fn writes_run_on_each_file_system_that_can_be_had() {
    let bench = Bench::new();
    for (file_system, named) in [
        ("ext4", "file system ext4 on a loop device"),
        ("xfs", "file system xfs on a loop device"),
        ("xfs-striped", "file system xfs-striped on a loop device"),
        ("btrfs", "file system btrfs on a loop device"),
        ("tmpfs", "file system tmpfs"),
        ("foreign", "foreign file system"),
    ] {
        match capability(&bench, named) {
            Err(reason) => skip(&format!("{file_system}: {reason}")),
            Ok(()) => {
                all_completed(&write_on(&bench, file_system, ""));
                is_clean(&bench);
            }
        }
    }
}

#[test]
fn a_stripe_of_three_blocks_is_what_a_copy_is_told_to_use() {
    let bench = Bench::new();
    if let Err(reason) = capability(&bench, "file system xfs-striped on a loop device") {
        return skip(&format!("xfs-striped: {reason}"));
    }
    bench.write(
        "striped.toml",
        "format = 1\nname = 'striped'\n[workload]\nkind = 'copy'\nmethod = 'fs-block'\n\
         fs = 'xfs-striped'\n[[factor]]\nname = 'size'\nlevels = ['48KiB', '1MiB']\n",
    );
    let run = bench.measured("striped.toml -r 2");
    all_completed(&run);
    let calls = list(&run["trials"])
        .iter()
        .map(|trial| trial["samples"]["calls"][0].as_f64().unwrap());
    // Reads and writes use 12,288 bytes, the least common multiple of 4,096 and 6,144.
    assert!(
        calls.clone().all(|calls| [8.0, 172.0].contains(&calls)),
        "{run:#}"
    );
    is_clean(&bench);
}

#[test]
fn nothing_begins_cold_on_a_loop_device_without_direct_io() {
    let bench = Bench::new();
    if let Err(reason) = capability(&bench, "file system ext4 on a loop device") {
        return skip(&format!("ext4: {reason}"));
    }
    // The kernel grants direct I/O on most file systems, so this wrapper of losetup never asks for
    // it.
    std::fs::create_dir(bench.path("bin")).unwrap();
    bench.write(
        "bin/losetup",
        "#!/bin/sh\nPATH=${PATH#*:}:/usr/sbin:/sbin\n\
         for word; do shift; [ $word = --direct-io=on ] || set -- \"$@\" $word; done\n\
         exec losetup \"$@\"\n",
    );
    bench.write(
        "cold.toml",
        "format = 1\nname = 'cold'\n[workload]\nkind = 'copy'\nsize = '1MiB'\nfs = 'ext4'\n\
         [[factor]]\nname = 'cache'\nlevels = ['cold', 'warm']\n",
    );
    let line = "chmod +x bin/losetup; PATH=$PWD/bin:$PATH toll run -q --no-html -r 2 cold.toml";
    let ran = bench.shell(line);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let run = bench.document("last");
    for treatment in list(&run["analysis"]["treatments"]) {
        let is_cold = treatment["label"].as_str().unwrap().contains("cold");
        let skipped = treatment["skipped"].as_str().unwrap_or_default();
        assert_eq!(
            is_cold,
            skipped.contains("no file on ext4 can be cold: the loop device"),
            "{treatment:#}"
        );
    }
    all_completed(&run);
    is_clean(&bench);
}

/// Another user's FUSE mount, unmounted when dropped.
struct Theirs {
    point: std::path::PathBuf,
    _server: Running,
}

impl Theirs {
    /// Mounts `source` over an existing directory.
    fn mount(source: &Path, point: &Path) -> Self {
        let server = Command::new("bindfs")
            .arg("-f")
            .args([source, point])
            .spawn();
        let theirs = Self {
            point: point.to_owned(),
            _server: Running(server.unwrap()),
        };
        let mounted = format!(" {} ", point.display());
        wait_until("the file system is mounted", || mounts().contains(&mounted));
        theirs
    }
}

impl Drop for Theirs {
    fn drop(&mut self) {
        let _ = Command::new("fusermount3")
            .args(["-u", "-z"])
            .arg(&self.point)
            .status();
    }
}

#[test]
fn a_foreign_file_system_is_used_only_if_it_is_named() {
    let bench = Bench::new();
    if let Err(reason) = capability(&bench, "foreign file system") {
        skip(&format!("foreign: {reason}"));
        return;
    }
    let (source, point) = (bench.path("source"), bench.path("theirs"));
    for path in [&source, &point] {
        std::fs::create_dir(path).unwrap();
    }
    let theirs = Theirs::mount(&source, &point);
    let changed = || std::fs::metadata(&source).unwrap().modified().unwrap();
    let before = changed();
    write_on(&bench, "foreign", "");
    assert_eq!(
        changed(),
        before,
        "a mount that was not named was written to"
    );
    all_completed(&write_on(&bench, "foreign", "--foreign-dir theirs"));
    assert!(changed() > before, "the named mount was not used");
    assert_eq!(std::fs::read_dir(&source).unwrap().count(), 0);
    drop(theirs);
    is_clean(&bench);
    let printed = bench.fails(2, "run write -L fs=foreign --foreign-dir source");
    has(&printed, &["cannot use ", "--foreign-dir"]);
}

#[test]
fn a_file_system_that_cannot_be_had_is_skipped_with_the_reason() {
    let bench = Bench::new();
    // Hiding mkfs from PATH does not help, since toll also looks where Debian keeps it. Without
    // root no file system is available, so this test relies on that.
    if is_root() {
        skip("as root every installed file system is available");
        return;
    }
    let run = write_on(&bench, "work,ext4", "");
    let reasons = list(&run["analysis"]["treatments"]).iter();
    let reasons: Vec<&str> = reasons.filter_map(|t| t["skipped"].as_str()).collect();
    let is_right = !reasons.is_empty() && reasons.iter().all(|why| why.contains("root"));
    assert!(is_right, "{run:#}");
    all_completed(&run);
}

#[test]
fn a_run_killed_on_a_loop_device_leaves_nothing_mounted() {
    let bench = Bench::new();
    if let Err(reason) = capability(&bench, "file system ext4 on a loop device") {
        skip(&format!("ext4: {reason}"));
        return;
    }
    let line = "run write --profile quick -q --no-html -L fs=ext4 -L input=128KiB -r 1000";
    let mut running = bench.start(line);
    wait_until("the device is attached", || {
        !loop_devices_of(&bench).is_empty()
    });
    running.kill();
    let printed = bench.ok("doctor --restore").stdout;
    has(&printed, &["cleared after a killed run"]);
    // The kernel unmounts once the namespace's last process has ended, and then releases the
    // device. A device that was not mounted yet was detached by `toll doctor`.
    is_clean(&bench);
}
