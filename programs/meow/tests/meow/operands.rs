//! Which files are read, in which order, and what is reported of those that cannot be
//! read.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use toll_testing::isolated;

use crate::common::{Files, MEOW, run, run_meow, skip};

fn a_and_b() -> Files {
    let files = Files::new();
    files.file("a", b"a\n");
    files.file("b", b"b");
    files
}

#[test]
fn files_and_standard_input_come_out_in_order_with_nothing_between() {
    let files = a_and_b();
    files.file("-", b"dash\n");
    for (arguments, expected) in [
        (&["b", "a", "b"][..], &b"ba\nb"[..]),
        (&[], b"in\n"),
        (&["a", "-", "b"], b"a\nin\nb"),
        // A second dash finds standard input at its end.
        (&["-", "a", "-"], b"in\na\n"),
        (&["-", "-", "a"], b"in\na\n"),
        (&["./-"], b"dash\n"),
    ] {
        let output = files.run_with_pipes(b"in\n", arguments).succeeded();
        assert_eq!(output, expected, "{arguments:?}");
    }
}

#[test]
fn every_file_that_cannot_be_read_is_told_in_order_and_the_others_are_printed() {
    let files = a_and_b();
    std::fs::create_dir(files.path("directory")).unwrap();
    for (target, name) in [("a", "good"), ("loop", "loop"), ("nowhere", "dangling")] {
        std::os::unix::fs::symlink(target, files.path(name)).unwrap();
    }
    let _socket = std::os::unix::net::UnixListener::bind(files.path("s")).unwrap();
    let long = "x".repeat(5000);
    let ended = files.run(&[
        "missing",
        "a",
        "directory",
        "a/2",
        "b",
        "",
        "loop",
        "good",
        "dangling",
        "s",
        &long,
    ]);
    let output = ended.failed(&[
        "meow: missing: No such file or directory",
        "meow: directory: Is a directory",
        "meow: a/2: Not a directory",
        "meow: '': No such file or directory",
        "meow: loop: Too many levels of symbolic links",
        "meow: dangling: No such file or directory",
        "meow: s: No such device or address",
        &format!("meow: {long}: File name too long"),
    ]);
    assert_eq!(output, b"a\nba\n");
}

#[test]
fn a_directory_is_told_whatever_is_shown() {
    let files = a_and_b();
    for options in ["-u", "-n", "-A", "-s", "--copy"] {
        let ended = files.run(&[options, "."]);
        assert_eq!(ended.failed(&["meow: .: Is a directory"]), b"");
    }
    let ended = files.run_between(files.open("."), &[], Stdio::piped());
    ended.failed(&["meow: -: Is a directory"]);
}

#[test]
fn a_file_without_permission_is_told_and_the_others_are_printed() {
    isolated(|| {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let set = |path: &Path, mode| {
            std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        };
        for (name, mode) in [("secret", 0o000), ("open", 0o644)] {
            std::fs::write(path.join(name), name).unwrap();
            set(&path.join(name), mode);
        }
        // A separate process copies the program to a place where anyone may start it.
        // New processes of other tests briefly inherit every file that this process has
        // open for writing, and such a file cannot be executed.
        let mut install = Command::new("install");
        install.args(["-m", "755", MEOW, "meow"]).current_dir(path);
        assert!(install.status().unwrap().success());
        set(path, 0o755);
        let mut command = Command::new("./meow");
        command.env("LC_ALL", "C").current_dir(path);
        command.args(["secret", "open"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        if rustix::process::geteuid().is_root() {
            // Root may read everything, so another user tries.
            command.uid(65534).gid(65534);
        }
        let Ok(mut probe) = command.spawn() else {
            return skip("cannot start a program as another user here");
        };
        probe.wait().unwrap();
        let output = run(command).failed(&["meow: secret: Permission denied"]);
        assert_eq!(output, b"open");
    });
}

/// Returns how the message about a missing file prints its name.
fn told_name(name: &OsStr) -> String {
    let errors = run_meow([name]).errors;
    let inner = errors
        .strip_prefix("meow: ")
        .and_then(|rest| rest.strip_suffix(": No such file or directory\n"));
    inner.unwrap_or_else(|| panic!("{errors}")).to_owned()
}

#[test]
fn names_are_quoted_where_a_shell_would_need_it() {
    for (name, found) in [
        ("plain-name_1.txt", "plain-name_1.txt"),
        ("/x/y+z,@%~", "/x/y+z,@%~"),
        ("a b", "'a b'"),
        ("a$b", "'a$b'"),
        ("a*", "'a*'"),
        ("it's", "\"it's\""),
        ("a\"b", "'a\"b'"),
        ("a\\b", "'a\\b'"),
        ("#a", "'#a'"),
        ("a\nb", r"$'a\nb'"),
    ] {
        assert_eq!(told_name(OsStr::new(name)), found);
    }
}

#[test]
fn a_quoted_name_is_one_printable_line_that_a_shell_reads_back() {
    if !Path::new("/bin/bash").exists() {
        return skip("bash is missing; install the package bash");
    }
    for name in [
        &b"a\tb"[..],
        b"a\x01b",
        b"a\x7fb",
        b"it's \"b\"",
        b"a\xffb",
        b"\x1b]0;title\x07",
        b"$(reboot)`x`;&|",
        "a\u{202e}b".as_bytes(),
    ] {
        let found = told_name(OsStr::from_bytes(name));
        assert!(!found.contains(char::is_control), "{found:?}");
        let script = format!("printf %s {found}");
        let read_back = Command::new("/bin/bash")
            .args(["-c", &script])
            .env("LC_ALL", "C.UTF-8")
            .output()
            .unwrap();
        assert_eq!(read_back.stdout, name, "{found}");
    }
}

#[test]
fn a_name_need_not_be_text() {
    let files = Files::new();
    let path = files.directory().join(OsStr::from_bytes(b"a\xffb"));
    std::fs::write(&path, "odd").unwrap();
    assert_eq!(run_meow([path]).succeeded(), b"odd");
}

#[test]
fn many_files_are_read_one_after_another_with_few_descriptors() {
    let ended = a_and_b().shell(r#"ulimit -n 16; exec "$0" "$@""#, &["b"; 2000]);
    assert_eq!(ended.succeeded(), vec![b'b'; 2000]);
}
