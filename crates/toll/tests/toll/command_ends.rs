//! Input and output of measured commands.

use toll_testing::{Bench, list};

#[test]
fn commands_copy_between_ends_and_are_checked() {
    let bench = Bench::new();
    bench.write(
        "ends.toml",
        r#"
format = 1
name = "ends"
require = ["from != pipe or to != socket"]
[workload]
kind = "command"
input = "{from}"
output = "{to}"
copies = true
size = "200k"
[workload.commands]
absent = "/no/such/place/cat"
cat = "cat"
wrong = "tail -c +2"
[[factor]]
name = "from"
levels = ["file", "pipe"]
[[factor]]
name = "to"
levels = ["pipe", "pipe-spliced", "socket", "file"]
"#,
    );
    let run = bench.measured("-r 3 ends.toml");
    let mut states: Vec<(String, &str)> = list(&run["trials"])
        .iter()
        .map(|trial| {
            let treatment =
                &list(&run["treatments"])[trial["treatment"].as_u64().unwrap() as usize];
            let command = treatment["levels"]["command"]["text"].as_str().unwrap();
            (command.to_owned(), trial["state"].as_str().unwrap())
        })
        .collect();
    states.sort_unstable();
    states.dedup();
    assert_eq!(
        states,
        [
            ("cat".to_owned(), "completed"),
            ("wrong".to_owned(), "failed")
        ],
        "{run:#}"
    );
    let skipped: Vec<&str> = list(&run["analysis"]["treatments"])
        .iter()
        .filter_map(|treatment| treatment["skipped"].as_str())
        .filter(|reason| reason.contains("/no/such/place/cat"))
        .collect();
    // The first treatment's twin is included.
    assert_eq!(skipped.len(), 8, "{run:#}");
    let message = list(&run["trials"])
        .iter()
        .find_map(|trial| trial["message"].as_str());
    assert!(message.is_some_and(|it| it.contains("arrived instead of")));
}

#[test]
fn a_commands_input_is_a_file_of_the_users_or_bytes_of_tolls() {
    let bench = Bench::new();
    bench.write("words", "12 words");
    for (options, bytes) in [
        (&["--input", "words"][..], 8),
        (&["--input", "pipe", "-L", "size=3k"], 3072),
        (&["--input", "file", "-L", "size=70001"], 70_001),
        (&[], 0),
    ] {
        let command = format!("test $(wc -c) -eq {bytes}");
        let run = bench.measured(&[&["-r", "1"], options, &[&command]].concat());
        let trials = list(&run["trials"]);
        assert!(
            trials.iter().all(|trial| trial["state"] == "completed") && !trials.is_empty(),
            "{run:#}"
        );
    }
}

#[test]
fn a_claim_for_each_combination_is_made_where_there_is_one() {
    let bench = Bench::new();
    bench.write(
        "each.toml",
        r#"
format = 1
name = "each"
require = ["size == 1k or command != slow"]
[workload]
input = "file"
kind = "command"
[workload.commands]
fast = "true"
middle = "sleep 0.001"
slow = "sleep 0.002"
[[factor]]
name = "size"
levels = ["1k", "2k"]
[[claim]]
id = "fast.{command}.{size}"
text = "fast is faster than {command} at {size}"
each = ["command", "size"]
of = { command = "fast" }
to = {}
direction = "less"
"#,
    );
    let plan = bench.ok("run --dry-run each.toml");
    let claims: Vec<&str> = plan
        .stdout
        .lines()
        .filter_map(|line| line.trim().strip_prefix("claim "))
        .collect();
    assert_eq!(
        claims,
        [
            "fast.middle.1k: fast is faster than middle at 1k",
            "fast.middle.2k: fast is faster than middle at 2k",
            "fast.slow.1k: fast is faster than slow at 1k",
        ]
    );
    let text = bench.read("each.toml");
    bench.write(
        "each.toml",
        &text.replace("\"command\", \"size\"]", "\"colour\"]"),
    );
    let error = bench.fails(2, "run --dry-run each.toml");
    assert!(error.contains("`each` names colour"), "{error}");
}
