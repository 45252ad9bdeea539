//! Runs in guests, from the experiment file to the report.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use toll_testing::{Bench, Running, any_kernel, has, list, processes_marked, wait_until};

use super::guest::kernel;
use super::guest_commands::{bench, has_emulator};

/// Memory accesses that fit into memory, in guests with different numbers of CPUs and a setting of
/// the running kernel.
const SMALL: &str = "
format = 1
name = 'small'
metric = 'minor_faults'
[workload]
kind = 'memory'
buffer = '4MiB'
steps = 64
addressing = 'corrected'
[guest]
memory = '96MiB'
accelerator = 'tcg'
[guest.knobs.cluster]
path = '/proc/sys/vm/page-cluster'
[[factor]]
name = 'vcpus'
levels = [1, 2]
[[factor]]
name = 'cluster'
levels = [0, 3]
[[claim]]
id = 'small.time'
text = 'one CPU is slower'
metric = 'duration_ns'
of = { vcpus = 1 }
to = { vcpus = 2 }
at = { cluster = 0 }
direction = 'greater'
[[claim]]
id = 'small.faults'
text = 'faults are the same'
of = { cluster = 0 }
to = { cluster = 3 }
at = { vcpus = 1 }
direction = 'equal'
";

/// An experiment that needs more memory than there is, with a kernel that kills the process or
/// panics.
const TOO_MUCH: &str = "
format = 1
name = 'too-much'
[workload]
kind = 'memory'
buffer = '256MiB'
initialisation = 'populate'
[guest]
memory = '96MiB'
accelerator = 'tcg'
# A single mapping larger than the memory would be refused at once.
[guest.knobs.overcommit]
path = '/proc/sys/vm/overcommit_memory'
value = 1
[guest.knobs.shortage]
path = '/proc/sys/vm/panic_on_oom'
values = { kills = 0, panics = 1 }
[[factor]]
name = 'shortage'
levels = ['kills', 'panics']
";

/// A file sent from one guest to another, with a kernel setting in both.
const PAIRED: &str = "
format = 1
name = 'paired'
metric = 'bytes_transferred'
[workload]
kind = 'transfer'
size = '1MiB'
receiver = 'mmap'
[run]
iterations = 2
[guest]
memory = '128MiB'
accelerator = 'tcg'
[guest.knobs.cluster]
path = '/proc/sys/vm/page-cluster'
[[factor]]
name = 'partner'
levels = ['none', 'guest']
[[factor]]
name = 'sender'
levels = ['read-write', 'mmap']
[[factor]]
name = 'channel'
levels = ['tcp', 'device']
[[factor]]
name = 'cluster'
levels = [0]
";

/// The published loops through the device. A file of 1,502,860 bytes has 367 pages.
const PUBLISHED: &str = "
format = 1
name = 'published'
metric = 'bytes_transferred'
require = ['mappings == 65530 or (sender == published-mmap and buffer == 4KiB and size == 1502860 and page_log == off)']
[workload]
kind = 'transfer'
channel = 'device'
content = 'lines'
receiver = 'published-mmap'
[run]
iterations = 2
[guest]
memory = '128MiB'
accelerator = 'tcg'
[guest.knobs.mappings]
path = '/proc/sys/vm/max_map_count'
[[factor]]
name = 'mappings'
levels = [65530, 300]
[[factor]]
name = 'sender'
levels = ['published-mmap', 'mended-mmap']
[[factor]]
name = 'buffer'
levels = ['512', '4KiB']
[[factor]]
name = 'page_log'
levels = ['off', 'on']
[[factor]]
name = 'size'
levels = [0, 1, 4096, 4097, 1502860]
";

/// Measures the cost of the lines in the kernel log.
const LOGGED: &str = "
format = 1
name = 'logged'
metric = 'path_length_instructions'
[workload]
kind = 'transfer'
channel = 'device'
sender = 'published-mmap'
receiver = 'published-mmap'
buffer = '4KiB'
[guest]
memory = '128MiB'
accelerator = 'icount'
[[factor]]
name = 'page_log'
levels = ['off', 'on']
";

