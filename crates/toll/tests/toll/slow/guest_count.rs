//! `toll count`: counts the instructions of commands in guests.

use serde_json::Value;
use toll_testing::{any_kernel, has, list};

use super::guest::kernel;
use super::guest_commands::bench;

fn total(count: &Value) -> u64 {
    count["instructions"]["total"]
        .as_u64()
        .expect("the total is a number")
}

#[test]
fn guest_counts_repeat_and_tell_system_calls_by_their_names() {
    if kernel("toll").is_none() {
        return;
    }
    let bench = bench();
    let commands = ["bs=4k count=100", "bs=4k count=300"]
        .map(|how| format!("dd if=/dev/zero of=/dev/null {how}"));
    let [few, many] = commands.each_ref().map(String::as_str);
    let said = bench.json(&["count", "--json", few, many]);
    let [few, many] = list(&said["commands"]) else {
        panic!("{said:#}");
    };
    for count in [few, many] {
        let runs = list(&count["runs"]);
        assert_eq!(runs[0], runs[1], "{count:#}");
        let sum = ["user", "kernel"].map(|part| count["instructions"][part].as_u64().unwrap());
        assert_eq!(sum[0] + sum[1], total(count));
        let functions = list(&count["functions"]).iter();
        let by_function: u64 = functions
            .map(|one| one["instructions"].as_u64().unwrap())
            .sum();
        assert_eq!(by_function, total(count));
    }
    let reads = |count: &Value| {
        let mut functions = list(&count["functions"]).iter();
        let read = functions.find(|one| one["name"] == "__x64_sys_read");
        read.expect("__x64_sys_read is among the functions")["calls"]
            .as_u64()
            .unwrap()
    };
    assert_eq!(reads(many) - reads(few), 200);
    // The functions of the program itself and of its libraries are found in their files.
    let has = |count: &Value, file: &str| {
        let mut functions = list(&count["functions"]).iter();
        functions.any(|one| one["name"].as_str().unwrap().ends_with(file))
    };
    for file in ["[program]", "[libc.so.6]", "[ld-linux-x86-64.so.2]"] {
        assert!(has(few, file), "{file} in {few:#}");
    }
    let without_file = list(&few["functions"]).iter();
    let without_file: u64 = without_file
        .filter(|one| one["name"] == "programs, without a file")
        .map(|one| one["instructions"].as_u64().unwrap())
        .sum();
    let user = few["instructions"]["user"].as_u64().unwrap();
    assert!(without_file < user / 100, "{without_file} of {user}");
    let [compared] = list(&said["comparisons"]) else {
        panic!("{said:#}");
    };
    assert_eq!(compared["may_decide"], true, "{compared:#}");
    let differing = list(&compared["functions"]["listed"]);
    let explained = compared["functions"]["explained"].as_f64().unwrap();
    assert!(!differing.is_empty() && explained > 0.95, "{compared:#}");
    for one in differing {
        let ends = ["low", "value", "high"].map(|end| one["instructions"][end].as_f64().unwrap());
        let [low, value, high] = ends;
        assert!(low <= value && value <= high, "{one:#}");
        assert!(low > 0.0 || high < 0.0, "{one:#}");
    }
    let more = total(many) - total(few);
    // On this kernel, 200 pairs of a read and a write take about 345,000 instructions.
    assert!((200_000..600_000).contains(&more), "{more}");
}

#[test]
fn guest_counts_take_trees_and_are_written_for_other_programs() {
    if kernel("toll").is_none() {
        return;
    }
    let bench = bench();
    std::fs::create_dir_all(bench.path("tree/below")).unwrap();
    bench.write("tree/below/words", "one\ntwo\n");
    bench.write("single", "three\n");
    let count = |format: &[&str]| {
        let arguments = [
            &[
                "count",
                "-r",
                "1",
                "--tree",
                "tree:/there",
                "--file",
                "single:/here",
            ],
            format,
            &["cat /there/below/words /here"],
        ];
        bench.ok(&arguments.concat())
    };
    has(
        &count(&["--format", "markdown"]).stdout,
        &["| `cat /there/below/words /here` |"],
    );
    let said = count(&["--format", "bencher"]).json();
    let measured = &said["cat /there/below/words /here"]["instructions"]["value"];
    assert!(measured.as_u64().unwrap() > 10_000, "{said:#}");
    let small = bench.fails(2, &["count", "--memory", "64MiB", "true"]);
    has(&small, &["use --memory 192MiB"]);
    let missing = bench.fails(2, &["count", "--file", "no-such:/here", "true"]);
    has(&missing, &["cannot copy", "not a regular file"]);
}

#[test]
fn guest_counts_fail_on_a_regression() {
    if kernel("toll").is_none() {
        return;
    }
    let bench = bench();
    let compared = |runs, limit| {
        let limit = format!("regression={limit}");
        let options = ["count", "-r", runs, "--fail-on", &limit];
        [&options[..], &["true", "ls /"]]
            .concat()
            .into_iter()
            .map(str::to_owned)
            .collect::<Vec<String>>()
    };
    let worse = bench.fails(3, &compared("6", "1%"));
    has(&worse, &["over 1 % more instructions: ls /"]);
    bench.ok(&compared("6", "1000%"));
    let few = bench.fails(2, &compared("5", "1%"));
    has(&few, &["cannot use --fail-on with -r 5", "use -r 6"]);
}

#[test]
fn guest_counts_compare_and_fail_with_their_command() {
    if kernel(any_kernel()).is_none() {
        return;
    }
    let bench = bench();
    let once = ["count", "--kernel", any_kernel(), "-r", "1"];
    let compared = bench.ok(&[&once[..], &["true", "ls /"]].concat());
    let said = [
        "times the instructions of true",
        "it takes 6 runs of each command, not 1",
    ];
    has(&compared.stdout, &said);
    let failed = bench.fails(1, &[&once[..], &["ls /no/such"]].concat());
    has(&failed, &["cannot count ls /no/such", "No such file"]);
    let unknown = bench.fails(2, &[&once[..], &["nosuchprogram"]].concat());
    has(&unknown, &["there is no such program"]);
}
