//! The help and the version.

use std::process::Stdio;

use crate::common::{Files, meow_under, run, run_meow, writable};

fn text_of(option: &str) -> String {
    String::from_utf8(run_meow([option]).succeeded()).unwrap()
}

#[test]
fn help_tells_the_usage_and_every_option_on_standard_output() {
    let help = text_of("--help");
    assert!(
        help.starts_with("Usage: meow [OPTION]... [FILE]...\n"),
        "{help}"
    );
    for option in [
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
    ] {
        assert!(help.contains(&format!(" {option}")), "{option} in {help}");
    }
    toll_testing::assert_manual_has_options_of("meow", &help);
}

#[test]
fn version_tells_the_name_and_a_number_on_standard_output() {
    let version = text_of("--version");
    let first = version.lines().next().unwrap();
    assert!(first.starts_with("meow "), "{version}");
    let number = first.rsplit(' ').next().unwrap();
    assert!(
        number.starts_with(|c: char| c.is_ascii_digit()),
        "{version}"
    );
}

#[test]
fn help_and_version_come_before_any_file_is_looked_at_and_the_first_counts() {
    let files = Files::new();
    files.file("a", b"a\n");
    for (option, short, other) in [
        ("--help", "--h", "--version"),
        ("--version", "--ver", "--help"),
    ] {
        let alone = run_meow([option]).succeeded();
        for arguments in [
            &["a", option, "missing"][..],
            &[option, "--foo", "-q"],
            &["missing", "-n", option],
            &[option, other],
            &[short],
        ] {
            assert_eq!(files.run(arguments).succeeded(), alone, "{arguments:?}");
        }
        assert_eq!(run_meow(["--q", option]).status.code(), Some(1));
    }
}

#[test]
fn an_output_that_takes_nothing_takes_neither_help_nor_version() {
    let files = Files::new();
    for option in ["--help", "--version"] {
        let ended = files.run_between(Stdio::null(), &[option], writable("/dev/full"));
        ended.failed(&["meow: write error: No space left on device"]);
        let mut command = meow_under(r#"exec "$0" "$@" >&-"#);
        command.arg(option);
        run(command).failed(&["meow: write error: Bad file descriptor"]);
    }
}
