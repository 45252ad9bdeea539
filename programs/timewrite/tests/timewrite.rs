//! `timewrite` as users start it.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "the program under test is a process, and a skip says why"
)]

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const BUFFER_BYTES: [u64; 10] = [
    256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131_072,
];

fn timewrite(arguments: &[&str], stdin: Stdio) -> Output {
    Command::new(env!("CARGO_BIN_EXE_timewrite"))
        .args(arguments)
        .stdin(stdin)
        .output()
        .unwrap()
}

fn timewrite_fed(arguments: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_timewrite"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The program may refuse its arguments before it reads.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

fn error_of(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Returns the buffer size and the loops of each line, and requires that its times are
/// numbers.
fn lines(output: &Output) -> Vec<(u64, u64)> {
    let text = std::str::from_utf8(&output.stdout).unwrap();
    let line = |line: &str| {
        let columns: Vec<&str> = line.split('\t').collect();
        assert_eq!(columns.len(), 5, "{line:?}");
        for time in &columns[1..4] {
            assert!(time.len() >= 7, "{line:?}");
            let (_, decimals) = time.split_once('.').unwrap();
            assert_eq!(decimals.len(), 4, "{line:?}");
            assert!(time.trim_start().parse::<f64>().unwrap() >= 0.0, "{line:?}");
        }
        (columns[0].parse().unwrap(), columns[4].parse().unwrap())
    };
    text.lines().map(line).collect()
}

fn expected(size_bytes: u64) -> Vec<(u64, u64)> {
    BUFFER_BYTES
        .map(|buffer| (buffer, size_bytes.div_ceil(buffer)))
        .to_vec()
}

fn content(length: usize) -> Vec<u8> {
    (0..length).map(|index| (index % 251) as u8).collect()
}

#[test]
fn a_file_is_written_with_every_buffer_size_with_and_without_sync() {
    let directory = tempfile::tempdir().unwrap();
    let (input, output) = (directory.path().join("f2"), directory.path().join("f1"));
    let bytes = content(131_072);
    fs::write(&input, &bytes).unwrap();
    for mode in [&[][..], &["sync"]] {
        // Old content must be gone, including the end of a longer file.
        fs::write(&output, vec![0xff; 200_000]).unwrap();
        let arguments = [&[output.to_str().unwrap()], mode].concat();
        let result = timewrite(&arguments, File::open(&input).unwrap().into());
        assert!(result.status.success(), "{}", error_of(&result));
        assert_eq!(lines(&result), expected(131_072));
        assert_eq!(fs::read(&output).unwrap(), bytes, "{mode:?}");
    }
}

#[test]
fn sync_opens_the_file_with_o_sync_and_nothing_else_does() {
    if Command::new("strace").arg("--version").output().is_err() {
        println!("skipped: strace is missing; install the package strace");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let output = directory.path().join("f1");
    for (mode, is_synchronous) in [(&[][..], false), (&["sync"], true)] {
        let traced = Command::new("strace")
            .args(["-e", "trace=open,openat", env!("CARGO_BIN_EXE_timewrite")])
            .arg(&output)
            .args(mode)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let trace = error_of(&traced);
        let opened = trace.lines().find(|line| line.contains("f1\"")).unwrap();
        assert_eq!(opened.contains("O_SYNC"), is_synchronous, "{opened}");
        assert!(opened.contains("O_CREAT") && opened.contains("O_TRUNC"));
    }
}

#[test]
fn a_pipe_is_read_to_its_end() {
    let directory = tempfile::tempdir().unwrap();
    let output = directory.path().join("f1");
    let bytes = content(300_001);
    let result = timewrite_fed(&[output.to_str().unwrap()], &bytes);
    assert!(result.status.success(), "{}", error_of(&result));
    assert_eq!(lines(&result), expected(300_001));
    assert_eq!(fs::read(&output).unwrap(), bytes);
}

#[test]
fn no_input_takes_no_writes() {
    let directory = tempfile::tempdir().unwrap();
    let output = directory.path().join("f1");
    let result = timewrite(&[output.to_str().unwrap()], Stdio::null());
    assert!(result.status.success());
    assert_eq!(lines(&result), expected(0));
    assert_eq!(fs::metadata(&output).unwrap().len(), 0);
}

#[test]
fn an_input_over_2_gib_is_written_whole() {
    let size_bytes = (2 << 30) + 1;
    let needed = 2 * size_bytes;
    if available_bytes() < needed {
        println!("skipped: less than {needed} bytes of memory are available");
        return;
    }
    let input = tempfile::tempfile().unwrap();
    input.set_len(size_bytes).unwrap();
    let result = timewrite(&["/dev/null"], input.into());
    assert!(result.status.success(), "{}", error_of(&result));
    assert_eq!(lines(&result), expected(size_bytes));
}

fn available_bytes() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap();
    let line = text
        .lines()
        .find(|line| line.starts_with("MemAvailable:"))
        .unwrap();
    let kibibytes: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kibibytes << 10
}

#[test]
fn a_failed_pass_prints_nothing_and_says_why() {
    let result = timewrite_fed(&["/dev/full"], b"x");
    assert_eq!(result.status.code(), Some(1));
    assert!(result.stdout.is_empty());
    assert_eq!(
        error_of(&result),
        "timewrite: cannot write /dev/full: no space left on device; free space there or lower \
         the size\n"
    );
}

#[test]
fn an_output_without_a_start_to_go_back_to_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("fifo");
    let made = Command::new("mkfifo").arg(&path).status().unwrap();
    assert!(made.success());
    let mut reader = Command::new("cat")
        .arg(&path)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let result = timewrite_fed(&[path.to_str().unwrap()], b"x");
    reader.wait().unwrap();
    assert_eq!(result.status.code(), Some(1));
    assert!(result.stdout.is_empty());
    assert!(
        error_of(&result).contains("illegal seek; name a file that can be written"),
        "{}",
        error_of(&result)
    );
}

#[test]
fn unusable_ends_and_arguments_are_told_on_standard_error() {
    for (arguments, status, said) in [
        (&["/nonexistent/f1"][..], 1, "no such file or directory"),
        (&["/"], 1, "is a directory"),
        (&[], 2, "usage: timewrite [--] OUTFILE [sync] <INFILE"),
        (&["f1", "async"], 2, "it can only be 'sync'"),
        (&["f1", "sync", "f3"], 2, "too many arguments"),
    ] {
        let result = timewrite_fed(arguments, b"x");
        assert_eq!(result.status.code(), Some(status), "{arguments:?}");
        assert!(result.stdout.is_empty(), "{arguments:?}");
        let error = error_of(&result);
        assert!(
            error.starts_with("timewrite: ") && error.contains(said),
            "{error}"
        );
    }
}

#[test]
fn a_directory_as_input_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let output = directory.path().join("f1");
    let input = File::open(directory.path()).unwrap();
    let result = timewrite(&[output.to_str().unwrap()], input.into());
    assert_eq!(result.status.code(), Some(1));
    assert!(error_of(&result).contains("cannot read standard input: is a directory"));
    // An unusable input must not cost the content of the output file.
    assert!(!Path::new(&output).exists());
}

