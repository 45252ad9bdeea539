//! `toll prices`: what it measures, shows, writes and compares.

use serde_json::Value;
use toll_testing::{Bench, can_trace, has, has_program, lacks, list, skip};

/// Measures some rows in few blocks.
fn measure(bench: &Bench, more: &[&str]) -> String {
    let fixed = ["prices", "-q", "-r", "2"];
    bench.ok(&[&fixed, more].concat()).stdout
}

#[test]
fn a_group_is_measured_listed_and_written() {
    let bench = Bench::new();
    let files = ["--csv", "p.csv", "--html", "p.html"];
    let text = measure(&bench, &[&["--group", "kernel entry"], &files[..]].concat());
    has(
        &text,
        &["kernel entry", "empty system call", "ns  [", "for each"],
    );
    has(&text, &["with 2 blocks the intervals cover less than 95 %"]);
    assert!(!text.contains("read of 4 KiB"), "{text}");
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    let csv = bench.read("p.csv");
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(
        lines[0],
        "group,name,value,low,high,confidence,unit,per,note"
    );
    assert_eq!(lines.len(), 4, "{csv}");
    assert!(
        lines[1].starts_with("kernel entry,empty system call,"),
        "{csv}"
    );
    assert!(lines[1].ends_with(",ns,call,"), "{csv}");
    let page = bench.read("p.html");
    has(
        &page,
        &[
            "<caption>kernel entry</caption>",
            "empty system call",
            "<svg",
        ],
    );
    assert!(!page.contains("No runs"), "{page}");
    // A price list is a run like any other.
    has(&bench.ok("list").stdout, &["prices"]);
    has(&bench.ok("show last").stdout, &["empty system call"]);
}

#[test]
fn prices_of_a_document_are_compared_with_those_of_another() {
    let bench = Bench::new();
    let rows = ["--row", "empty system call", "--row", "stat"];
    let there = measure(&bench, &[&rows, &["--json"][..]].concat());
    bench.write("there.json", &there);
    let document: Value = serde_json::from_str(&there).expect("the output is JSON");
    let prices = list(&document["analysis"]["prices"]);
    assert_eq!(prices.len(), 2, "{prices:#?}");
    assert_eq!(
        (&prices[1]["name"], &prices[1]["unit"]),
        (&"stat".into(), &"ns".into())
    );
    assert!(prices[1]["value"]["value"].as_f64() > Some(0.0));

    let compare = ["--compare", "there.json"];
    let text = measure(&bench, &[&rows, &compare[..]].concat());
    has(
        &text,
        &["The runs differ in", "change", "empty system call", "stat"],
    );
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    let both = measure(&bench, &[&rows, &compare[..], &["--json"]].concat());
    let both: Value = serde_json::from_str(&both).expect("the output is JSON");
    let ratios = list(&both["comparison"]["ratios"]);
    assert_eq!(ratios.len(), 2, "{both:#}");
    assert!(ratios[0]["ratio"]["value"].as_f64() > Some(0.0), "{both:#}");
    assert!(both["differences"].is_array());
}

#[test]
fn a_row_that_cannot_run_says_why() {
    let bench = Bench::new();
    if !has_program("taskset") {
        return skip("taskset is missing; install the package util-linux");
    }
    let ran = bench.shell("taskset -c 0 toll prices -q -r 1 --row 'pipe, two CPUs' --row stat");
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let words = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    has(
        &words,
        &[
            "pipe, two CPUs –",
            "cannot use two CPUs: the probe may use only one",
            "stat",
        ],
    );
}

#[test]
fn a_whole_list_is_what_reports_start_with_and_traces_are_priced_by() {
    let bench = Bench::new();
    bench.ok("prices -q -r 1");
    let id = bench.document("last")["run"]["id"].clone();
    let text = bench.ok("prices --last").stdout;
    has(
        &text,
        &["TLB reach, 4 KiB pages", "round trip", "create and unlink"],
    );
    assert!(!text.contains("for other purposes"), "{text}");
    has(
        &bench.ok("prices --last --all").stdout,
        &["row=copies", "for other purposes"],
    );
    let group = bench.ok("prices --last --group memory").stdout;
    has(&group, &["mmap and munmap"]);
    lacks(&group, &["rename"]);

    bench.ok("run -r 1 --no-html true");
    bench.ok("report last --html page.html");
    let page = bench.read("page.html");
    let place = |text: &str| page.find(text).unwrap_or_else(|| panic!("no {text}"));
    assert!(place("create and unlink") < place("class=\"run\""));

    if can_trace(&bench) {
        bench.write("in", &"x".repeat(10_000));
        bench.ok("trace --json -o trace.json cat in");
        let report: Value =
            serde_json::from_str(&bench.read("trace.json")).expect("the report is JSON");
        assert_eq!(report["costs"]["run"], id, "{:#}", report["costs"]);
        let bound = |name: &str| report["slowdown"][name].as_f64();
        assert!(bound("least") >= Some(1.0), "{report:#}");
        assert!(bound("most") >= bound("least"), "{report:#}");
    }
}
