//! Runs the programs as users start them, up to the point where they need the devices.
//! Guest tests run them with the devices.

use std::process::{Command, Output};

const MASTER: &str = env!("CARGO_BIN_EXE_master");
const SLAVE: &str = env!("CARGO_BIN_EXE_slave");

#[expect(clippy::print_stderr, reason = "a skip prints its reason")]
fn skip(reason: &str) {
    eprintln!("skipped: {reason}");
}

#[expect(clippy::disallowed_methods, reason = "a test starts what it tests")]
fn run(program: &str, arguments: &[&str]) -> Output {
    Command::new(program).args(arguments).output().unwrap()
}

fn errors(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn help_and_version_go_to_standard_output() {
    for (program, name) in [(MASTER, "master"), (SLAVE, "slave")] {
        let help = run(program, &["--help"]);
        assert_eq!(help.status.code(), Some(0));
        let text = String::from_utf8(help.stdout).unwrap();
        assert!(text.starts_with(&format!("Usage: {name} ")), "{text}");
        for line in text.lines() {
            assert!(line.len() <= 80, "{line}");
        }
        toll_testing::assert_manual_has_options_of(name, &text);
        let version = run(program, &["--version"]);
        let text = String::from_utf8(version.stdout).unwrap();
        assert!(text.starts_with(&format!("{name} (toll) ")), "{text}");
    }
}

#[test]
fn wrong_arguments_end_with_2_and_name_the_help() {
    for (program, arguments) in [
        (MASTER, &["f"][..]),
        (MASTER, &["f", "sendfile"]),
        (MASTER, &["f", "mmap", "--buffer", "1"]),
        (SLAVE, &["f", "mmap"]),
        (SLAVE, &["f", "mmap", "localhost"]),
    ] {
        let output = run(program, arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty());
        let printed = errors(&output);
        assert!(printed.ends_with(" --help\n"), "{printed}");
    }
}

#[test]
fn a_file_that_cannot_be_sent_is_told_before_anything_else() {
    for (file, printed) in [
        (
            "/no/such/file",
            "cannot open /no/such/file: no such file or directory; check the path",
        ),
        (
            "/dev/null",
            "cannot send /dev/null: it is not a regular file; name one that is",
        ),
        (
            "/",
            "cannot send /: it is not a regular file; name one that is",
        ),
    ] {
        let output = run(MASTER, &[file, "mmap"]);
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(errors(&output), format!("master: {printed}\n"));
    }
}

#[test]
fn a_machine_without_the_modules_is_told_what_to_do() {
    for (program, name, arguments) in [
        (MASTER, "master", &["Cargo.toml", "fcntl"][..]),
        (SLAVE, "slave", &["never-made", "fcntl", "127.0.0.1"]),
    ] {
        let device = format!("/dev/{name}_device");
        if std::path::Path::new(&device).exists() {
            skip(&format!("this machine has {device}"));
            continue;
        }
        let output = run(program, arguments);
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(
            errors(&output),
            format!(
                "{name}: cannot open {device}: no such file or directory; insert the modules \
                 tolldev and {name} in a guest\n"
            )
        );
    }
    assert!(!std::path::Path::new("never-made").exists());
}
