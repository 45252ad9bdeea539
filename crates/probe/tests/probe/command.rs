//! The command workload, from request to response.

use std::path::PathBuf;

use toll_wire::{
    CommandRequest, Content, FailureKind, InputFile, Outcome, OutputPolicy, Request, Sample,
    Workload,
};

use crate::common::{
    answer_request, answer_under_strace, ask, by_shell, command as direct, completed, directory,
    failed, skip,
};

fn run(command: &CommandRequest) -> Outcome {
    ask(&Workload::Command(command.clone()))
}

fn sample_of(command: &CommandRequest) -> Sample {
    completed(run(command), &command.command).samples.remove(0)
}

fn failure_of(command: &CommandRequest) -> String {
    failed(run(command), FailureKind::Failed, &command.command)
}

#[test]
fn a_command_is_accounted_for_from_outside() {
    let metrics = sample_of(&direct("sleep 0.05")).metrics;
    assert!(metrics["duration_ns"] >= 5e7, "{metrics:?}");
    assert_eq!(metrics["exit_status"], 0.0);
    for name in ["user_ns", "system_ns", "max_rss_bytes", "minor_faults"] {
        assert!(metrics.contains_key(name), "{name}");
    }
    assert!(metrics.contains_key("block_input_bytes"));
}

#[test]
fn words_are_split_as_a_shell_would() {
    let command = CommandRequest {
        capture_bytes_max: 100,
        ..direct("printf '%s|' 'a b' c\\ d \"e\"")
    };
    assert_eq!(sample_of(&command).stdout.unwrap(), "a b|c d|e|");
}

#[test]
fn a_failed_end_is_told_with_the_last_words_or_its_signal_and_may_be_ignored() {
    for (line, words, status) in [
        (
            "echo first >&2; echo bad >&2; exit 3",
            "exit status 3: bad; use --ignore-failure",
            3.0,
        ),
        ("kill -9 $$", "killed by signal 9 (SIGKILL)", 137.0),
        (
            "yes no | head -c 6000000 >&2; echo last words >&2; exit 3",
            "exit status 3: last words",
            3.0,
        ),
    ] {
        let command = by_shell(line);
        let message = failure_of(&command);
        assert!(message.contains(words), "{message}");
        let ignored = CommandRequest {
            ignore_failure: true,
            ..command
        };
        assert_eq!(sample_of(&ignored).metrics["exit_status"], status, "{line}");
    }
}

#[test]
fn what_cannot_be_run_fails_with_the_reason() {
    let missing = CommandRequest {
        ignore_failure: true,
        ..direct("toll-has-no-such-program")
    };
    let unprepared = CommandRequest {
        prepare: Some("echo not today >&2; exit 4".to_owned()),
        ..direct("true")
    };
    let nowhere = CommandRequest {
        directory: Some(PathBuf::from("/nonexistent")),
        ..direct("true")
    };
    for (command, words) in [
        (missing, "no such file or directory"),
        (direct(""), "empty command"),
        (direct("'a b"), "a quote or escape is not closed"),
        (unprepared, "exit status 4: not today"),
        (nowhere, "cannot enter /nonexistent"),
    ] {
        let message = failure_of(&command);
        assert!(message.contains(words), "{message}");
    }
}

#[test]
fn huge_output_is_drained_and_its_start_kept() {
    for output in [OutputPolicy::Pipe, OutputPolicy::Null] {
        let command = CommandRequest {
            output,
            capture_bytes_max: 7,
            ..by_shell("yes | head -c 50000000; yes no | head -c 5000000 >&2")
        };
        let sample = sample_of(&command);
        assert_eq!(sample.stdout.unwrap(), "y\ny\ny\ny");
        assert_eq!(sample.stderr.unwrap(), "no\nno\nn");
    }
}

