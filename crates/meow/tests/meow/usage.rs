//! The help and the version.

use std::fs::File;
use std::process::Stdio;

use crate::common::{Files, meow, meow_under, run, run_meow};

#[test]
fn help_tells_the_usage_and_every_option_on_standard_output() {
    let help = String::from_utf8(run_meow(["--help"]).succeeded()).expect("help is UTF-8");
    assert!(
        help.starts_with("Usage: meow [OPTION]... [FILE]...\n"),
        "{help}"
    );
    let options = [
        "-A, --show-all",
        "-b, --number-nonblank",
        "-e ",
        "-E, --show-ends",
        "-n, --number ",
        "-s, --squeeze-blank",
        "-t ",
        "-T, --show-tabs",
        "-u ",
        "-v, --show-nonprinting",
        "--copy",
        "--help",
        "--version",
    ];
    for option in options {
        assert!(help.contains(&format!(" {option}")), "{option} in {help}");
    }
}

#[test]
fn version_tells_the_name_and_a_number_on_standard_output() {
    let version = String::from_utf8(run_meow(["--version"]).succeeded()).expect("UTF-8");
    let first = version.lines().next().unwrap_or_default();
    assert!(first.starts_with("meow "), "{version}");
    let number = first.rsplit(' ').next().unwrap_or_default();
    assert!(
        number.starts_with(|c: char| c.is_ascii_digit()),
        "{version}"
    );
}

#[test]
fn help_and_version_come_before_any_file_is_looked_at() {
    let files = Files::new();
    files.file("a", b"a\n");
    for option in ["--help", "--version"] {
        let alone = run_meow([option]).succeeded();
        for arguments in [
            ["a", option, "missing"],
            [option, "--foo", "-q"],
            ["missing", "-n", option],
        ] {
            assert_eq!(files.run(&arguments).succeeded(), alone, "{arguments:?}");
        }
    }
}

#[test]
fn the_first_of_help_version_and_a_wrong_option_is_answered() {
    let version = run_meow(["--version"]).succeeded();
    assert_eq!(run_meow(["--version", "--help"]).succeeded(), version);
    assert_eq!(run_meow(["--q", "--help"]).status.code(), Some(1));
}

#[test]
fn help_and_version_may_be_abbreviated() {
    assert_eq!(
        run_meow(["--h"]).succeeded(),
        run_meow(["--help"]).succeeded()
    );
    assert_eq!(
        run_meow(["--ver"]).succeeded(),
        run_meow(["--version"]).succeeded()
    );
}

#[test]
fn a_full_device_takes_neither_help_nor_version() {
    for option in ["--help", "--version"] {
        let full = File::options().write(true).open("/dev/full");
        let mut command = meow();
        command.arg(option).stdin(Stdio::null());
        command.stdout(full.expect("there is a full device"));
        run(command).failed(&["meow: write error: No space left on device"]);
    }
}

#[test]
fn a_closed_standard_output_takes_neither_help_nor_version() {
    for option in ["--help", "--version"] {
        let mut command = meow_under(r#"exec "$0" "$@" >&-"#);
        command.arg(option);
        run(command).failed(&["meow: write error: Bad file descriptor"]);
    }
}