/// Writes that wait for a disk, or for QEMU's reply over 9p.
const WAITING: &str = "
format = 1
name = 'waiting'
metric = 'path_length_instructions'
[workload]
kind = 'write'
durability = 'fdatasync'
input = '64KiB'
buffer = '4KiB'
[run]
iterations = 3
[guest]
memory = '128MiB'
accelerator = 'icount'
[[factor]]
name = 'fs'
levels = ['ext4', 'foreign']
";

/// A program that sleeps for 200 million nanoseconds.
const SLEEPING: &str = "
format = 1
name = 'sleeping'
metric = 'path_length_instructions'
[workload]
kind = 'command'
command = 'sleep 0.2'
[run]
iterations = 3
[guest]
memory = '128MiB'
accelerator = 'icount'
";

/// A file received on a disk and in memory. It is larger than the dirty limit: the kernel makes
/// writers wait for the disk once 20 % of memory is dirty.
const ONTO_DISK: &str = "
format = 1
name = 'onto-disk'
metric = 'receiver_disk_write_bytes'
[workload]
kind = 'transfer'
size = '64MiB'
[run]
iterations = 1
[guest]
memory = '256MiB'
accelerator = 'tcg'
[[factor]]
name = 'fs'
levels = ['ext4', 'tmpfs']
[[factor]]
name = 'receiver'
levels = ['read-write', 'mmap']
";

/// Prepares a bench for runs in guests, if guests are available here.
fn place() -> Option<Bench> {
    kernel("toll").map(|_| bench())
}

/// Runs an experiment, and returns the document of the run.
fn measured(bench: &Bench, experiment: &str, rounds: u32) -> Value {
    bench.write("experiment.toml", experiment);
    bench.ok(&format!("run experiment.toml -q --no-html -r {rounds}"));
    bench.json("show last --json")
}

fn verdict<'a>(run: &'a Value, id: &str) -> &'a Value {
    let mut verdicts = list(&run["analysis"]["verdicts"]).iter();
    verdicts.find(|verdict| verdict["id"] == id).unwrap()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[test]
fn every_block_boots_each_guest_once_and_counts_are_judged() {
    let Some(bench) = place() else {
        return;
    };
    let shown = measured(&bench, SMALL, 3);
    let boots = list(&shown["boots"]);
    assert_eq!(boots.len(), 6);
    for boot in boots {
        assert_eq!(boot["accelerator"], "tcg");
        assert_eq!(boot["error"], Value::Null, "{boot}");
        assert_eq!(boot["facts"]["CPUs online"], boot["levels"]["vcpus"]);
    }
    let states = list(&shown["trials"]).iter().map(|trial| &trial["state"]);
    assert!(states.into_iter().all(|state| state == "completed"));
    let time = verdict(&shown, "small.time");
    assert_eq!(time["outcome"], "not-testable");
    assert!(text(&time["reason"]).contains("emulated, not judged"));
    assert_eq!(verdict(&shown, "small.faults")["blocks"], 3);

    let summary = bench.ok("show last").stdout;
    assert!(summary.contains("3 blocks"), "{summary}");
    assert!(summary.contains("TCG: emulated"), "{summary}");
    let logs = bench.ok("show last --kernel-log").stdout;
    assert_eq!(logs.matches("==> block").count(), 6, "{logs}");
}

#[test]
fn what_the_disk_writes_while_a_file_arrives_is_told() {
    let Some(bench) = place() else {
        return;
    };
    let shown = measured(&bench, ONTO_DISK, 1);
    let treatments = list(&shown["treatments"]);
    let trials = list(&shown["trials"]);
    // One of the four treatments has a twin.
    assert_eq!(trials.len(), 5, "{trials:#?}");
    for trial in trials {
        assert_eq!(trial["state"], "completed", "{trial}");
        let index = trial["treatment"].as_u64().unwrap() as usize;
        let fs = text(&treatments[index]["levels"]["fs"]["text"]);
        let value = |name: &str| trial["samples"][name][0].as_f64();
        let written = value("receiver_disk_write_bytes");
        match fs {
            "ext4" => {
                assert!(written > Some(f64::from(8 << 20)), "{trial}");
                assert!(value("receiver_disk_writes") > Some(1.0), "{trial}");
            }
            _ => assert_eq!(written, None, "{trial}"),
        }
    }
}

