//! `toll selftest`, from its trials to its exit status.

use rustix::process::{Pid, Signal, kill_process};
use toll_testing::{Bench, Running, list, wait_until};

/// Returns a fake probe with a perfectly precise clock: `$d` nanoseconds for each iteration of
/// `$size` bytes of work.
fn probe(duration: &str) -> String {
    format!(
        r#"#!/bin/sh
read -r request
size=${{request#*\"size\":}}
size=${{size%%[!0-9]*}}
{duration}
sample='{{"metrics":{{"duration_ns":'$d'}},"counters":{{}}}}'
echo '{{"version":1,"outcome":{{"completed":{{"samples":['$sample,$sample,$sample'],
"disturbance":{{}},"counters_missing":{{}},"notes":[]}}}}}}' | tr -d '\n'
echo
"#
    )
}

#[test]
fn a_machine_on_which_identical_work_takes_longer_is_off() {
    let bench = Bench::with_probe(&probe("d=1000000; [ $size != 13107199 ] || d=1100000"));
    let ran = bench.run("selftest --seed 1 --json");
    assert_eq!(ran.code, Some(6), "{}", ran.stderr);
    let document = ran.json();
    assert_eq!(document["ok"], false);
    assert_eq!(document["arms"][0]["called_different"]["count"], 20);
    // It is also wrong if work that is 5 % longer takes the same time.
    assert_eq!(document["arms"][3]["wrong"]["count"], 10);
    assert_eq!(list(&document["problems"]).len(), 5, "{document:#}");
    assert!(!bench.store().exists(), "the runs are kept in memory");
}

#[test]
fn each_false_alarm_is_followed_by_twelve_more_comparisons_of_identical_work() {
    // The first trials of identical work differ, as if other programs were running.
    let duration =
        "read -r trials <trials || trials=0; echo $((trials + 1)) >trials; d=$((size / 10))
        [ $size != 13107199 ] || [ $trials -gt 200 ] || d=$((d + d / 10))";
    let bench = Bench::with_probe(&probe(duration));
    bench.write("trials", "0\n");
    let ran = bench.run("selftest --seed 1 --json");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let document = ran.json();
    let alarms = document["arms"][0]["wrong"]["count"].as_u64();
    let alarms = alarms.expect("the count is a number");
    assert!((1..7).contains(&alarms), "{document:#}");
    assert_eq!(document["arms"][0]["wrong"]["of"], 20 + 12 * alarms);
    assert_eq!(document["made"], document["planned"]);
    assert_eq!(document["ok"], true);
}

#[test]
fn an_interrupted_self_test_tells_what_it_found_until_then() {
    let bench = Bench::with_probe(&probe("touch began; d=$((size / 10))"));
    let child = bench
        .spawnable("selftest --full --json")
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("toll starts");
    let mut running = Running(child);
    wait_until("a trial runs", || bench.path("began").exists());
    let pid = i32::try_from(running.0.id()).ok().and_then(Pid::from_raw);
    kill_process(pid.expect("it has a process ID"), Signal::INT).expect("the process is ours");
    let mut text = String::new();
    let mut output = running.0.stdout.take().expect("stdout is a pipe");
    std::io::Read::read_to_string(&mut output, &mut text).expect("stdout is UTF-8");
    assert_eq!(
        running.0.wait().expect("toll can be waited for").code(),
        Some(130)
    );
    let document: serde_json::Value = serde_json::from_str(&text).expect("one document");
    assert_eq!(document["ok"], false);
    assert_eq!(list(&document["problems"]).len(), 0);
    assert!(document["made"].as_u64() < document["planned"].as_u64());
}
