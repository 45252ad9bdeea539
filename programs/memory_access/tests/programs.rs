//! The built programs, as users start them.
#![expect(
    clippy::disallowed_methods,
    reason = "the program under test is a process"
)]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

const ACCESS: &str = env!("CARGO_BIN_EXE_memory_access");
const COMPETE: &str = env!("CARGO_BIN_EXE_compete_for_memory");

/// A buffer of which the accesses reach 12 pages, and most of these in this number of
/// steps.
const SMALL: [&str; 4] = ["--buffer", "1MiB", "--steps", "16"];

fn run(arguments: &[&str], directory: &Path) -> Output {
    let mut command = Command::new(ACCESS);
    command.args(arguments).current_dir(directory);
    command.stdin(Stdio::null()).output().unwrap()
}

/// Value of each line, by its name.
#[track_caller]
fn statistics(arguments: &[&str], directory: &Path) -> BTreeMap<String, String> {
    let output = run(&[&SMALL, arguments].concat(), directory);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let pairs = text.lines().filter_map(|line| line.split_once(": "));
    pairs
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

fn count(statistics: &BTreeMap<String, String>, name: &str) -> u64 {
    let value = &statistics[name];
    let digits = value.split(' ').next().unwrap_or_default();
    digits.parse().unwrap_or_else(|_| panic!("{name}: {value}"))
}

#[test]
fn the_manual_pages_have_the_options_of_the_help() {
    for (program, name) in [(ACCESS, "memory_access"), (COMPETE, "compete_for_memory")] {
        let help = Command::new(program).arg("--help").output().unwrap();
        let text = String::from_utf8(help.stdout).unwrap();
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
        toll_testing::assert_manual_has_options_of(name, &text);
    }
}

#[test]
fn all_statistics_of_the_report_are_printed() {
    let here = tempfile::tempdir().unwrap();
    let found = statistics(&["0", "0", "0", "0", "0"], here.path());
    for name in [
        "utime", "stime", "minflt", "majflt", "inblock", "oublock", "maxrss",
    ] {
        for part in ["init", "fun"] {
            assert!(found.contains_key(&format!("{name} ({part})")), "{found:?}");
        }
    }
    for name in [
        "L1 read access",
        "L1 write access",
        "L1 read miss",
        "L1 read miss rate",
        "TLB read miss",
        "TLB write miss",
    ] {
        assert!(found.contains_key(&format!("Data {name}")), "{found:?}");
    }
}

#[test]
fn pages_fault_in_the_accesses_unless_they_were_there_before() {
    let here = tempfile::tempdir().unwrap();
    let minor = |arguments: &[&str]| {
        let found = statistics(arguments, here.path());
        count(&found, "minflt (fun)")
    };
    // The working sets have ten pages.
    let untouched = minor(&["0", "0", "0", "0", "0"]);
    assert!(untouched >= 9, "{untouched}");
    for there in [["0", "0", "1", "0", "0"], ["0", "0", "0", "1", "0"]] {
        let populated = minor(&there);
        assert!(populated + 8 <= untouched, "{populated} of {untouched}");
    }
}

#[test]
fn a_shared_mapping_changes_the_file_and_a_private_one_does_not() {
    let here = tempfile::tempdir().unwrap();
    let path = here.path().join("data");
    std::fs::write(&path, vec![0; 1 << 20]).unwrap();
    let written = |mapping: &str| {
        statistics(
            &["--file", "data", "1", mapping, "0", "0", "0"],
            here.path(),
        );
        let content = std::fs::read(&path).unwrap();
        content.iter().filter(|byte| **byte == 1).count()
    };
    assert_eq!(written("1"), 0);
    assert!(written("2") > 0);
}

#[test]
fn without_a_file_none_is_left() {
    let here = tempfile::tempdir().unwrap();
    statistics(&["1", "2", "0", "0", "0"], here.path());
    assert_eq!(std::fs::read_dir(here.path()).unwrap().count(), 0);
}

#[test]
fn a_file_that_is_too_short_is_refused() {
    let here = tempfile::tempdir().unwrap();
    std::fs::write(here.path().join("data"), "short").unwrap();
    let arguments = ["--file", "data", "0", "1", "0", "0", "0"];
    let output = run(&[&SMALL[..], &arguments].concat(), here.path());
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(
        message.contains("cannot map data: it is not a regular file of at least 1048576 bytes"),
        "{message}"
    );
}

#[test]
fn the_competitor_says_what_it_wants_and_ends_with_the_program() {
    let here = tempfile::tempdir().unwrap();
    let competing = ["--memory", "32MiB", "--wait", "1ms"];
    let arguments = [&SMALL[..], &competing, &["0", "0", "0", "0", "1"]].concat();
    // The pipe ends only when both processes have ended, because the competitor holds it,
    // too.
    let output = run(&arguments, here.path());
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("Total memsize is 0.03 GBs\n"), "{text}");
    assert!(text.contains("\nminflt (fun): "), "{text}");
}

#[test]
fn the_competitor_alone_uses_memory_until_it_is_ended() {
    let mut child = Command::new(COMPETE)
        .arg("32MiB")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut line).unwrap();
    assert_eq!(line, "Total memsize is 0.03 GBs\n");
    let status = format!("/proc/{}/status", child.id());
    // After some passes, every page has been touched at random.
    let is_large = || {
        let status = std::fs::read_to_string(&status).unwrap();
        let resident = status.lines().find(|line| line.starts_with("VmRSS:"));
        let kilobytes = resident.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
        kilobytes.is_some_and(|kilobytes: u64| kilobytes > 30 << 10)
    };
    for _ in 0..600 {
        if is_large() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let is_running = child.try_wait().unwrap().is_none();
    let is_large = is_large();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(is_running && is_large);
}
