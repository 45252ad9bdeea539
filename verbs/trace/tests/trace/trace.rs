//! `toll trace` on real programs: what it counts, and that it does not disturb them.

use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use toll_testing::{
    Bench, Ran, Running, can_trace, has, has_program, lacks, list, make_executable, skip,
    wait_until,
};

/// Directories in which tracing with strace works.
fn bench() -> Option<Bench> {
    let bench = Bench::new();
    can_trace(&bench).then_some(bench)
}

/// Runs a test with each counter that works here, in a directory of its own.
fn with_each(test: impl Fn(&Bench, &str)) {
    for with in ["--with=bpf", "--with=strace"] {
        let bench = Bench::new();
        let ran = bench.run(&["trace", "--no-prices", with, "true"]);
        match ran.code {
            Some(5) => skip(ran.stderr.trim()),
            _ => test(&bench, with),
        }
    }
}

/// Traces a command without prices, and returns the report.
#[track_caller]
fn traced(bench: &Bench, options: &[&str], command: &[&str]) -> (Ran, Value) {
    let fixed = ["trace", "--no-prices", "--json", "-o", "trace.json"];
    let ran = bench.run(&[&fixed, options, &["--"], command].concat());
    (ran, report(bench))
}

#[track_caller]
pub fn report(bench: &Bench) -> Value {
    serde_json::from_str(&bench.read("trace.json")).expect("one JSON document")
}

#[track_caller]
fn call<'a>(report: &'a Value, name: &str) -> &'a Value {
    let calls = list(&report["calls"]);
    let found = calls.iter().find(|call| call["name"] == name);
    found.unwrap_or_else(|| panic!("no {name}: {report:#}"))
}

#[track_caller]
pub fn file<'a>(report: &'a Value, end: &str) -> &'a Value {
    let mut files = list(&report["files"]).iter();
    let found = files.find(|file| {
        file["name"]
            .as_str()
            .is_some_and(|name| name.ends_with(end))
    });
    found.unwrap_or_else(|| panic!("no {end}: {report:#}"))
}

#[test]
fn every_read_and_write_of_dd_is_counted_by_its_size() {
    with_each(|bench, with| {
        bench.write("in", &"x".repeat(1000));
        let command = ["dd", "if=in", "of=out", "bs=1", "status=none"];
        let (ran, report) = traced(bench, &[with], &command);
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", ""));
        assert_eq!(report["ended"]["status"], 0);
        let read = &file(&report, "/in")["read"];
        assert_eq!(read["bytes"], 1000);
        assert_eq!(read["calls"], 1001, "the end of the file is a read, too");
        assert_eq!(read["sizes"]["buckets"]["1"]["calls"], 1000);
        assert_eq!(read["sizes"]["buckets"]["0"]["calls"], 1);
        let written = &file(&report, "/out")["written"];
        assert_eq!(
            (&written["bytes"], &written["calls"]),
            (&1000.into(), &1000.into())
        );
        assert!(call(&report, "write")["calls"].as_u64() >= Some(1000));
        assert!(call(&report, "write")["traced_ns"].as_u64() > Some(0));
        assert_eq!(list(&report["notes"]), [] as [Value; 0], "{report:#}");
    });
}

#[test]
fn children_and_pipes_are_followed() {
    with_each(|bench, with| {
        bench.write("in", &"x".repeat(100_000));
        let line = "dd if=in bs=1000 status=none | cat >out; exit 7";
        let (ran, report) = traced(bench, &[with], &["sh", "-c", line]);
        assert_eq!(ran.code, Some(7), "{ran:#?}");
        assert_eq!(bench.read("out").len(), 100_000);
        let pipe = list(&report["files"])
            .iter()
            .find(|file| file["kind"] == "pipe" && file["written"]["bytes"] == 100_000);
        let pipe = pipe.unwrap_or_else(|| panic!("no pipe: {report:#}"));
        assert_eq!(pipe["written"]["calls"], 100);
        assert!(report["threads"].as_u64() >= Some(3));
        assert_eq!(list(&report["notes"]), [] as [Value; 0], "{report:#}");
    });
}

