//! `toll kernel ab`, and its set of system calls.

use std::time::Duration;

use jiff::Timestamp;
use toll_testing::{Bench, has, is_root, list, skip, texts};

use super::guest::kernel;
use super::guest_commands::bench;

/// The built-in set, as it is in the source tree.
const BUILT_IN: &str = include_str!("../../../../../experiments/kernel/experiment.toml");

/// Two programs and a boot. The first of three iterations pays for one-time work of a guest, such
/// as creating the slab cache of pipes, wherever its row is in the block.
const SMALL: &str = "
format = 1
name = 'small'
metric = 'path_length_instructions'
[workload]
kind = 'system-calls'
[guest]
memory = '96MiB'
[run]
iterations = 3
[[rows]]
list = [
    { name = 'ids', times = 20, program = 'getppid' },
    { name = 'pipes', times = 5, program = '''
        pipe p:8
        write p.1 \"x\" 1
        read p.0 :1 1
        close p.0
        close p.1
    ''' },
]
[[rows]]
kind = 'boot'
list = [{ name = 'boot' }]
";

#[test]
fn every_row_of_system_calls_runs_on_this_machine() {
    if !is_root() {
        skip("some rows need root to mount and to change groups");
        return;
    }
    let bench = Bench::new();
    let (before, rest) = BUILT_IN.split_once("\n[guest]").unwrap();
    let (_, after) = rest.split_once("\n[run]").unwrap();
    let head = before.replace("reference = { kernel = \"toll\" }", "");
    let head = head.replace("path_length_instructions", "duration_ns");
    bench.write("kernel.toml", &format!("{head}\n[run]{after}"));
    let document = bench.measured("kernel.toml --runs 1");
    let trials = list(&document["trials"]);
    assert!(trials.len() > 60, "{}", trials.len());
    for trial in trials.iter().filter(|one| one["state"] != "completed") {
        let message = trial["message"].as_str().unwrap();
        // A boot needs a guest, and this kernel may be older than some system calls.
        let is_missing = message.contains("function not implemented");
        assert!(
            is_missing || message.contains("measure a boot"),
            "{message}"
        );
    }
}

#[test]
fn a_kernel_beside_itself_executes_the_same_instructions() {
    if kernel("toll").is_none() {
        return;
    }
    let bench = bench();
    bench.write("small.toml", SMALL);
    let run = "kernel ab toll toll small.toml";
    let planned = bench.ok(&format!("{run} --dry-run"));
    has(
        &planned.stdout,
        &["10 to 10 blocks", "row=boot command_line=toll.side=b"],
    );
    // This few blocks decide nothing, but the output shows which values would be judged.
    let ran = bench.ok(&format!(
        "{run} --no-html -q --runs 2 --fail-on regression=5%"
    ));
    has(
        &ran.stdout,
        &[
            "toll.side=b executes ",
            "over 2 rows",
            "2 blocks cannot decide",
        ],
    );
    let document = bench.document("last");
    let compared = list(&document["analysis"]["comparisons"]);
    let relations = texts(compared, "relation");
    assert!(
        relations.iter().all(|one| *one == "undecided"),
        "{relations:?}"
    );
    for one in compared
        .iter()
        .filter(|one| one["metric"] == "path_length_instructions")
    {
        let ratio = one["ratio"]["value"].as_f64().unwrap();
        assert!((0.99..1.01).contains(&ratio), "{one}");
    }
    let boots = list(&document["boots"]);
    assert_eq!(boots.len(), 4, "{boots:?}");
    if std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() > 1) {
        for block in boots.chunks(2) {
            let [one, other] = [0, 1].map(|boot| span_of_boot(&block[boot]));
            assert!(one.0 < other.1 && other.0 < one.1, "{block:?}");
        }
    }
    let of_boot = compared.iter().filter(|one| one["common"] == "boot");
    let of_boot: Vec<_> = of_boot.map(|one| one["metric"].as_str().unwrap()).collect();
    for metric in [
        "boot_path_length_instructions",
        "kernel_image_bytes",
        "slab_bytes",
    ] {
        assert!(of_boot.contains(&metric), "{of_boot:?}");
    }
}

/// Returns when a boot began and when it ended.
fn span_of_boot(boot: &serde_json::Value) -> (Timestamp, Timestamp) {
    let begin: Timestamp = boot["started_at"].as_str().unwrap().parse().unwrap();
    let took = Duration::from_nanos(boot["boot_ns"].as_u64().unwrap());
    (begin, begin + took)
}

/// A kernel that clears memory when it is freed, compared with one that does not.
const CLEARING: &str = "
format = 1
name = 'clearing'
metric = 'path_length_instructions'
reference = { command_line = 'toll.side=a' }
[workload]
kind = 'system-calls'
[guest]
kernel = 'toll'
accelerator = 'icount'
memory = '96MiB'
[run]
iterations = 3
[[factor]]
name = 'command_line'
levels = ['toll.side=a', 'init_on_free=1']
[[rows]]
list = [{ name = 'pipes', times = 5, program = '''
    pipe p:8
    write p.1 \"x\" 1
    close p.0
    close p.1
''' }]
";

#[test]
fn a_longer_path_is_explained_by_functions_of_the_kernel_from_the_store_too() {
    if kernel("toll").is_none() {
        return;
    }
    let bench = bench();
    bench.write("clearing.toml", CLEARING);
    let ran = bench.ok("run clearing.toml --runs 6 --time-budget 1h --no-html -q");
    has(
        &ran.stdout,
        &["these explain ", " instructions; the rest is "],
    );
    has(&bench.ok("show last").stdout, &["these explain "]);
    let document = bench.document("last");
    let [compared] = list(&document["analysis"]["comparisons"]) else {
        panic!("{document:#}");
    };
    assert_eq!(compared["relation"], "worse", "{compared:#}");
    let functions = &compared["functions"];
    assert!(
        functions["explained"].as_f64().unwrap() > 0.97,
        "{functions:#}"
    );
    let first = &list(&functions["listed"])[0];
    let name = first["name"].as_str().unwrap();
    assert!(
        name.contains("clear") || name.contains("memset"),
        "{first:#}"
    );
    assert!(
        first["instructions"]["low"].as_f64().unwrap() > 0.0,
        "{first:#}"
    );
    // The counted instructions of a trial are its path length plus two reads of the clock.
    for trial in list(&document["trials"]) {
        let counted = trial["functions"].as_object().unwrap();
        let counted: u64 = counted.values().map(|one| one.as_u64().unwrap()).sum();
        let lengths = list(&trial["samples"]["path_length_instructions"]);
        let is_near = |length: f64| (0.0..1_000.0).contains(&(counted as f64 - length));
        assert!(
            lengths.iter().any(|one| is_near(one.as_f64().unwrap())),
            "{trial:#}"
        );
    }
}

#[test]
fn what_cannot_be_compared_is_told_before_anything_runs() {
    let bench = Bench::new();
    let output = bench.fails(2, "kernel ab toll mnie --dry-run");
    has(&output, &["cannot", "mnie", "toll"]);
    bench.write("bad.toml", &SMALL.replace("getppid", "getppdi"));
    let output = bench.fails(2, "kernel ab toll stock bad.toml --dry-run");
    has(&output, &["there is no system call getppdi"]);
    for option in [
        "--resume",
        "--guest",
        "--reference x",
        "--why",
        "--foreign-dir x",
    ] {
        let output = bench.fails(2, &format!("kernel ab toll stock {option}"));
        let name = option.split(' ').next().unwrap();
        has(
            &output,
            &[&format!(
                "{name} is an option of toll run, not of this command"
            )],
        );
    }
}
