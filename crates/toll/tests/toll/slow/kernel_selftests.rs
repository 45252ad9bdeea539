//! Self-tests of the kernel parts, in guests. Parts that take requests from programs also run under
//! a kernel that detects misused memory, wrong lock order, and leaks.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use toll_testing::{TOLL, any_kernel, full_or, output_within, skip, source_tree};

use super::guest::kernel;
use super::kernel_code::patched_source;

/// Longest time for one program: under TCG the checks make everything slow.
const PATIENCE: Duration = Duration::from_secs(20 * 60);

/// Reports of defects that a kernel with checks prints (Documentation/dev-tools).
const REPORTS: &[&str] = &[
    "WARNING:",
    "BUG:",
    "KASAN:",
    "UBSAN:",
    "kernel BUG at",
    "general protection fault",
    "possible circular locking",
    "possible recursive locking",
    "inconsistent lock state",
    "suspicious RCU usage",
    "blocked for more than",
    "soft lockup",
    "refcount_t:",
    "possible deadlock",
    "Oops",
    "list_add corruption",
    "list_del corruption",
];

/// Tests that come with the patches; their source is in the patched kernel tree.
const OF_PATCHES: &[&str] = &["count_primes_test", "reclaim_test"];

/// Builds a program statically, because guests have no libraries; `None` if its source is missing.
fn program_file(program: &str) -> Option<PathBuf> {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("selftests");
    let file = out.join(program);
    let mut make = Command::new("make");
    make.arg("-s")
        .arg("-C")
        .arg(source_tree().join("kernel/selftests"))
        .arg(format!("OUT={}", out.display()));
    if OF_PATCHES.contains(&program) {
        make.arg(format!("TREE={}", patched_source()?.display()))
            .arg("patched")
    } else {
        make.arg(&file)
    };
    let made = make.status().expect("make can be started");
    assert!(made.success(), "cannot build {program}");
    Some(file)
}

fn is_report(line: &&str) -> bool {
    REPORTS.iter().any(|report| line.contains(report))
}

/// Runs one program in a guest, and checks its output and the kernel's log.
fn run(program: &str, kernel_name: &str, memory: &str, arguments: &[&str]) {
    if kernel(kernel_name).is_none() {
        return;
    }
    let Some(program_file) = program_file(program) else {
        return skip("the pinned kernel's source is not in the cache; run toll kernel build");
    };
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let log = directory.path().join("log");
    // An object is leaked if two scans find no reference. One that only the first scan reports is
    // still in use.
    let leaks = "leaks=/sys/kernel/debug/kmemleak; \
                 if [ -e $leaks ]; then echo scan >$leaks; sleep 6; echo scan >$leaks; \
                 sed 's/^/# /' $leaks; grep -q . $leaks && status=1; fi";
    let script = format!(
        "/host/{program} {}; status=$?; {leaks}; exit $status",
        arguments.join(" ")
    );
    let mut toll = Command::new(TOLL);
    toll.args(["guest", "run", "--kernel", kernel_name])
        .args(["--memory", memory])
        .args(["--swap", "256MiB", "--accelerator", "tcg", "--log"])
        .arg(&log)
        .arg("--add")
        .arg(program_file)
        .args(["--", "sh", "-c", &script]);
    let output = output_within(&mut toll, PATIENCE);
    let said = String::from_utf8_lossy(&output.stdout);
    let log = std::fs::read_to_string(&log).unwrap_or_default();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}{errors}\n{log}");
    let failed: Vec<&str> = said.lines().filter(|l| l.starts_with("not ok")).collect();
    assert_eq!(failed, [""; 0], "{said}");
    assert!(said.lines().any(|line| line.starts_with("ok ")), "{said}");
    let reports: Vec<&str> = log.lines().filter(is_report).collect();
    assert_eq!(reports, [""; 0], "{log}");
}

#[test]
fn system_calls_and_module_that_count_primes_survive_misuse() {
    // Under these checks each call is several hundred times slower.
    let options = ["--module", "/modules/toll_primes.ko", "--calls", "50000"];
    run("primes_test", "toll-debug", "1GiB", &options);
}

#[test]
fn they_survive_random_calls() {
    // Without the patches, only the module's calls exist.
    let calls = full_or("20000", "1000000");
    let options = ["--module", "/modules/toll_primes.ko", "--calls", calls];
    run("primes_test", any_kernel(), "256MiB", &options);
}

#[test]
fn devices_that_send_files_survive_misuse_and_partners() {
    let options = ["--module-directory", "/modules", "--calls", "20000"];
    run("device_test", "toll-debug", "1GiB", &options);
}

#[test]
fn the_devices_survive_a_million_random_calls() {
    let options = ["--module-directory", "/modules", "--calls", "1000000"];
    run("device_test", "toll", "256MiB", &options);
}

#[test]
fn the_first_patchs_own_test_passes() {
    run("count_primes_test", "toll-debug", "512MiB", &[]);
}

#[test]
fn the_switch_of_reclaim_survives_pressure() {
    // Under the checks and emulation, the pressure would last too long.
    run("reclaim_test", "toll", "256MiB", &[]);
}

#[test]
fn a_report_of_the_kernel_is_seen() {
    let line = "[    1.0] BUG: KASAN: slab-out-of-bounds in toll_write+0x12";
    assert!(is_report(&line));
    assert!(!is_report(
        &"[    1.0] toll_primes: 4 primes among 10 numbers"
    ));
}
