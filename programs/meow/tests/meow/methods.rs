//! Copying by a single method.

use std::io::{Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use toll_wire::{CopyMethod, words};

use crate::common::{Files, MEOW, assert_same, content, run, skip, writable};

fn has_io_uring() -> bool {
    let disabled = std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled");
    let is_there = disabled.is_ok_and(|text| text.trim() == "0");
    if !is_there {
        skip("io_uring is disabled or missing");
    }
    is_there
}

/// Methods that can copy into a pipe as well as a file: `copy-file-range` needs a file.
fn methods() -> impl Iterator<Item = &'static str> {
    let has_io_uring = has_io_uring();
    let is_tried = move |method: &&str| match *method {
        "system-cat" | "copy-file-range" => false,
        "io-uring" => has_io_uring,
        _ => true,
    };
    words::<CopyMethod>().iter().copied().filter(is_tried)
}

/// Returns a shorter length for methods that make a call for each byte.
fn length_for(method: &str) -> usize {
    if method == "byte" { 10_000 } else { 3_000_001 }
}

#[test]
fn every_method_copies_files_into_a_pipe() {
    let files = Files::new();
    files.file("empty", b"");
    for method in methods() {
        let all = content(length_for(method));
        files.file("in", &all);
        let arguments = ["--method", method, "in", "empty", "in"];
        let output = files.run(&arguments).succeeded();
        assert_same(&output, &[&all[..], &all].concat(), method);
    }
}

#[test]
fn every_method_writes_files_where_the_sink_stands() {
    let files = Files::new();
    for method in methods().chain(["copy-file-range"]) {
        let all = content(length_for(method));
        files.file("in", &all);
        files.file("out", b"old, and kept");
        let mut sink = writable(files.path("out"));
        sink.seek(SeekFrom::Start(5)).unwrap();
        let arguments = ["--method", method, "in", "in"];
        files
            .run_between(Stdio::null(), &arguments, sink)
            .succeeded();
        let expected = [&b"old, "[..], &all, &all].concat();
        assert_same(&files.content("out"), &expected, method);
    }
}

#[test]
fn what_needs_a_known_length_refuses_a_pipe_and_the_others_read_it() {
    let files = Files::new();
    for method in methods() {
        let all = content(length_for(method));
        let ended = files.run_with_pipes(&all, &["--method", method]);
        if ["mmap", "vmsplice", "io-uring"].contains(&method) {
            let message = "meow: cannot copy - by this method: its length is not known; \
                           choose another method";
            assert_eq!(ended.failed(&[message]), b"", "{method}");
        } else if ["advised", "advised-random", "sendfile"].contains(&method) {
            // A pipe takes no advice and has no pages of its own.
            let is_told = ended.errors.starts_with("meow: cannot ");
            assert!(is_told && ended.status.code() == Some(1), "{method}");
        } else {
            assert_same(&ended.succeeded(), &all, method);
        }
    }
}

#[test]
fn a_file_of_the_kernels_own_is_copied_or_refused_but_never_taken_for_empty() {
    let expected = std::fs::read("/proc/version").unwrap();
    let files = Files::new();
    for method in methods() {
        let ended = files.run(&["--method", method, "/proc/version"]);
        if ended.status.success() {
            assert_eq!(ended.output, expected, "{method}")
        } else {
            assert!(ended.errors.starts_with("meow: cannot "), "{method}")
        }
    }
}

#[test]
fn the_rest_of_a_file_is_copied_or_refused() {
    let files = Files::new();
    let all = content(100_000);
    files.file("in", &all);
    for method in methods() {
        let mut source = files.open("in");
        source.seek(SeekFrom::Start(4_097)).unwrap();
        let ended = files.run_between(source, &["--method", method], Stdio::piped());
        if ["mmap", "io-uring"].contains(&method) {
            let message = "meow: cannot copy - by this method: part of it was already read; \
                           choose another method";
            ended.failed(&[message]);
        } else {
            assert_same(&ended.succeeded(), &all[4_097..], method);
        }
    }
}

#[test]
fn what_the_kernel_refuses_is_told_and_not_done_another_way() {
    let files = Files::new();
    files.file("in", b"content");
    let ended = files.run(&["--method", "copy-file-range", "in"]);
    let message = "meow: cannot copy_file_range from in to standard output: ";
    assert!(ended.errors.starts_with(message), "{}", ended.errors);
    assert_eq!((ended.status.code(), ended.output), (Some(1), Vec::new()));
}

#[test]
fn the_names_of_the_reports_programs_stand_for_their_methods() {
    let files = Files::new();
    let all = content(10_000);
    files.file("in", &all);
    let ways = [
        "buffer of 1 bytes",
        "buffer of 4096 bytes",
        "buffer of 4096 bytes, 0 bytes past",
        "0 bytes past a page boundary",
        "buffer of 524288 bytes",
        "buffer of 524288 bytes",
    ];
    for (number, way) in (1..).zip(ways) {
        let mut command = Command::new(MEOW);
        command.arg0(format!("./mycat{number}"));
        command.arg("--explain").arg(files.path("in"));
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let ended = run(command);
        let printed = &ended.errors;
        assert!(printed.contains(way), "mycat{number}: {printed}");
        assert_same(&ended.output, &all, way);
    }
}
