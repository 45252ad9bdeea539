//! `toll count`: instructions of commands in guests.

use serde_json::Value;

use crate::common::{has, list};
use crate::guest::kernel;
use crate::guest_commands::bench;

fn total(count: &Value) -> u64 {
    count["instructions"]["total"].as_u64().expect("a number")
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
        read.expect("it reads")["calls"].as_u64().unwrap()
    };
    assert_eq!(reads(many) - reads(few), 200);
    let more = total(many) - total(few);
    // What 200 pairs of a read and a write take on this kernel is about 345,000.
    assert!((200_000..600_000).contains(&more), "{more}");
}

#[test]
fn guest_counts_fail_on_a_regression_and_with_their_command() {
    if kernel("toll").is_none() {
        return;
    }
    let bench = bench();
    let worse = bench.fails(
        3,
        &[
            "count",
            "-r",
            "1",
            "--fail-on",
            "regression=1%",
            "true",
            "ls /",
        ],
    );
    has(&worse, &["over 1 % more instructions: ls /"]);
    let failed = bench.fails(1, &["count", "-r", "1", "ls /no/such"]);
    has(&failed, &["cannot count ls /no/such", "No such file"]);
    let unknown = bench.fails(2, &["count", "nosuchprogram"]);
    has(&unknown, &["there is no such program"]);
}