#[test]
fn a_guest_that_panics_fails_its_trial_and_the_run_goes_on() {
    let Some(bench) = place() else {
        return;
    };
    bench.write("too-much.toml", TOO_MUCH);
    let run = bench.run("run too-much.toml -q --no-html -r 3");
    // A run in which every trial failed has failed.
    assert_eq!(run.code, Some(1), "{run:?}");
    let shown = bench.json("show last --json");
    let trials = list(&shown["trials"]);
    let of = |word: &str| {
        let treatments = list(&shown["treatments"]).iter();
        let index = treatments
            .clone()
            .position(|t| t["levels"]["shortage"]["text"] == word)
            .unwrap();
        let found = trials.iter().filter(move |t| t["treatment"] == index);
        found.map(|t| text(&t["message"])).collect::<Vec<_>>()
    };
    let (killed, panicked) = (of("kills"), of("panics"));
    assert_eq!(panicked.len(), 3, "{trials:#?}");
    assert!(
        panicked.iter().all(|m| m.contains("Kernel panic")),
        "{panicked:?}"
    );
    assert!(
        killed.iter().all(|m| !m.contains("Kernel panic")),
        "{killed:?}"
    );
    let died = |boot: &&Value| text(&boot["error"]).contains("Kernel panic");
    let boots = list(&shown["boots"]);
    assert_eq!(boots.iter().filter(died).count(), 3, "{boots:#?}");
    let logs = bench.ok("show last --kernel-log").stdout;
    assert!(logs.contains("Out of memory"), "{logs}");
}