#[test]
fn programs_that_hardly_matter_are_left_out_unless_asked_for() {
    with_each(|bench, with| {
        bench.write("small", "x");
        // Far longer than cat, even if cat waits for the disk: with BPF a call takes less than
        // a microsecond, with strace about 30.
        let calls = if with == "--with=bpf" {
            2_000_000
        } else {
            50_000
        };
        let line =
            format!("cat small; dd if=/dev/zero of=/dev/null bs=1 count={calls} status=none");
        let line = line.as_str();
        let (_, report) = traced(bench, &[with], &["sh", "-c", line]);
        let programs = list(&report["programs"]);
        assert_eq!(programs[0]["name"], "dd", "{programs:#?}");
        assert_eq!(programs[0]["is_helper"], false);
        let cat = programs.iter().find(|program| program["name"] == "cat");
        assert_eq!(cat.expect("it ran")["is_helper"], true, "{programs:#?}");
        assert_eq!(file(&report, "/small")["is_of_helpers"], true);
        let text = |option: &str| {
            let words = [
                "trace",
                "--no-prices",
                "-o",
                "summary",
                with,
                option,
                "sh",
                "-c",
                line,
            ];
            bench.ok(&words
                .into_iter()
                .filter(|word| !word.is_empty())
                .collect::<Vec<_>>());
            // A long path may be folded at any place.
            bench.read("summary").split_whitespace().collect::<String>()
        };
        let short = text("");
        has(&short, &["--helpersshowsthem"]);
        lacks(&short, &["/small"]);
        let long = text("--helpers");
        has(&long, &["/small"]);
        lacks(&long, &["showsthem"]);
    });
}

#[test]
fn threads_that_cut_each_others_lines_in_two_are_all_counted() {
    if !has_program("python3") {
        return skip("python3 is missing");
    }
    with_each(|bench, with| {
        let script = bench.write(
            "threads.py",
            "import os, threading\n\
         pipes = [os.pipe() for _ in range(4)]\n\
         def put(fd):\n    [os.write(fd, b'abc') for _ in range(200)]\n    os.close(fd)\n\
         def get(fd):\n    while os.read(fd, 3): pass\n\
         all = [threading.Thread(target=put, args=(w,)) for _, w in pipes]\n\
         all += [threading.Thread(target=get, args=(r,)) for r, _ in pipes]\n\
         [t.start() for t in all]\n[t.join() for t in all]\n",
        );
        let script = script.to_str().expect("UTF-8");
        let (ran, report) = traced(bench, &[with], &["python3", script]);
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        let pipes = list(&report["files"])
            .iter()
            .filter(|file| file["kind"] == "pipe" && file["written"]["calls"] == 200);
        let sums = pipes.map(|pipe| {
            assert_eq!(pipe["read"]["bytes"], 600, "{pipe:#}");
            assert_eq!(pipe["written"]["bytes"], 600, "{pipe:#}");
        });
        assert_eq!(sums.count(), 4, "{report:#}");
        assert_eq!(list(&report["notes"]), [] as [Value; 0], "{report:#}");
    });
}

#[test]
fn the_command_has_the_standard_streams_to_itself() {
    let Some(bench) = bench() else { return };
    let ran = bench.shell("printf 'a\\0b' | toll trace --no-prices cat | od -An -c");
    assert_eq!(
        ran.stdout.split_whitespace().collect::<Vec<_>>(),
        ["a", "\\0", "b"]
    );
    assert!(ran.stderr.contains("trace: cat"), "{ran:#?}");
    assert!(ran.stderr.contains("ended with status 0"), "{ran:#?}");
    // The command's own output on standard error stays whole, before the summary.
    let ran = bench.run("trace --no-prices sh -c 'echo words >&2'");
    assert!(
        ran.stderr.starts_with("words\n\ntrace: sh -c echo words"),
        "{ran:#?}"
    );
    assert_eq!(ran.stdout, "");
    let ran = bench.run("trace --no-prices -o - true");
    assert!(
        ran.stdout.contains("trace: true") && ran.stderr.is_empty(),
        "{ran:#?}"
    );
}

#[test]
fn options_behind_the_command_are_the_commands() {
    let Some(bench) = bench() else { return };
    let command = ["echo", "-P", "a", "b", "--json", "--", "-D"];
    let ran = bench.ok(&[&["trace", "--no-prices"], &command[..]].concat());
    assert_eq!(ran.stdout, "-P a b --json -- -D\n");
}

#[test]
fn a_death_by_signal_is_told_and_handed_on() {
    with_each(|bench, with| {
        let (ran, report) = traced(bench, &[with], &["sh", "-c", "kill -KILL $$"]);
        assert_eq!(ran.code, Some(128 + 9), "{ran:#?}");
        assert_eq!(report["ended"]["signal"], 9);
    });
}