#[test]
fn help_and_version_go_to_standard_output() {
    let help = timewrite(&["--help"], Stdio::null());
    assert!(help.status.success());
    assert!(String::from_utf8_lossy(&help.stdout).contains("timewrite f1 sync <f2"));
    let version = timewrite(&["--version"], Stdio::null());
    assert!(version.stdout.starts_with(b"timewrite (toll) "));
}

#[test]
fn a_result_that_cannot_be_printed_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let full = File::options().write(true).open("/dev/full").unwrap();
    let result = Command::new(env!("CARGO_BIN_EXE_timewrite"))
        .arg(directory.path().join("f1"))
        .stdin(Stdio::null())
        .stdout(full)
        .output()
        .unwrap();
    assert_eq!(result.status.code(), Some(1));
    assert!(error_of(&result).contains("cannot print the result: no space left on device"));
}

/// Starts the program from a shell script, in a directory with the files `in` and `out`.
fn timewrite_in_shell(script: &str) -> (tempfile::TempDir, Output) {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("in"), "input").unwrap();
    fs::write(directory.path().join("out"), "keep").unwrap();
    let result = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_timewrite")])
        .current_dir(directory.path())
        .output()
        .unwrap();
    (directory, result)
}

#[test]
fn an_output_keeps_its_content_if_there_is_no_input_to_read_or_no_output_to_print_to() {
    for (redirections, said) in [
        ("<&-", "cannot read standard input: bad file descriptor"),
        ("0>>in", "cannot read standard input: bad file descriptor"),
        ("<.", "cannot read standard input: is a directory"),
        ("<in >&-", "cannot print the result: bad file descriptor"),
        ("<in 1<in", "cannot print the result: bad file descriptor"),
    ] {
        let (directory, result) = timewrite_in_shell(&format!("\"$0\" out {redirections}"));
        assert_eq!(result.status.code(), Some(1), "{redirections}");
        let error = error_of(&result);
        assert!(error.contains(said), "{redirections}: {error}");
        let kept = fs::read_to_string(directory.path().join("out")).unwrap();
        assert_eq!(kept, "keep", "{redirections}");
    }
}

