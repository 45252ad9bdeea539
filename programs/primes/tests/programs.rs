//! The built programs, as users start them. The counts of `prime_sys_test` need the
//! kernel toll: `guest_commands` in toll's tests checks them.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "the program under test is a process, and a skip says why"
)]

use std::process::{Command, Output, Stdio};

const USER: &str = env!("CARGO_BIN_EXE_prime_user");
const SYSTEM_CALL: &str = env!("CARGO_BIN_EXE_prime_sys_test");

fn run(program: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    command.output().unwrap()
}

/// Returns the rows that `prime_user` prints after the head of its table: n, count and
/// us.
#[track_caller]
fn table(arguments: &[&str]) -> Vec<[u64; 3]> {
    let output = run(USER, arguments);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let mut lines = text.lines().map(str::split_whitespace);
    let head: Vec<&str> = lines.next().unwrap().collect();
    assert_eq!(head, ["n", "count", "us"]);
    lines
        .map(|words| {
            let numbers: Vec<u64> = words.map(|word| word.parse().unwrap()).collect();
            numbers.try_into().unwrap()
        })
        .collect()
}

fn counts(arguments: &[&str]) -> Vec<u64> {
    table(arguments)
        .iter()
        .map(|[_, count, _]| *count)
        .collect()
}

#[test]
fn the_published_numbers_are_counted_where_none_is_given() {
    let numbers: Vec<u64> = table(&[]).iter().map(|[n, ..]| *n).collect();
    assert_eq!(numbers, [10, 100, 500, 1000, 5000, 10_000, 50_000, 100_000]);
}

#[test]
fn operands_are_counted_in_their_order() {
    let rows = table(&["500", "2", "500"]);
    let numbers: Vec<u64> = rows.iter().map(|[n, ..]| *n).collect();
    assert_eq!(numbers, [500, 2, 500]);
    // Two numbers from 2 to 2.
    assert_eq!(rows[1][1], 2);
    assert_eq!(rows[0][1], rows[2][1]);
}

#[test]
fn several_runs_are_one_line() {
    // The seeded generator gives each run the same numbers.
    let arguments = ["--random=seeded", "1000", "5000"];
    let once = counts(&arguments);
    for runs in ["--runs=2", "--runs=11"] {
        assert_eq!(counts(&[&arguments[..], &[runs]].concat()), once, "{runs}");
    }
}

#[test]
fn each_count_is_a_process_that_prints_n_and_the_count_as_published() {
    if Command::new("strace").arg("--version").output().is_err() {
        println!("skipped: strace is missing; install the package strace");
        return;
    }
    let traced = ["-qq", "-f", "-e", "trace=write", USER, "--runs=3", "2"];
    let output = run("strace", &traced);
    assert!(output.status.success(), "{output:?}");
    let trace = String::from_utf8(output.stderr).unwrap();
    // Both numbers from 2 to 2 are prime.
    let lines = trace.matches(r#"write(1, "2\n", 2)"#).count();
    assert_eq!(lines, 2 * 3, "{trace}");
}

#[test]
fn a_seed_gives_the_same_numbers_each_time_and_another_one_others() {
    for random in ["each", "seeded"] {
        let of = |seed| counts(&["--random", random, "--seed", seed, "5000", "100000"]);
        assert_eq!(of("7"), of("7"), "{random}");
        assert_ne!(of("7"), of("8"), "{random}");
    }
    // rand() starts like this if nobody calls srand().
    assert_eq!(counts(&["5000"]), counts(&["--seed=1", "5000"]));
    // Four equal counts happen by chance once in 1e9 times.
    let bulk = || counts(&["--random=bulk", "50000", "50000", "50000", "50000"]);
    assert_ne!(bulk(), bulk());
}

#[test]
fn wrong_arguments_are_told_on_standard_error() {
    for (program, arguments, said) in [
        (USER, &["x"][..], "cannot take \"x\" as N: give a whole"),
        (USER, &["1"], "a whole number from 2 to 16777216"),
        (USER, &["100", "16777217"], "a whole number from 2 to"),
        (USER, &["--runs", "0"], "cannot take \"0\" as --runs"),
        (USER, &["--seed"], "missing argument for option '--seed'"),
        (USER, &["--random", "dice"], "one of seeded, bulk, each"),
        (
            USER,
            &["--random=bulk", "--seed=1"],
            "getrandom() takes no seed",
        ),
        (SYSTEM_CALL, &["1048577"], "from 2 to 1048576"),
        (SYSTEM_CALL, &["--random=bulk"], "invalid option '--random'"),
    ] {
        let output = run(program, arguments);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        assert!(error.contains(said), "{error}");
        assert!(error.trim_end().ends_with(" --help"), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

#[test]
fn a_kernel_without_the_call_is_told_with_what_to_do() {
    let output = run(SYSTEM_CALL, &["10"]);
    if output.status.success() {
        println!("skipped: this kernel has system call 549");
        return;
    }
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(5), "{error}");
    assert!(output.stdout.is_empty());
    assert_eq!(
        error,
        format!(
            "prime_sys_test: cannot count: this kernel has no system call 549; run it in a guest: \
             toll guest run --kernel toll --add {SYSTEM_CALL} -- /host/prime_sys_test\n"
        )
    );
}

#[test]
fn an_output_that_takes_nothing_is_an_error() {
    let full = std::fs::File::options().write(true).open("/dev/full");
    let (reader, broken) = std::io::pipe().unwrap();
    drop(reader);
    for (sink, said) in [
        (Stdio::from(full.unwrap()), "no space left on device"),
        (broken.into(), "broken pipe"),
    ] {
        let mut command = Command::new(USER);
        let output = command.arg("10").stdout(sink).stderr(Stdio::piped());
        let output = output.spawn().unwrap().wait_with_output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert_eq!(
            error,
            format!("prime_user: cannot print the result: {said}; check standard output\n")
        );
    }
}

#[test]
fn help_and_version_go_to_standard_output() {
    for (program, name) in [(USER, "prime_user"), (SYSTEM_CALL, "prime_sys_test")] {
        let help = run(program, &["--help"]);
        let text = String::from_utf8(help.stdout).unwrap();
        assert!(help.status.success() && text.starts_with(&format!("Usage: {name} ")));
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
        toll_testing::assert_manual_has_options_of(name, &text);
        let version = run(program, &["-V"]);
        let start = format!("{name} (toll) ");
        assert!(version.stdout.starts_with(start.as_bytes()));
    }
}