#[test]
fn a_signal_to_toll_reaches_the_command_and_the_summary_comes_all_the_same() {
    with_each(|bench, with| {
        for (signal, status) in [(Signal::TERM, 143), (Signal::HUP, 129)] {
            let _ = std::fs::remove_file(bench.path("started"));
            let line = "echo x >started; exec sleep 100";
            let arguments = [
                "trace",
                "--no-prices",
                with,
                "-o",
                "summary",
                "sh",
                "-c",
                line,
            ];
            let mut command = bench.spawnable(&arguments);
            let mut running = Running(command.stdin(Stdio::null()).spawn().expect("toll starts"));
            wait_until("the command has begun", || bench.path("started").exists());
            let pid = Pid::from_raw(i32::try_from(running.0.id()).expect("a process"));
            kill_process(pid.expect("a process"), signal).expect("it is ours");
            let ended = running.0.wait().expect("it can be waited for");
            assert_eq!(ended.code(), Some(status));
            let actual = format!("ended by signal {}", status - 128);
            assert!(
                bench.read("summary").contains(&actual),
                "{}",
                bench.read("summary")
            );
        }
    });
}

#[test]
fn a_strace_that_may_not_trace_is_a_missing_prerequisite() {
    let bench = Bench::new();
    let script =
        "#!/bin/sh\necho 'strace: ptrace(PTRACE_SEIZE, 5): Operation not permitted' >&2\nexit 1\n";
    std::fs::create_dir(bench.path("bin")).expect("the test's directory takes files");
    make_executable(&bench.write("bin/strace", script));
    let ran = bench.shell("PATH=$PWD/bin:$PATH toll trace --with strace echo it ran");
    assert_eq!(ran.code, Some(5), "{ran:#?}");
    assert!(ran.stderr.contains("SYS_PTRACE"), "{ran:#?}");
    assert_eq!(ran.stdout, "", "the command must not run");
}

#[test]
fn hostile_names_of_files_reach_neither_the_terminal_nor_the_parser() {
    with_each(|bench, with| {
        let name = "a>b) = 5 <0.1\n12 read(\"\u{1b}[31mä\\";
        std::fs::write(bench.path(name), "12345").expect("Linux takes any name");
        let (ran, report) = traced(bench, &[with], &["cat", name]);
        assert_eq!(ran.stdout, "12345");
        assert_eq!(file(&report, name)["read"]["bytes"], 5);
        assert_eq!(list(&report["notes"]), [] as [Value; 0], "{report:#}");
        let ran = bench.ok(&["trace", "--no-prices", with, "cat", name]);
        assert!(!ran.stderr.contains('\u{1b}'), "{ran:#?}");
        assert!(ran.stderr.contains("a>b) = 5 <0.1 12 read"), "{ran:#?}");
    });
}

#[test]
fn all_calls_are_counted_if_wanted() {
    with_each(|bench, with| {
        let (_, some) = traced(bench, &[with], &["cat", "/nowhere"]);
        assert!(
            list(&some["calls"])
                .iter()
                .all(|call| call["name"] != "openat")
        );
        let (ran, all) = traced(bench, &["--all", with], &["cat", "/nowhere"]);
        assert_eq!(ran.code, Some(1), "{ran:#?}");
        assert!(call(&all, "openat")["errors"]["ENOENT"].as_u64() >= Some(1));
        assert_eq!(list(&all["notes"]), [] as [Value; 0], "{all:#}");
    });
}

/// Traces a command with a list of its calls, and returns the report and the calls.
#[track_caller]
fn listed(bench: &Bench, command: &[&str]) -> (Value, Vec<Value>) {
    let (_, report) = traced(bench, &["--calls"], command);
    assert_eq!(list(&report["notes"]), [] as [Value; 0], "{report:#}");
    let listed = list(&report["call_list"]).iter();
    let calls = listed.filter(|one| one["signal"].is_null());
    let calls = calls.cloned().collect();
    (report, calls)
}

/// Whether a call has this name and an argument that contains a text.
fn is_call(call: &Value, name: &str, text: &str) -> bool {
    let holds = |argument: &Value| argument.as_str().is_some_and(|own| own.contains(text));
    call["name"] == name && list(&call["arguments"]).iter().any(holds)
}