/// Without counters the thread that waits for the command reads them, otherwise
/// another thread.
#[test]
fn more_errors_than_a_pipe_holds_are_received_with_and_without_counters() {
    let directory = directory();
    for counters in [vec![], vec!["task-clock-ns".to_owned()]] {
        let command = CommandRequest {
            output: OutputPolicy::File(directory.path().join("output")),
            capture_bytes_max: 7,
            ..by_shell("yes no | head -c 5000000 >&2")
        };
        let mut request = Request::new(Workload::Command(command));
        request.counters = counters;
        request.iterations = 2;
        let data = completed(answer_request(&request), "errors");
        for sample in data.samples {
            assert_eq!(sample.stderr.as_deref(), Some("no\nno\nn"));
        }
    }
}

#[test]
fn a_child_left_behind_that_complains_for_ever_does_not_hold_the_probe() {
    // Once the probe is gone, writing to its pipe ends the child.
    let sample = sample_of(&by_shell("yes >&2 & sleep 0.02"));
    assert_eq!(sample.metrics["exit_status"], 0.0);
}

#[test]
fn output_to_a_file_is_written_anew_and_captured_from_it() {
    let directory = directory();
    let path = directory.path().join("output");
    let command = CommandRequest {
        output: OutputPolicy::File(path.clone()),
        capture_bytes_max: 3,
        ..direct("echo hello")
    };
    let mut request = Request::new(Workload::Command(command));
    request.iterations = 2;
    let data = completed(answer_request(&request), "to a file");
    assert_eq!(data.samples[1].stdout.as_deref(), Some("hel"));
    assert_eq!(std::fs::read_to_string(path).unwrap(), "hello\n");
}

#[test]
fn nothing_is_captured_unless_asked() {
    let sample = sample_of(&by_shell("echo a; echo b >&2"));
    assert_eq!((sample.stdout, sample.stderr), (None, None));
}

#[test]
fn a_child_left_behind_with_the_pipes_does_not_hold_the_probe() {
    let directory = directory();
    let command = CommandRequest {
        output: OutputPolicy::Pipe,
        capture_bytes_max: 100,
        directory: Some(directory.path().to_owned()),
        // The child waits for permission to end, so that the test does not
        // depend on speed. It also ends when its directory is removed.
        ..by_shell("while test -e \"$PWD\" && ! test -e leave; do sleep 0.02; done & echo ready")
    };
    let sample = sample_of(&command);
    std::fs::write(directory.path().join("leave"), "").unwrap();
    assert_eq!(sample.stdout.unwrap(), "ready\n");
}

#[test]
fn a_child_left_behind_that_prints_for_ever_does_not_hold_the_probe() {
    let command = CommandRequest {
        output: OutputPolicy::Pipe,
        capture_bytes_max: 4,
        // The captured lines are printed before the child starts, because it
        // may print late. Once the probe is gone, writing to its pipe ends the
        // child.
        ..by_shell("echo y; echo y; yes & sleep 0.02")
    };
    assert_eq!(sample_of(&command).stdout.unwrap(), "y\ny\n");
}

#[test]
fn preparation_runs_before_every_iteration_in_the_directory() {
    let directory = directory();
    let command = CommandRequest {
        prepare: Some("echo x >> count".to_owned()),
        directory: Some(directory.path().to_owned()),
        capture_bytes_max: 100,
        ..by_shell("wc -l < count")
    };
    let mut request = Request::new(Workload::Command(command));
    request.iterations = 2;
    request.warmup_iterations = 1;
    let data = completed(answer_request(&request), "prepared");
    let counts: Vec<_> = data
        .samples
        .iter()
        .map(|sample| sample.stdout.as_deref().unwrap().trim())
        .collect();
    assert_eq!(counts, ["2", "3"]);
}

#[test]
fn counters_follow_the_command() {
    let mut request = Request::new(Workload::Command(direct("true")));
    request.counters = vec!["page-faults".to_owned()];
    let data = completed(answer_request(&request), "counted");
    match data.samples[0].counters.get("page-faults") {
        // Starting any program faults in its pages.
        Some(reading) => assert!(reading.count > 10, "{reading:?}"),
        None => skip(&data.counters_missing["page-faults"]),
    }
}

