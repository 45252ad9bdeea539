//! Checks of names, metrics, levels and ranges.

use super::{COPY, FACTOR, HEAD, parse, refused};

#[test]
fn names_metrics_and_levels_are_checked_and_near_ones_suggested() {
    let claim = "[[claim]]\nid = \"c\"\ntext = \"x\"\ndirection = \"less\"\n";
    let with = |lines: &str| format!("{COPY}{FACTOR}{claim}{lines}\n");
    let sides = "of = { buffer = \"4k\" }\nto = { buffer = \"64k\" }\n";
    for (lines, line, words) in [
        (
            format!("{sides}metric = \"durtion_ns\""),
            14,
            "did you mean duration_ns?",
        ),
        (
            format!("{sides}metric = \"latency_ns\""),
            14,
            "kind copy has a metric latency_ns",
        ),
        (
            format!("{sides}metric = \"counter.cycles\""),
            14,
            "cycles is not among the counters",
        ),
        (sides.replace("4k", "4kB"), 12, "no profile has buffer=4kB"),
        (sides.replace("64k", "64KB"), 13, "did you mean 64KiB?"),
        (
            sides.replace("of = { buffer", "of = { bufer"),
            12,
            "did you mean buffer?",
        ),
    ] {
        refused(&with(&lines), line, words);
    }
    let counted = format!(
        "counters = [\"cycles\"]\n{}",
        with(&format!("{sides}metric = \"counter.cycles\""))
    );
    assert!(parse(&format!("{HEAD}{counted}"), "x", "quick").is_ok());
    let full = "[profile.full]\nfactors = { buffer = [\"4KiB\", \"1MiB\"] }\n";
    let of_full = format!("{HEAD}{}{full}", with(&sides.replace("64k", "1MiB")));
    assert!(
        parse(&of_full, "x", "quick").is_ok(),
        "a level of another profile"
    );
    refused(
        "metric = \"x\"\n[workload]\nkind = \"copy\"\n",
        3,
        "cannot use metric x",
    );
    let command = "[workload]\nkind = \"command\"\ncommand = \"true\"\n";
    refused(
        &format!("{command}[metric.x]\npattern = \"(1)\"\n"),
        6,
        "did you mean [metrics.NAME]",
    );
    refused(
        &format!("{COPY}[[factr]]\nname = \"x\"\n"),
        5,
        "did you mean factor?",
    );
    refused("[workload]\nkind = \"cpy\"\n", 4, "did you mean copy?");
    let cost = "[[derived]]\nid = \"d\"\ntext = \"x\"\nkind = \"cost-per-call\"\nfactor = \"n\"\n";
    let factor = "[[factor]]\nname = \"n\"\nlevels = [1, 2]\n";
    let echo = command.replace("true", "echo {n}");
    refused(&format!("{echo}{factor}{cost}"), 9, "has a metric calls");
    let calls = "[metrics.calls]\npattern = \"(1)\"\n";
    refused(
        &format!("{echo}{factor}{calls}{cost}"),
        11,
        "has a metric bytes_written or bytes_copied or bytes_transferred",
    );
    let sides = "of = { n = 1 }\nto = { n = 2 }\nvalue = 1.0\n";
    let crossing = cost.replace("cost-per-call", "crossing") + sides;
    refused(&format!("{echo}{factor}{crossing}"), 16, "less than 1");
}

#[test]
fn a_range_says_which_key_is_wrong() {
    let factor = |levels: &str| format!("{COPY}[[factor]]\nname = \"size\"\nlevels = {levels}\n");
    refused(
        &factor("{ from = 1, to = 2, plus = 1 }"),
        7,
        "unknown field `plus`, expected one of",
    );
    refused(
        &factor("{ from = 1, to = 2, stap = 1 }"),
        7,
        "did you mean step?",
    );
    refused(&factor("{ from = 1 }"), 7, "missing field `to`");
    refused(
        &factor("\"4k\""),
        7,
        "expected a list of levels, or a range",
    );
    refused(&factor("[true]"), 7, "expected a number or a text");
}

#[test]
fn a_number_of_combinations_is_told_however_large_it_is() {
    let mut text = format!("{HEAD}[workload]\nkind = \"command\"\ncommand = \"true");
    (0..15).for_each(|i| text.push_str(&format!(" {{f{i}}}")));
    text.push_str("\"\n");
    let range = "levels = { from = 1, to = 100, step = 1 }";
    (0..15).for_each(|i| text.push_str(&format!("[[factor]]\nname = \"f{i}\"\n{range}\n")));
    let error = parse(&text, "x.toml", "quick").unwrap_err().to_string();
    assert!(error.contains("more than 10^30 combinations"), "{error}");
}

#[test]
fn a_claim_on_how_machines_differ_names_a_fact_and_a_factor() {
    let with = |rest: &str| {
        format!(
            "{COPY}{FACTOR}[[claim]]\nid = \"c\"\ntext = \"x\"\nof = {{ buffer = \"4KiB\" }}\n\
             to = {{ buffer = \"64KiB\" }}\n{rest}\n"
        )
    };
    let unknown = with("differ_by = \"kernal\"\nthreshold = 2");
    refused(
        &unknown,
        8,
        "machines have no fact kernal; they have CPU family, kernel,",
    );
    let no_factor = with("differ_by = \"file system\"");
    refused(&no_factor, 8, "a threshold above 1");
    let no_order = with("differ_by = \"kernel\"\nthreshold = 2");
    refused(
        &no_order,
        8,
        "older kernels have `less` or `greater` values",
    );
    let order = with("differ_by = \"file system\"\nthreshold = 2\ndirection = \"less\"");
    refused(&order, 8, "other facts have no order");
    let check = with("differ_by = \"file system\"\nthreshold = 2\ncheck = true");
    refused(&check, 8, "with check, not_testable or between");
    let claim = with("differ_by = \"kernel\"\nthreshold = 2\ndirection = \"greater\"");
    parse(&format!("{HEAD}{claim}"), "x.toml", "quick").unwrap();
}

#[test]
fn a_published_platform_names_facts_and_claims_that_are_there() {
    let with = |report: &str, facts: &str, concluded: &str| {
        let claim = "[[claim]]\nid = \"c\"\ntext = \"x\"\nnot_testable = \"y\"\n";
        format!(
            "{report}{COPY}{claim}[[platform]]\nname = \"server\"\nfacts = {{ {facts} }}\n\
             concluded = {{ {concluded} }}\n"
        )
    };
    let report = "report = \"paper\"\n";
    let (fact, concluded) = ("kernel = \"2.6\"", "c = \"slow\"");
    refused(&with("", fact, concluded), 10, "who published it");
    refused(
        &with(report, "disk = \"old\"", concluded),
        12,
        "machines have no fact disk",
    );
    refused(
        &with(report, fact, "d = \"slow\""),
        13,
        "there is no claim d",
    );
    let text = format!("{HEAD}{}", with(report, fact, concluded));
    let experiment = parse(&text, "x.toml", "quick").unwrap();
    assert_eq!(experiment.platforms[0].report, "paper");
}
