//! `toll kernel ab`, and the set of system calls that it runs.

use std::time::Duration;

use jiff::Timestamp;

use crate::common::{Bench, has, is_root, list, skip, texts};
use crate::guest::kernel;
use crate::guest_commands::bench;

/// The built-in set, where it stands in the tree.
const BUILT_IN: &str = include_str!("../../../../experiments/kernel/experiment.toml");

/// Two programs and a boot.
const SMALL: &str = "
format = 1
name = 'small'
metric = 'path_length_instructions'
[workload]
kind = 'system-calls'
[guest]
memory = '96MiB'
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
        skip("some rows mount, and change groups");
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
        // A boot is a guest's, and this kernel may be older than some calls.
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
    // So few decide nothing, and are enough to see what they would be decided by.
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

/// When a boot began and ended.
fn span_of_boot(boot: &serde_json::Value) -> (Timestamp, Timestamp) {
    let begin: Timestamp = boot["started_at"].as_str().unwrap().parse().unwrap();
    let took = Duration::from_nanos(boot["boot_ns"].as_u64().unwrap());
    (begin, begin + took)
}

#[test]
fn what_cannot_be_compared_is_told_before_anything_runs() {
    let bench = Bench::new();
    let told = bench.fails(2, "kernel ab toll mnie --dry-run");
    has(&told, &["cannot", "mnie", "toll"]);
    bench.write("bad.toml", &SMALL.replace("getppid", "getppdi"));
    let told = bench.fails(2, "kernel ab toll stock bad.toml --dry-run");
    has(&told, &["there is no system call getppdi"]);
    let told = bench.fails(2, "kernel ab toll stock --resume");
    has(&told, &["toll run --resume"]);
}
