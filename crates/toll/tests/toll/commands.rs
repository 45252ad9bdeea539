//! Comparisons of a user's own commands, and of experiments of their own.

use serde_json::Value;
use toll_testing::{Bench, Running, has, list, make_executable, texts, values};

fn relation(run: &Value) -> &str {
    run["analysis"]["comparisons"][0]["relation"]
        .as_str()
        .expect("there is a comparison")
}

#[test]
fn set_up_preparation_and_clean_up_run_when_they_should() {
    let bench = Bench::new();
    let run = bench.measured(
        "-r 2 -s 'echo setup-{n} >>log' -p 'echo prepare-{n} >>log' -c 'echo cleanup-{n} >>log' \
         -L n=1,2 \"sh -c 'echo run-{n} >>log'\"",
    );
    assert_eq!(list(&run["trials"]).len(), 6, "{run:#}");
    let log = bench.read("log");
    let lines: Vec<&str> = log.lines().collect();
    let count = |line: &str| lines.iter().filter(|other| **other == line).count();
    // The first treatment has a twin, which shares its set-up command.
    assert_eq!([count("setup-1"), count("setup-2")], [1, 1], "{log}");
    assert_eq!([count("prepare-1"), count("prepare-2")], [4, 2], "{log}");
    assert_eq!([count("run-1"), count("run-2")], [4, 2], "{log}");
    assert_eq!([count("cleanup-1"), count("cleanup-2")], [1, 1], "{log}");
    assert!(
        lines[..2].iter().all(|line| line.starts_with("setup")),
        "{log}"
    );
    assert!(
        lines[lines.len() - 2..]
            .iter()
            .all(|line| line.starts_with("cleanup")),
        "{log}"
    );
    let follows = |pair: &[&str]| {
        !pair[1].starts_with("run-") || pair[0] == pair[1].replace("run", "prepare")
    };
    assert!(
        lines.windows(2).all(follows),
        "each run comes right after its own preparation: {log}"
    );
}

#[test]
fn warm_up_blocks_run_and_are_thrown_away() {
    let bench = Bench::new();
    let run = bench.measured("-w 2 -r 3 \"sh -c 'echo x >>log'\"");
    assert_eq!(list(&run["trials"]).len(), 3 * 2);
    assert_eq!(bench.read("log").lines().count(), (2 + 3) * 2);
}