#[test]
fn more_capture_than_a_response_holds_is_refused() {
    let mut request = Request::new(Workload::Command(CommandRequest {
        capture_bytes_max: 1 << 20,
        ..direct("true")
    }));
    request.iterations = 100;
    failed(
        answer_request(&request),
        FailureKind::Instrument,
        "too much",
    );
}

/// Makes a file of 1.5 MB; returns its path and its known content.
fn content(directory: &std::path::Path) -> (PathBuf, Content) {
    let path = directory.join("input");
    let bytes: Vec<u8> = (0..1_500_001_u32).map(|i| (i / 7 % 251) as u8).collect();
    std::fs::write(&path, &bytes).unwrap();
    let known = Content {
        size_bytes: bytes.len() as u64,
        xxh3: xxhash_rust::xxh3::xxh3_64(&bytes),
    };
    (path, known)
}

/// Runs a command that copies the file, with each kind of input and output.
fn copies(command: &str, then: impl Fn(&CommandRequest)) {
    let directory = directory();
    let (path, known) = content(directory.path());
    let outputs = [
        OutputPolicy::Pipe,
        OutputPolicy::PipeSpliced,
        OutputPolicy::Socket,
        OutputPolicy::NewFile(directory.path().to_owned()),
    ];
    for is_piped in [false, true] {
        for output in &outputs {
            then(&CommandRequest {
                input: Some(InputFile {
                    path: path.clone(),
                    is_piped,
                    warm_bytes: Some(known.size_bytes),
                }),
                output: output.clone(),
                expected: Some(known),
                ..direct(command)
            });
            let left: Vec<_> = std::fs::read_dir(directory.path()).unwrap().collect();
            assert_eq!(left.len(), 1, "{output:?} leaves a file behind");
        }
    }
}

#[test]
fn a_command_copies_from_file_and_pipe_to_every_sink() {
    copies("cat", |command| {
        let sample = sample_of(command);
        assert!(sample.metrics["duration_ns"] > 0.0, "{command:?}");
    });
}

#[test]
fn a_command_that_drops_or_changes_a_byte_is_found_out() {
    for (wrong, why) in [
        ("tail -c +2", "arrived instead of"),
        ("tr a b", "hashes to"),
    ] {
        copies(wrong, |command| {
            let message = failure_of(command);
            assert!(message.contains(why), "{wrong}: {message}");
        });
    }
}

#[test]
fn a_child_left_behind_does_not_hold_a_sink() {
    copies("sh -c 'cat; sleep 1000 &'", |command| {
        // One kind of input is enough for a test that takes seconds.
        if command.input.as_ref().is_some_and(|input| !input.is_piped) {
            let sample = sample_of(command);
            assert!(sample.metrics["duration_ns"] < 60e9);
        }
    });
}

#[test]
fn commands_run_where_the_kernel_refuses_descriptors_of_processes() {
    for errno in ["ENOSYS", "EPERM"] {
        let rule = format!("inject=pidfd_open:error={errno}");
        for line in ["true", "echo out; echo err >&2", "exit 3"] {
            let mut command = by_shell(line);
            command.ignore_failure = true;
            let request = Request::new(Workload::Command(command));
            let Some(outcome) = answer_under_strace(&["-e", &rule], &request) else {
                return;
            };
            let sample = completed(outcome, line).samples.remove(0);
            let status = if line == "exit 3" { 3.0 } else { 0.0 };
            assert_eq!(sample.metrics["exit_status"], status, "{errno} {line}");
        }
    }
}

#[test]
fn what_a_command_leaves_running_is_ended_where_the_kernel_lists_no_children() {
    let directory = directory();
    let number = directory.path().join("number");
    let line = format!("setsid sleep 60 & echo $! >{}", number.display());
    let request = Request::new(Workload::Command(by_shell(&line)));
    let rule = ["-P", "children", "-e", "inject=openat:error=ENOENT"];
    let Some(outcome) = answer_under_strace(&rule, &request) else {
        return;
    };
    completed(outcome, &line);
    let number = std::fs::read_to_string(number).unwrap();
    let process = std::path::Path::new("/proc").join(number.trim());
    assert!(!process.exists(), "{}", process.display());
}