#[test]
fn listed_calls_show_what_the_dynamic_linker_does() {
    let Some(bench) = bench() else { return };
    bench.write("in", "hello");
    let (report, calls) = listed(&bench, &["/bin/cat", "in"]);
    let position = |name, text| {
        let is_it = |call: &Value| {
            // The linker may try directories without a libc first.
            is_call(call, name, text) && (name != "openat" || call["error"].is_null())
        };
        calls.iter().position(is_it)
    };
    let Some(libc) = position("openat", "/libc.so.6\"") else {
        return skip("/bin/cat is not linked to glibc here");
    };
    let preload = position("access", "\"/etc/ld.so.preload\"").expect("it is looked up");
    let storage = position("arch_prctl", "ARCH_SET_FS").expect("threads have storage");
    assert!(preload < libc && libc < storage, "{calls:#?}");
    assert!(is_call(&calls[0], "execve", "[\"/bin/cat\", \"in\"]"));
    assert_eq!(calls[0]["begin_ns"], 0);
    let returned = calls[libc]["returned"].as_str().expect("it returned");
    assert!(returned.starts_with("3</"), "{returned}");
    assert!(calls[libc]["duration_ns"].as_u64() > Some(0));
    let begins: Vec<u64> = calls
        .iter()
        .filter_map(|one| one["begin_ns"].as_u64())
        .collect();
    assert!(begins.is_sorted(), "one thread's calls follow each other");
    let read = calls.iter().find(|call| is_call(call, "read", "hello"));
    assert_eq!(read.expect("what was read")["returned"], "5");
    // The list and the summary cover the same calls.
    let counted = list(&report["calls"]).iter();
    let counted: u64 = counted.filter_map(|call| call["calls"].as_u64()).sum();
    assert_eq!(counted, calls.len() as u64);
}

#[test]
fn listed_errors_threads_and_calls_that_never_return_are_told() {
    let Some(bench) = bench() else { return };
    // A traced process in state S is in a call, not stopped before one.
    let line = "cat /nowhere 2>/dev/null; sleep 1000 & until \
                grep -q sleep /proc/$!/comm && grep -q '^State:.S' /proc/$!/status; do :; done; \
                kill -KILL $!; wait";
    let (report, calls) = listed(&bench, &["bash", "-c", line]);
    let missing = calls
        .iter()
        .find(|call| is_call(call, "openat", "\"/nowhere\""));
    let missing = missing.expect("cat opens it");
    assert_eq!(missing["error"], "ENOENT");
    assert_eq!(missing["returned"], "-1 ENOENT (No such file or directory)");
    let mut threads: Vec<_> = calls.iter().map(|call| call["thread"].as_u64()).collect();
    threads.sort_unstable();
    threads.dedup();
    assert_eq!(report["threads"], threads.len());
    let waits = |call: &&Value| call["returned"].is_null();
    let never: Vec<&Value> = calls.iter().filter(waits).collect();
    assert_eq!(never.len(), 1, "{never:#?}");
    assert_eq!(never[0]["name"], "clock_nanosleep");
}

#[test]
fn listed_signals_come_where_they_came() {
    let Some(bench) = bench() else { return };
    let line = "trap : USR1; kill -USR1 $$; bash -c 'kill -TERM $$'; :";
    let (_, report) = traced(&bench, &["--calls"], &["bash", "-c", line]);
    let all = list(&report["call_list"]);
    let place = |name: &str, details: &str| {
        let is_it = |one: &Value| {
            let own = one["details"].as_str().unwrap_or_default();
            one["signal"] == name && own.starts_with(details)
        };
        all.iter().position(is_it)
    };
    let handled = place("SIGUSR1", "{si_signo=SIGUSR1").expect("it sends itself one");
    let sent = all.iter().position(|one| is_call(one, "kill", "SIGUSR1"));
    assert!(sent.is_some_and(|sent| sent < handled), "{all:#?}");
    let killed = place("SIGTERM", "killed").expect("the child ends by it");
    assert_ne!(all[killed]["thread"], all[handled]["thread"]);
    let child = place("SIGCHLD", "{si_signo=SIGCHLD").expect("bash hears of the child's end");
    assert!(killed < child, "{all:#?}");

    let options = ["trace", "--no-prices", "--calls", "bash", "-c", line];
    let ran = bench.ok(&options);
    let shown = [" s --- SIGUSR1 {si_signo=SIGUSR1", "--- SIGTERM killed ---"];
    has(&ran.stderr, &shown);
}