#[test]
fn a_set_up_that_fails_ends_the_run_with_its_last_words() {
    let bench = Bench::new();
    let errors = bench.fails(1, "run -r 1 -s 'echo no disk >&2; exit 3' true");
    has(&errors, &["cannot set up", "no disk"]);
    assert!(errors.contains("exit status 3"), "{errors}");
    assert_eq!(bench.leftovers(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn failures_are_rows_and_a_hopeless_command_is_given_up() {
    let bench = Bench::new();
    let line = "run -q --no-html -r 6 true \"sh -c 'echo oh dear >&2; exit 7'\"";
    bench.fails(1, line);
    let run = bench.document("last");
    let failed: Vec<&Value> = list(&run["trials"])
        .iter()
        .filter(|trial| trial["state"] == "failed")
        .collect();
    assert_eq!(failed.len(), 3, "{run:#}");
    for trial in &failed {
        let message = trial["message"].as_str().unwrap();
        has(message, &["exit status 7", "oh dear"]);
        assert!(message.contains("--ignore-failure"), "{message}");
        assert_eq!(trial["samples"], serde_json::json!({}));
    }
    let skipped = run["analysis"]["treatments"][1]["skipped"]
        .as_str()
        .unwrap();
    assert!(skipped.contains("given up after 3 failures"), "{skipped}");
    assert_eq!(
        values(&run, "true", "duration_ns").len(),
        6,
        "the other command goes on"
    );
    let shown = bench.ok("show").stdout;
    assert!(shown.contains("given up"), "{shown}");
}

#[test]
fn a_command_that_fails_now_and_then_is_not_given_up() {
    let bench = Bench::new();
    // Every third run fails. Each treatment has one of the two runs of a block, so none fails three
    // times in a row, whatever the order.
    let command = "sh -c 'echo x >>n; test $(($(wc -l <n) % 3)) != 0'";
    let run = bench.measured(&["-r", "6", command]);
    let states: Vec<&str> = texts(list(&run["trials"]), "state");
    assert_eq!(
        states,
        ["completed", "completed", "failed"].repeat(4),
        "{run:#}"
    );
    assert!(
        list(&run["treatments"])
            .iter()
            .all(|treatment| treatment["skipped"].is_null())
    );
}

#[test]
fn non_zero_statuses_are_measurements_if_asked_for() {
    let bench = Bench::new();
    let run = bench.measured("-i -r 4 \"sh -c 'exit 7'\"");
    let label = "sh -c 'exit 7'";
    assert_eq!(values(&run, label, "exit_status"), [7.0; 4]);
    assert_eq!(values(&run, label, "duration_ns").len(), 4);
}

#[test]
fn a_command_that_always_fails_ends_the_run_and_keeps_what_was_tried() {
    let bench = Bench::new();
    let errors = bench.fails(1, "run -r 9 -q 'no-such-program-anywhere --flag'");
    assert!(errors.contains("no-such-program-anywhere"), "{errors}");
    // The trials so far are kept all the same.
    let run = bench.document("last");
    assert!(!list(&run["trials"]).is_empty());
    assert!(
        list(&run["trials"])
            .iter()
            .all(|trial| trial["state"] == "failed"),
        "{run:#}"
    );
}

#[test]
fn output_goes_to_a_file_or_a_pipe_if_asked_for() {
    let bench = Bench::new();
    let command = "sh -c 'if test -p /dev/stdout; then echo pipe >>kind; elif test -c /dev/stdout; \
                   then echo device >>kind; else echo file >>kind; fi; echo hello'";
    for (output, kind) in [
        (None, "device"),
        (Some("pipe"), "pipe"),
        (Some("out"), "file"),
    ] {
        let option: Vec<&str> = output
            .iter()
            .flat_map(|output| ["--output", output])
            .collect();
        bench.measured(&[&["-r", "1"], &option[..], &[command]].concat());
        assert_eq!(bench.read("kind"), format!("{kind}\n").repeat(2));
        std::fs::remove_file(bench.path("kind")).unwrap();
    }
    assert_eq!(bench.read("out"), "hello\n", "rewritten by each run");
}

#[test]
fn levels_of_a_parameter_are_compared() {
    let bench = Bench::new();
    let run =
        bench.measured("-r 6 -L size=4k,64k 'dd if=/dev/zero of=/dev/null bs={size} count=1'");
    let comparisons = list(&run["analysis"]["comparisons"]).iter();
    let judged = comparisons.filter(|one| one["is_judged"] == true);
    assert_eq!(judged.count(), 1, "{run:#}");
    let factor = &run["analysis"]["factors"][1];
    assert_eq!(factor["levels"], serde_json::json!(["4KiB", "64KiB"]));
    assert_eq!(factor["numbers"], serde_json::json!([4096.0, 65536.0]));
    assert_eq!(list(&run["analysis"]["twins"]).len(), 1);
    let shown = bench.ok("show").stdout;
    assert!(shown.contains("64KiB"), "{shown}");
}

/// Compares by a metric that does not depend on how busy the machine is.
fn compare_faults(bench: &Bench, first: &str, second: &str) -> Value {
    bench.measured(&["-r", "10", "--metric", "minor_faults", first, second])
}

#[test]
fn a_threefold_difference_is_found_in_both_directions() {
    let bench = Bench::new();
    let [less, more] =
        ["64k", "1M"].map(|size| format!("dd if=/dev/zero of=/dev/null count=1 bs={size}"));
    for (first, second, expected) in [(&more, &less, "better"), (&less, &more, "worse")] {
        let run = compare_faults(&bench, first, second);
        let comparisons = &run["analysis"]["comparisons"];
        assert_eq!(relation(&run), expected, "{comparisons:#}");
    }
}

#[test]
fn a_command_is_not_found_better_than_itself() {
    let bench = Bench::new();
    // The same command with another spelling, because the same command twice is refused.
    let run = compare_faults(&bench, "sleep 0.01", "sleep .010");
    let relation = relation(&run);
    assert!(
        ["same", "undecided"].contains(&relation),
        "{:#}",
        run["analysis"]["comparisons"]
    );
}

#[test]
fn metrics_are_parsed_from_either_output() {
    let bench = Bench::new();
    bench.write(
        "own.toml",
        r#"
format = 1
name = "own"
metric = "items_per_s"
[workload]
kind = "command"
command = "sh -c 'echo speed {n}.5 items; echo lost {n} >&2'"
[[factor]]
name = "n"
levels = [10, 30]
[metrics.items_per_s]
pattern = 'speed ([0-9.]+) items'
unit = "items/s"
better = "higher"
[metrics.lost]
pattern = 'lost ([0-9]+)'
stream = "stderr"
better = "lower"
"#,
    );
    let run = bench.measured("-r 2 own.toml");
    assert_eq!(values(&run, "30", "items_per_s"), [30.5; 2]);
    assert_eq!(values(&run, "10", "lost"), [10.0; 2]);
    assert_eq!(run["analysis"]["metrics"]["items_per_s"]["unit"], "items/s");
}

#[test]
fn an_output_without_the_metric_is_a_failed_trial() {
    let bench = Bench::new();
    bench.write(
        "own.toml",
        "format = 1\nname = 'own'\nmetric = 'speed'\n[workload]\nkind = 'command'\n\
         command = 'echo speed {word}'\n[[factor]]\nname = 'word'\nlevels = ['7', 'fast']\n\
         [metrics.speed]\npattern = 'speed (\\S+)'\n",
    );
    let run = bench.measured("-r 3 own.toml");
    assert_eq!(values(&run, "7", "speed"), [7.0; 3]);
    let failed: Vec<&str> = list(&run["trials"])
        .iter()
        .filter(|trial| trial["state"] == "failed")
        .filter_map(|trial| trial["message"].as_str())
        .collect();
    assert_eq!(failed.len(), 3, "{run:#}");
    assert!(
        failed[0].contains("speed") && failed[0].contains("\"fast\""),
        "{}",
        failed[0]
    );
}

/// An experiment of sleeps that report their own length, since the measured time also depends on
/// what else runs. One claim holds, one does not, one lacks its treatment, and one is of a kind
/// that no run can test.
const CLAIMS: &str = r#"
format = 1
name = "sleeps"
title = "Sleeping"
question = "Is a longer sleep longer?"
metric = "slept"
[workload]
kind = "command"
command = "echo slept {seconds}"
[metrics.slept]
pattern = 'slept ([0-9.]+)'
unit = "s"
better = "lower"
[[factor]]
name = "seconds"
levels = ["0.01", "0.03"]
[profile.full]
factors = { seconds = ["0.01", "0.03", "60"] }
[[claim]]
id = "sleep.longer"
text = "Sleeping 30 ms takes over twice as long as 10 ms"
of = { seconds = "0.03" }
to = { seconds = "0.01" }
direction = "greater"
threshold = 2.0
[[claim]]
id = "sleep.shorter"
text = "Sleeping 30 ms is quicker"
of = { seconds = "0.03" }
to = { seconds = "0.01" }
direction = "less"
[[claim]]
id = "sleep.absent"
text = "Sleeping a minute is longer still"
of = { seconds = "60" }
to = { seconds = "0.01" }
direction = "greater"
[[claim]]
id = "sleep.never"
text = "Everybody sleeps well"
not_testable = "the question is not about this machine"
"#;

#[test]
fn claims_of_a_users_own_file_get_verdicts() {
    let bench = Bench::new();
    bench.write("sleeps.toml", CLAIMS);
    let run = bench.measured("-r 12 sleeps.toml");
    let verdicts: Vec<(&str, &str)> = list(&run["analysis"]["verdicts"])
        .iter()
        .map(|verdict| {
            (
                verdict["id"].as_str().unwrap(),
                verdict["outcome"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        verdicts,
        [
            ("sleep.longer", "supported"),
            ("sleep.shorter", "refuted"),
            ("sleep.absent", "not-testable"),
            ("sleep.never", "not-testable"),
        ]
    );
    let shown = bench.ok("show").stdout;
    for word in [
        "sleep.longer",
        "supported",
        "refuted",
        "not testable",
        "left to ",
    ] {
        assert!(shown.contains(word), "{word}: {shown}");
    }
}

#[test]
fn a_mistake_in_a_file_is_told_with_its_line() {
    let bench = Bench::new();
    let wrong = CLAIMS.replace("direction = \"less\"", "direction = \"sideways\"");
    let line = 1 + wrong
        .lines()
        .position(|line| line.contains("sideways"))
        .unwrap();
    bench.write("wrong.toml", &wrong);
    let errors = bench.fails(2, "run wrong.toml");
    assert!(errors.contains(&format!("wrong.toml:{line}:")), "{errors}");
    assert!(errors.contains("sideways"), "{errors}");
    bench.write(
        "deep.toml",
        &format!("a = {}1{}", "[".repeat(50_000), "]".repeat(50_000)),
    );
    bench.fails(2, "run deep.toml");
    bench.write("binary.toml", "\u{0}\u{1b}[31m\u{7f}");
    let errors = bench.fails(2, "run binary.toml");
    assert!(
        !errors.contains('\u{1b}') && !errors.contains('\u{0}'),
        "{errors:?}"
    );
}

#[test]
fn a_block_runs_every_treatment_once_in_an_order_of_its_seed() {
    let bench = Bench::new();
    let order = |seed: &str| -> Vec<(u64, u64)> {
        let run = bench.measured(&["--seed", seed, "-r", "4", "-L", "n=1,2,3,4", "true {n}"]);
        list(&run["trials"])
            .iter()
            .map(|t| {
                (
                    t["block"].as_u64().unwrap(),
                    t["treatment"].as_u64().unwrap(),
                )
            })
            .collect()
    };
    let first = order("1");
    for block in 0..4 {
        let mut of_block: Vec<u64> = first
            .iter()
            .filter(|trial| trial.0 == block)
            .map(|trial| trial.1)
            .collect();
        of_block.sort_unstable();
        assert_eq!(of_block, [0, 1, 2, 3, 4]);
    }
    assert_eq!(order("1"), first);
    assert_ne!(order("2"), first);
}

#[test]
fn levels_and_paths_with_odd_characters_stay_what_they_are() {
    let bench = Bench::new();
    let run = bench.measured(&[
        "-N",
        "-r",
        "1",
        "--output",
        "out {word}",
        "-L",
        r"word=ä ö,a\,b,{n},$(x)",
        "echo '{word}'",
    ]);
    let states: Vec<&Value> = list(&run["trials"])
        .iter()
        .map(|trial| &trial["state"])
        .collect();
    assert_eq!(states, ["completed"; 5], "{run:#}");
    for word in ["ä ö", "a,b", "{n}", "$(x)"] {
        assert_eq!(bench.read(&format!("out {word}")), format!("{word}\n"));
    }
}

/// Returns the error of a `toll` that was moved away from its probe and cannot run anything.
fn refusal_of_a_moved_toll(bench: &Bench) -> String {
    let moved = bench.path("toll");
    toll_testing::copy_program(toll_testing::TOLL.as_ref(), &moved);
    let output = std::process::Command::new(&moved)
        .args(["run", "-r", "1", "true"])
        .envs(bench.environment())
        .env_remove("TOLL_PROBE")
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(5), "{errors}");
    errors
}

#[test]
fn a_probe_that_is_missing_is_a_missing_prerequisite() {
    let errors = refusal_of_a_moved_toll(&Bench::new());
    has(&errors, &["toll-probe", "TOLL_PROBE"]);
}

#[test]
fn a_probe_of_another_version_is_refused_before_anything_is_measured() {
    let bench = Bench::new();
    let probe = bench.write(
        "toll-probe",
        "#!/bin/sh\necho 'toll-probe 0.0.9 (wire version 1)'\n",
    );
    toll_testing::make_executable(&probe);
    let errors = refusal_of_a_moved_toll(&bench);
    let versions = [
        "it is toll-probe 0.0.9 (wire version 1)",
        "from the same package",
    ];
    has(&errors, &versions);
    assert_eq!(errors.lines().count(), 1, "{errors}");
}

#[test]
fn a_busy_machine_is_told_before_the_first_trial() {
    let bench = Bench::new();
    let busy = bench.write("busy\u{1b}[31m", "#!/bin/sh\nwhile :; do :; done\n");
    make_executable(&busy);
    let busy = busy.to_str().unwrap();
    let start = |_| Running(bench.spawnable_program(busy, "").spawn().unwrap());
    let children: Vec<Running> = (0..3).map(start).collect();
    let ran = bench.run("run -r 2 --no-html true");
    let quiet = bench.run("run -q -r 2 --no-html true");
    drop(children);
    let printed = ran.stderr.find("this machine is busy: other programs use");
    let words = ran.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        printed.is_some() && words.contains("in CPU time"),
        "{}",
        ran.stderr
    );
    assert!(!ran.stderr.contains('\u{1b}'), "{:?}", ran.stderr);
    assert!(
        ran.stderr.lines().all(|line| line.chars().count() <= 80),
        "{}",
        ran.stderr
    );
    assert!(!quiet.stderr.contains("busy"), "{}", quiet.stderr);
}

#[test]
fn a_comparison_that_nothing_decides_ends_by_time() {
    let bench = Bench::new();
    // From 10 to 99 ms, so that no interval becomes narrow within 3 s.
    let line = "sleep 0.0$(($(od -An -N1 -tu1 /dev/urandom) + 20 + $1))\n";
    bench.write("wait", line);
    let run = bench.measured("'sh wait 0' 'sh wait 1'");
    let reason = run["run"]["stop_reason"].as_str().unwrap();
    has(
        reason,
        &["the 3 s of a comparison are over", "--time-budget"],
    );
}
