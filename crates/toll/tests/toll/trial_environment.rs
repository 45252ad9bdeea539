//! Which of the user's environment variables reach a trial.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use toll_testing::{Bench, has, lacks, list, make_executable, probe};

/// Returns the variables with which the fake probe was started.
fn of_the_probe(bench: &Bench) -> BTreeMap<String, String> {
    let text = bench.read("probe-environment");
    let lines = text.split('\0').filter_map(|line| line.split_once('='));
    lines
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// Prepares a bench whose probe records its environment before it becomes the real one.
fn noting() -> Bench {
    let bench = Bench::new();
    let script = bench.write(
        "noting-probe",
        &format!(
            "#!/bin/sh\ncat /proc/$$/environ >{}\nexec {} \"$@\"\n",
            bench.path("probe-environment").display(),
            probe().display()
        ),
    );
    make_executable(&script);
    bench
}

#[test]
fn the_probe_gets_a_short_list_of_variables_and_nothing_of_the_users() {
    let bench = noting();
    let mut toll = bench
        .toll("run -q --no-html -r 3 --profile quick -L size=4KiB -L fs=work -L method=byte cat");
    toll.env("TOLL_PROBE", bench.path("noting-probe"))
        .env("GLIBC_TUNABLES", "glibc.malloc.check=0")
        .env("LD_LIBRARY_PATH", "/nowhere")
        .env("MALLOC_ARENA_MAX", "1")
        .env("LANG", "C.UTF-8")
        .env("SECRET", "hush");
    assert!(toll.output().unwrap().status.success());
    let names: Vec<String> = of_the_probe(&bench).into_keys().collect();
    assert_eq!(names, ["HOME", "LC_ALL", "PATH", "TOLL_PADDING"]);
}

#[test]
fn a_command_gets_the_users_variables_as_they_are() {
    let bench = Bench::new();
    let output = bench.path("seen");
    let line = format!("cat /proc/self/environ >{}", output.display());
    let odd = OsStr::from_bytes(b"a=b \xff\n'\"");
    let mut toll = bench.toll(&[
        "run",
        "-q",
        "--no-html",
        "-r",
        "3",
        "--env",
        "MINE=x",
        &line,
    ]);
    toll.env("LD_LIBRARY_PATH", "/nowhere")
        .env("ODD", odd)
        .env("EMPTY", "")
        .env("LC_ALL", "C.UTF-8");
    let ran = toll.output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    let seen = std::fs::read(output).unwrap();
    let seen: Vec<&[u8]> = seen.split(|byte| *byte == 0).collect();
    for line in [
        b"LD_LIBRARY_PATH=/nowhere".as_slice(),
        b"ODD=a=b \xff\n'\"",
        b"EMPTY=",
        b"MINE=x",
        b"LC_ALL=C.UTF-8",
    ] {
        assert!(seen.contains(&line), "{}", String::from_utf8_lossy(line));
    }
    let home = format!("HOME={}", bench.path("home").display());
    assert!(seen.contains(&home.as_bytes()));
}

#[test]
fn a_setup_gets_the_users_variables_too() {
    let bench = Bench::new();
    let words = [
        "run",
        "-q",
        "--no-html",
        "-r",
        "3",
        "-s",
        "echo $WORD >setup",
        "true",
    ];
    let mut toll = bench.toll(&words);
    toll.env("WORD", "hello");
    assert!(toll.output().unwrap().status.success());
    assert_eq!(bench.read("setup"), "hello\n");
}

#[test]
fn variables_that_change_measurements_are_recorded_and_no_others() {
    let bench = Bench::new();
    let mut toll = bench.toll("run -q --no-html -r 3 true");
    toll.env("GLIBC_TUNABLES", "glibc.malloc.check=0")
        .env("LD_LIBRARY_PATH", "/nowhere")
        .env("MALLOC_ARENA_MAX", "1".repeat(9000))
        .env("TOKEN", "hush");
    let ran = toll.output().unwrap();
    let warning = "commands inherit GLIBC_TUNABLES, LD_LIBRARY_PATH, MALLOC_ARENA_MAX";
    has(
        &String::from_utf8_lossy(&ran.stderr),
        &["warning: ", warning],
    );
    has(
        &bench.ok("show").stdout.replace('\n', " "),
        &["GLIBC_TUNABLES"],
    );
    let document = bench.json("export last --json -");
    let variables = &document["run"]["variables"];
    assert_eq!(variables["LD_LIBRARY_PATH"], "/nowhere");
    assert_eq!(variables["LC_ALL"], "C.UTF-8");
    assert!(variables["PATH"].is_string());
    assert!(variables["MALLOC_ARENA_MAX"].as_str().unwrap().len() < 5000);
    lacks(&document.to_string(), &["hush", "TOKEN"]);
    bench.ok("run -q --no-html -r 3 true");
    let compared = bench.ok("compare 1 2").stdout;
    has(&compared, &["variable LD_LIBRARY_PATH"]);
}

#[test]
fn a_built_in_workload_records_and_warns_of_nothing() {
    let bench = Bench::new();
    let mut toll = bench
        .toll("run -q --no-html -r 3 --profile quick -L size=4KiB -L fs=work -L method=byte cat");
    toll.env("LD_LIBRARY_PATH", "/nowhere");
    let ran = toll.output().unwrap();
    lacks(&String::from_utf8_lossy(&ran.stderr), &["LD_LIBRARY_PATH"]);
    let document = bench.json("export last --json -");
    assert!(document["run"]["variables"].is_null());
    assert!(!list(&document["trials"]).is_empty());
}
