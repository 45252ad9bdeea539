//! A wall clock that is set while a run goes on: no duration, budget or order depends on it. The
//! test sets the clock of a guest.

use serde_json::Value;
use toll_testing::{Bench, TOLL, any_kernel, has, lacks, list, probe};

use super::guest::kernel;

/// Seconds in a day, by which the guest's clock is set forward and back.
const STEP_S: i64 = 86_400;

/// The script in the guest: a run during which the clock is constantly set forward and back by days
/// and years, then its results on standard output. Nothing else depends on the clock of a guest
/// without a network.
const SCRIPT: &str = "
export HOME=/work XDG_DATA_HOME=/work/data XDG_STATE_HOME=/work/state XDG_CACHE_HOME=/work/cache
mount | grep -q ' /tmp ' || mkdir -p /tmp
(while :; do
    now=$(date +%s)
    date -s @$((now + 86400)) >/dev/null; usleep 30000
    date -s @$((now - 86400)) >/dev/null; usleep 30000
    date -s @$((now + 315360000)) >/dev/null; usleep 30000
    date -s @1000000 >/dev/null; usleep 30000
    date -s @$now >/dev/null; usleep 30000
done) &
/host/toll run -q --no-html -r 6 --time-budget 100s 'sleep 0.1' >&2 || exit 1
date -s @1000000 >/dev/null
/host/toll run -q --no-html -r 1 true >&2 || exit 1
kill $!
/host/toll list --json; echo; echo ====; /host/toll show 1 --json
";

#[test]
fn a_clock_that_is_set_during_a_run_changes_no_duration_and_no_order() {
    if kernel(any_kernel()).is_none() {
        return;
    }
    let bench: Bench = super::guest_commands::bench();
    bench.write("script", SCRIPT);
    let probe = probe();
    let arguments = [
        "guest",
        "run",
        "--kernel",
        any_kernel(),
        "--accelerator",
        "tcg",
        "--memory",
        "512MiB",
        "--add",
        TOLL,
        "--add",
        probe.to_str().unwrap(),
        "--add",
        "script",
        "--",
        "sh",
        "/host/script",
    ];
    let ran = bench.ok(&arguments);
    let (listed, shown) = ran
        .stdout
        .split_once("====")
        .unwrap_or_else(|| panic!("{ran:#?}"));
    let listed: Value = serde_json::from_str(listed).unwrap();
    let shown: Value = serde_json::from_str(shown).unwrap();
    let trials = list(&shown["trials"]);
    assert_eq!(trials.len(), 12, "{shown:#}");
    let mut seconds = Vec::new();
    for (number, trial) in trials.iter().enumerate() {
        assert_eq!(trial["state"], "completed", "{trial:#}");
        // The trials are in their order, whatever the clock said.
        assert_eq!(trial["block"], number / 2, "{trial:#}");
        let duration_ns = trial["samples"]["duration_ns"][0].as_f64().unwrap();
        let wall_ns = trial["wall_ns"].as_f64().unwrap();
        assert!((1e8..5e10).contains(&duration_ns), "{trial:#}");
        assert!((duration_ns..1e11).contains(&wall_ns), "{trial:#}");
        let started: jiff::Timestamp = trial["started_at"].as_str().unwrap().parse().unwrap();
        seconds.push(started.as_second());
    }
    // Otherwise the test would prove nothing.
    let spread = seconds.iter().max().unwrap() - seconds.iter().min().unwrap();
    assert!(spread >= STEP_S, "the clock was not set: {seconds:?}");
    assert!(
        seconds.windows(2).any(|pair| pair[1] < pair[0]),
        "{seconds:?}"
    );
    // The budget is measured in real elapsed time, and this run had enough of it.
    let reason = shown["run"]["stop_reason"].as_str().unwrap();
    has(reason, &["6 blocks"]);
    lacks(reason, &["budget"]);
    let ids: Vec<_> = list(&listed["runs"])
        .iter()
        .map(|run| run["id"].as_i64())
        .collect();
    assert_eq!(
        ids,
        [Some(1), Some(2)],
        "sorted by number, not by date: {listed:#}"
    );
}