#[test]
fn a_run_killed_in_a_guest_goes_on_and_leaves_no_machine_behind() {
    let Some(bench) = place() else {
        return;
    };
    bench.write("small.toml", SMALL);
    let plan = [
        "run",
        "small.toml",
        "-q",
        "--no-html",
        "-r",
        "3",
        "--seed",
        "4",
    ];
    let marker = bench.marker();
    let running = bench.start(&plan);
    wait_until("a guest runs", || has_emulator(&marker));
    running.send(Signal::KILL);
    drop(running);
    wait_until("the guest has ended, too", || {
        processes_marked(&marker).is_empty()
    });
    bench.ok("run --resume -q --no-html");
    let shown = bench.json("show last --json");
    // Four treatments and a twin in each of three blocks.
    assert_eq!(list(&shown["trials"]).len(), 15);
    assert_eq!(bench.leftovers(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn a_file_goes_to_another_guest_as_it_goes_to_another_process() {
    let Some(bench) = place() else {
        return;
    };
    measured(&bench, PAIRED, 1);
    bench.ok("export last --json run.json");
    let document: Value = serde_json::from_str(&bench.read("run.json")).unwrap();
    // Eight treatments and a twin. A completed trial means that the receiver's file has the hash of
    // the sender's.
    let trials = list(&document["trials"]);
    assert_eq!(trials.len(), 9);
    for trial in trials {
        assert_eq!(trial["state"], "completed", "{trial}");
        let samples = &trial["samples"];
        assert_eq!(
            samples["bytes_transferred"][1],
            f64::from(1 << 20),
            "{trial}"
        );
        let time = |name: &str| samples[name][0].as_f64().unwrap();
        // The receiver may have the whole file before the sender's last call returns.
        for part in ["duration_ns", "sender_duration_ns", "receiver_duration_ns"] {
            assert!(time(part) > 0.0, "{part}: {trial}");
        }
    }
    for boot in list(&document["boots"]) {
        let has_partner = boot["levels"]["partner"] == "guest";
        assert_eq!(boot["partner"].is_object(), has_partner, "{boot}");
        if has_partner {
            let line = text_of_fact(&boot["partner"]);
            assert!(line.contains("TOLL_GUEST_PAIR=partner"), "{line}");
            assert!(
                text_of_fact(boot).contains("TOLL_GUEST_PAIR=main"),
                "{boot}"
            );
        }
    }
    let logs = bench.ok("show last --kernel-log").stdout;
    assert_eq!(logs.matches("--> its partner").count(), 1, "{logs}");
    assert!(bench.ok("show last").stdout.contains("with a partner"));
}

fn text_of_fact(guest: &Value) -> &str {
    text(&guest["facts"]["kernel command line"])
}

#[test]
fn the_published_loops_send_files_through_the_device_and_show_their_defects() {
    let Some(bench) = place() else {
        return;
    };
    let shown = measured(&bench, PUBLISHED, 1);
    let treatments = list(&shown["analysis"]["treatments"]);
    // All combinations with the default number of mappings, one with few, and a twin.
    assert_eq!(treatments.len(), 2 * 2 * 2 * 5 + 2);
    for treatment in treatments {
        let level = |name: &str| text(&treatment["levels"][name]);
        let size: u64 = level("size").parse().unwrap();
        let is_printed = level("sender") == "published-mmap";
        let skipped = text(&treatment["skipped"]);
        let expected = match (level("mappings"), level("buffer")) {
            ("300", _) => "it never unmaps the device, and 367 pages need more",
            (_, "512") if is_printed && size > 512 => "different content arrived",
            _ => "",
        };
        let is_as_expected = match expected {
            "" => skipped.is_empty(),
            expected => skipped.contains(expected),
        };
        assert!(is_as_expected, "{treatment:#}");
        if !expected.is_empty() {
            continue;
        }
        let median = |metric: &str| treatment["estimates"][metric]["median"]["value"].as_f64();
        assert_eq!(median("bytes_transferred"), Some(size as f64));
        let has_page = f64::from(u8::from(size > 0));
        assert_eq!(median("receiver_pages"), Some(has_page), "{treatment:#}");
        // Present, user-mode, accessed; the slave's is also writable and dirty.
        if size > 0 {
            assert_eq!(median("receiver_page_state"), Some(103.0));
            let of_sender = (!is_printed).then_some(37.0);
            assert_eq!(median("sender_page_state"), of_sender, "{treatment:#}");
        }
    }
}

#[test]
fn each_page_costs_lines_in_the_kernel_log_where_they_are_asked_for() {
    let Some(bench) = place() else {
        return;
    };
    let shown = measured(&bench, LOGGED, 1);
    let paths = list(&shown["analysis"]["treatments"])
        .iter()
        .map(|treatment| {
            let path = &treatment["estimates"]["path_length_instructions"];
            path["median"]["value"].as_f64().unwrap()
        });
    let paths: Vec<f64> = paths.collect();
    // At least one line for each of 367 pages at both ends, each with a formatted number.
    assert!(paths[1] > paths[0] + 2.0 * 367.0 * 500.0, "{paths:?}");
}

#[test]
fn a_path_length_has_no_instructions_for_waiting() {
    let Some(bench) = place() else {
        return;
    };
    for (experiment, least, most) in [(WAITING, 5e4, 2e6), (SLEEPING, 1e5, 2e7)] {
        let shown = measured(&bench, experiment, 2);
        let trials = list(&shown["trials"]);
        assert!(trials.len() >= 2, "{trials:#?}");
        for trial in trials {
            assert_eq!(trial["state"], "completed", "{trial}");
            let lengths = list(&trial["samples"]["path_length_instructions"]);
            assert_eq!(lengths.len(), 3, "{trial}");
            // One timer tick would be 4 million.
            let is_work = |length: &Value| (least..most).contains(&length.as_f64().unwrap());
            assert!(lengths.iter().all(is_work), "{trial}");
        }
    }
}

/// Starts a long run of a pair. Returns it and the marker of all its processes.
fn lasting_pair(bench: &Bench) -> (Running, String) {
    let long = PAIRED
        .replace("'1MiB'", "'8MiB'")
        .replace("iterations = 2", "iterations = 10")
        .replace("['none', 'guest']", "['guest']")
        .replace("['tcp', 'device']", "['tcp']");
    bench.write("lasting.toml", &long);
    (
        bench.start("run lasting.toml -q --no-html -r 1"),
        bench.marker(),
    )
}

/// Returns the QEMU of one guest of the marked run's current pair.
fn emulator(marker: &str, side: &str) -> Option<i32> {
    let found = processes_marked(&format!("TOLL_GUEST_PAIR={side} "));
    let own = processes_marked(marker);
    found.into_iter().find(|pid| own.contains(pid))
}

#[test]
fn a_pair_that_loses_a_guest_fails_its_trial_and_is_booted_anew() {
    let Some(bench) = place() else {
        return;
    };
    let (mut running, marker) = lasting_pair(&bench);
    wait_until("a trial of the pair has ended", || {
        let count = "SELECT count(*) FROM trials";
        let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_WRITE;
        let store = rusqlite::Connection::open_with_flags(bench.store(), flags);
        let ended = store.and_then(|store| store.query_row(count, [], |row| row.get(0)));
        // At first, the store or its table does not exist.
        ended.unwrap_or(0) > 0
    });
    let partner = emulator(&marker, "partner").expect("two more trials follow");
    kill_process(Pid::from_raw(partner).unwrap(), Signal::KILL).unwrap();
    assert!(running.end().success());
    let shown = bench.json("show last --json");
    let states = list(&shown["trials"])
        .iter()
        .map(|trial| text(&trial["state"]));
    assert_eq!(
        states.collect::<Vec<_>>(),
        ["completed", "crashed", "completed"]
    );
    let message = text(&list(&shown["trials"])[1]["message"]);
    assert!(message.starts_with("partner: the guest died"), "{message}");
    let boots = list(&shown["boots"]);
    assert_eq!(text(&boots[0]["error"]), message);
    assert_eq!((boots.len(), &boots[1]["error"]), (2, &Value::Null));
    assert_eq!(processes_marked(&marker), Vec::<i32>::new());
}

#[test]
fn an_interrupt_ends_both_guests_of_a_pair() {
    let Some(bench) = place() else {
        return;
    };
    let (mut running, marker) = lasting_pair(&bench);
    wait_until("a pair runs", || {
        ["main", "partner"]
            .iter()
            .all(|side| emulator(&marker, side).is_some())
    });
    running.send(Signal::INT);
    let end = running.end();
    assert_eq!(end.code(), Some(130), "{end:?}");
    assert_eq!(processes_marked(&marker), Vec::<i32>::new());
    assert_eq!(bench.leftovers(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn without_its_kernel_an_experiment_names_what_makes_it() {
    let bench = Bench::new();
    bench.write("small.toml", SMALL);
    let run = bench.run("run small.toml -q --no-html -r 1");
    assert_eq!(run.code, Some(5), "{run:?}");
    assert!(run.stderr.contains("toll kernel build"), "{}", run.stderr);
    // No run was begun, so none can be resumed.
    let resumed = bench.run("run --resume -q --no-html");
    assert_eq!(resumed.code, Some(2), "{resumed:?}");
    let dry = bench.ok("run small.toml --dry-run");
    has(&dry.stdout, &["skipped: cannot use kernel toll"]);
}

#[test]
fn commands_run_in_a_guest_when_asked() {
    if kernel(any_kernel()).is_none() {
        return;
    }
    let bench = bench();
    bench.ok(&format!(
        "run --guest -q --no-html -r 2 -L kernel={} -L accelerator=tcg -L memory=128MiB \
         'uname -r >{{workdir}}/out' 'uname -s >{{workdir}}/out'",
        any_kernel()
    ));
    let shown = bench.json("show last --json");
    assert_eq!(list(&shown["boots"]).len(), 2);
    let states = list(&shown["trials"]).iter().map(|trial| &trial["state"]);
    assert!(
        states.into_iter().all(|state| state == "completed"),
        "{shown:#}"
    );
}