#[test]
fn an_output_that_is_the_input_under_any_name_is_refused() {
    for script in [
        "\"$0\" in <in",
        "\"$0\" ./in sync <in",
        "ln in hard && \"$0\" hard <in",
        "ln -s in soft && \"$0\" soft <in",
        "ln -s in soft && \"$0\" in <soft",
        "\"$0\" /dev/stdin <in",
        "\"$0\" /proc/self/fd/0 <in",
    ] {
        let (directory, result) = timewrite_in_shell(script);
        assert_eq!(result.status.code(), Some(1), "{script}");
        let error = error_of(&result);
        assert!(
            error.contains("it is the file that standard input reads"),
            "{script}: {error}"
        );
        let kept = fs::read_to_string(directory.path().join("in")).unwrap();
        assert_eq!(kept, "input", "{script}");
    }
    let (_, result) = timewrite_in_shell("\"$0\" /dev/null </dev/null");
    assert!(result.status.success(), "{}", error_of(&result));
}

#[test]
fn two_dashes_end_the_options_and_an_unknown_option_makes_no_file() {
    let (directory, result) = timewrite_in_shell("\"$0\" -- -f sync <in");
    assert!(result.status.success(), "{}", error_of(&result));
    assert_eq!(fs::read(directory.path().join("-f")).unwrap(), b"input");
    for (arguments, said) in [
        ("--", "OUTFILE is missing"),
        (
            "--sync out",
            "put a file whose name begins with '-' after '--'",
        ),
        ("-s", "put a file whose name begins with '-' after '--'"),
    ] {
        let (directory, result) = timewrite_in_shell(&format!("\"$0\" {arguments} <in"));
        assert_eq!(result.status.code(), Some(2), "{arguments}");
        let error = error_of(&result);
        assert!(error.contains(said), "{arguments}: {error}");
        assert_eq!(
            fs::read_dir(directory.path()).unwrap().count(),
            2,
            "{arguments}"
        );
    }
}

#[test]
fn an_error_of_closing_the_file_or_the_result_is_an_error() {
    if Command::new("strace").arg("--version").output().is_err() {
        println!("skipped: strace is missing; install the package strace");
        return;
    }
    for (path, said) in [
        ("out", "cannot close out: disk quota exceeded"),
        ("result", "cannot print the result: disk quota exceeded"),
    ] {
        let inject = "strace -qq -o /dev/null -e inject=close:error=EDQUOT";
        let script = format!("{inject} -P \"$PWD/{path}\" \"$0\" out <in >result");
        let (_, result) = timewrite_in_shell(&script);
        assert_eq!(result.status.code(), Some(1), "{path}");
        let error = error_of(&result);
        assert!(error.contains(said), "{path}: {error}");
    }
}