#[test]
fn the_list_goes_before_the_summary_and_folds_only_where_a_width_is_told() {
    let Some(bench) = bench() else { return };
    let name = "a>b) = 5 <0.1\n\u{1b}[31mä  x\\";
    std::fs::write(bench.path(name), "1\u{1b}[31m2").expect("Linux takes any name");
    let options = ["trace", "--no-prices", "--calls", "cat", name];
    let ran = bench.ok(&options);
    assert!(!ran.stderr.contains('\u{1b}'), "{ran:#?}");
    let escaped = r#""a>b) = 5 <0.1\n\33[31m\303\244  x\\""#;
    let (calls, summary) = ran.stderr.split_once("\n\n").expect("a list, a summary");
    let opened = calls
        .lines()
        .find(|line| line.contains(&format!("{escaped}, O_RDONLY")));
    let opened = opened.unwrap_or_else(|| panic!("{calls}"));
    assert!(
        opened.starts_with("+0.") && opened.ends_with("s>"),
        "{opened}"
    );
    assert!(calls.contains(r#""1\33[31m2""#), "{calls}");
    assert!(calls.lines().all(|line| line.starts_with('+')), "{calls}");
    assert!(summary.starts_with("trace: cat"), "{summary}");

    let folded = bench.shell("COLUMNS=40 toll trace --no-prices --calls true");
    assert_eq!(folded.code, Some(0), "{folded:#?}");
    for line in folded.stderr.lines() {
        assert!(line.chars().count() <= 40, "{line}");
    }
    // In a file a call is one line, no matter how wide the terminal is.
    bench.shell("COLUMNS=40 toll trace --no-prices --calls -o calls true");
    let text = bench.read("calls");
    let preload =
        r#" access("/etc/ld.so.preload", R_OK) = -1 ENOENT (No such file or directory) <"#;
    has(&text, &["ld.so.preload", preload]);
}

#[test]
fn a_list_that_cannot_be_written_is_told_and_one_nobody_reads_is_not() {
    let Some(bench) = bench() else { return };
    let line = "trace --no-prices --calls -o /dev/full echo x";
    let ran = bench.run(line);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(1), "x\n"),
        "{ran:#?}"
    );
    has(&ran.stderr, &["cannot write the list of calls"]);
    let ran = bench.shell(
        "set -o pipefail; toll trace --no-prices --calls -o - dd if=/dev/zero of=/dev/null bs=1 \
         count=5000 status=none | head -1",
    );
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert!(ran.stdout.contains("execve("), "{ran:#?}");
}

#[test]
fn the_summary_fits_a_narrow_terminal_and_names_as_many_files_as_asked_for() {
    let Some(bench) = bench() else { return };
    bench.write("in", &"x".repeat(100));
    let command =
        "COLUMNS=40 toll trace --no-prices --top 1 dd if=in of=/dev/null bs=1 status=none";
    let ran = bench.shell(command);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    for line in ran.stderr.lines() {
        assert!(line.chars().count() <= 40, "{line}");
    }
    assert!(ran.stderr.contains("--top shows more"), "{ran:#?}");
    let ascii = bench.shell(&command.replace("COLUMNS", "LC_ALL=C COLUMNS"));
    assert!(ascii.stderr.is_ascii(), "{ascii:#?}");
}

#[test]
fn both_count_the_same() {
    let line = "cat in in >/dev/null; dd if=in of=out bs=7 status=none; tail -c 10 in | wc -c";
    let seen = std::cell::RefCell::new(Vec::new());
    with_each(|bench, with| {
        bench.write("in", &"x".repeat(10_000));
        let (_, report) = traced(bench, &[with], &["sh", "-c", line]);
        let of_file = |way: &str| {
            let files = list(&report["files"]).iter();
            let mut flows: Vec<String> = files
                .filter(|file| file["kind"] != "pipe")
                .filter(|file| !file[way].is_null())
                .map(|file| {
                    let name = file["name"].as_str().expect("a name");
                    let name = name.rsplit('/').next().expect("a part");
                    let (sizes, seeks) = (&file[way]["sizes"], &file["seeks"]);
                    format!("{name} {way} {sizes} {seeks} {}", file["kind"])
                })
                .collect();
            flows.sort();
            flows
        };
        let calls = list(&report["calls"]).iter().map(|call| {
            let (name, calls, errors) = (&call["name"], &call["calls"], &call["errors"]);
            format!("{name} {calls} {errors} {}", call["bytes"])
        });
        let mut calls: Vec<String> = calls.collect();
        calls.sort();
        let programs = list(&report["programs"]).iter();
        let mut programs: Vec<String> = programs
            .map(|program| program["name"].to_string())
            .collect();
        programs.sort();
        let files = (of_file("read"), of_file("written"));
        seen.borrow_mut()
            .push((calls, files, programs, report["threads"].clone()));
    });
    let seen = seen.into_inner();
    if let [bpf, strace] = &seen[..] {
        assert_eq!(bpf, strace);
    }
}
