//! File systems that toll makes for itself, on loop devices and elsewhere.

use std::process::Command;

use serde_json::Value;

use crate::common::{Bench, Running, capability, is_root, list, skip, wait_until};

fn mounts() -> String {
    std::fs::read_to_string("/proc/self/mountinfo").unwrap()
}

fn loop_devices_of(bench: &Bench) -> String {
    let output = Command::new("losetup")
        .args(["-l", "-n", "-O", "BACK-FILE"])
        .output();
    let text = output.map_or_else(
        |_| String::new(),
        |o| String::from_utf8_lossy(&o.stdout).into(),
    );
    let own = bench.path("").display().to_string();
    text.lines().filter(|line| line.contains(&own)).collect()
}

/// Nothing of a bench is mounted, attached or left.
#[track_caller]
fn is_clean(bench: &Bench) {
    let own = bench.path("").display().to_string();
    // A device detaches when the last process of the namespace has gone.
    wait_until("the loop devices are detached", || {
        loop_devices_of(bench).is_empty()
    });
    assert!(
        !mounts().contains(own.trim_end_matches('/')),
        "{}",
        mounts()
    );
    assert_eq!(bench.leftovers(), Vec::<std::path::PathBuf>::new());
}

fn write_on(bench: &Bench, file_system: &str, options: &[&str]) -> Value {
    let level = format!("fs={file_system}");
    let base = [
        "run",
        "write",
        "--profile",
        "quick",
        "-q",
        "--no-html",
        "--json",
        "-r",
        "2",
        "-L",
        &level,
        "-L",
        "input=128KiB",
        "-L",
        "buffer=4KiB,64KiB",
        "-L",
        "durability=none,fsync",
        "-L",
        "placement=overwrite",
    ];
    bench.json(&[&base[..], options].concat())["runs"][0].clone()
}

fn runs_on(file_system: &str, capability_name: &str) {
    let bench = Bench::new();
    if let Err(reason) = capability(&bench, capability_name) {
        skip(&format!("{file_system}: {reason}"));
        return;
    }
    let run = write_on(&bench, file_system, &[]);
    let states: Vec<&Value> = list(&run["trials"])
        .iter()
        .map(|trial| &trial["state"])
        .collect();
    assert!(
        !states.is_empty() && states.iter().all(|state| *state == "completed"),
        "{run:#}"
    );
    is_clean(&bench);
}

#[test]
fn writes_run_on_ext4() {
    runs_on("ext4", "file system ext4 on a loop device");
}

#[test]
fn writes_run_on_xfs() {
    runs_on("xfs", "file system xfs on a loop device");
}

#[test]
fn writes_run_on_btrfs() {
    runs_on("btrfs", "file system btrfs on a loop device");
}

#[test]
fn writes_run_on_tmpfs() {
    runs_on("tmpfs", "file system tmpfs");
}

#[test]
fn writes_run_on_a_foreign_file_system() {
    runs_on("foreign", "foreign file system");
}

#[test]
fn a_file_system_that_cannot_be_had_is_skipped_with_the_reason() {
    let bench = Bench::new();
    // A PATH in which no mkfs is found does not help, since toll looks where
    // Debian keeps it, too; without root none can be had, so that is tried.
    if is_root() {
        skip("as root every file system that is installed can be had");
        return;
    }
    let run = write_on(&bench, "work,ext4", &[]);
    let skipped: Vec<&str> = list(&run["treatments"])
        .iter()
        .filter_map(|t| t["skipped"].as_str())
        .collect();
    assert!(
        !skipped.is_empty() && skipped.iter().all(|why| why.contains("root")),
        "{run:#}"
    );
    assert!(
        list(&run["trials"])
            .iter()
            .all(|trial| trial["state"] == "completed")
    );
}

#[test]
fn a_run_killed_on_a_loop_device_leaves_nothing_mounted() {
    let bench = Bench::new();
    if let Err(reason) = capability(&bench, "file system ext4 on a loop device") {
        skip(&format!("ext4: {reason}"));
        return;
    }
    let child = bench
        .spawnable(&[
            "run",
            "write",
            "--profile",
            "quick",
            "-q",
            "--no-html",
            "-L",
            "fs=ext4",
            "-L",
            "input=128KiB",
            "-r",
            "1000",
        ])
        .spawn();
    let mut running = Running(child.unwrap());
    wait_until("the device is attached", || {
        !loop_devices_of(&bench).is_empty()
    });
    running.0.kill().unwrap();
    running.0.wait().unwrap();
    let told = bench.ok(&["doctor", "--restore"]).stdout;
    assert!(told.contains("cleared after a killed run"), "{told}");
    // The kernel unmounts when the namespace's last process has gone, and then
    // lets go of the device; one not mounted yet the doctor has detached.
    wait_until("the loop device is detached", || {
        loop_devices_of(&bench).is_empty()
    });
    is_clean(&bench);
}
