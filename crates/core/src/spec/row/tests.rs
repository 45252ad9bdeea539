use crate::plan::Plan;
use crate::spec::{WorkloadKind, parse};

const HEAD: &str = "format = 1\nname = \"t\"\n";

const ROWS: &str = "[workload]
kind = \"crossing\"
[[rows]]
group = \"calls\"
per = \"call\"
list = [
    { name = \"empty\", operation = \"empty-syscall\" },
    { name = \"read\", operation = \"read-file\", vary = [\"size\"] },
]
[[rows]]
kind = \"copy\"
source = \"file\"
metric = \"duration_per_byte_ns\"
times = 1024
list = [{ name = \"copy\", sink = \"pipe\", times = 2 }]
[[factor]]
name = \"size\"
levels = [\"1B\", \"4KiB\"]
";

#[test]
fn rows_have_what_their_table_shares_and_the_factors_that_they_vary() {
    let experiment = parse(&format!("{HEAD}{ROWS}"), "x.toml", "quick").unwrap();
    let [empty, read, copy] = &experiment.rows[..] else {
        panic!("{:#?}", experiment.rows)
    };
    assert_eq!(
        (empty.metric.as_str(), empty.times),
        ("duration_per_call_ns", 1.0)
    );
    assert_eq!(
        (empty.group.as_deref(), empty.per.as_str()),
        (Some("calls"), "call")
    );
    assert_eq!(copy.kind, WorkloadKind::Copy);
    assert_eq!((copy.group.as_deref(), copy.times), (None, 2.0));
    assert_eq!(copy.parameters["source"].text, "file");
    let names = |row| {
        experiment
            .factors_of(row)
            .map(|factor| &factor.name[..])
            .collect::<Vec<_>>()
    };
    assert_eq!(
        (names(empty), names(read), names(copy)),
        (vec![], vec!["size"], vec![])
    );
    let plan = Plan::new(&experiment, 1).unwrap();
    let labels: Vec<&str> = plan
        .treatments
        .iter()
        .map(|one| one.label.as_str())
        .collect();
    let expected = [
        "empty",
        "row=read size=1",
        "row=read size=4KiB",
        "copy",
        "empty (A/A twin)",
    ];
    assert_eq!(labels, expected);
    for treatment in &plan.treatments {
        let names = experiment.level_names(&treatment.levels).unwrap();
        assert!(treatment.levels.keys().map(String::as_str).eq(names));
    }
}

#[test]
fn a_constraint_on_a_factor_holds_for_the_rows_that_vary_it() {
    let text = format!("{HEAD}require = [\"size > 1\"]\n{ROWS}");
    let experiment = parse(&text, "x.toml", "quick").unwrap();
    let plan = Plan::new(&experiment, 1).unwrap();
    let own = plan.treatments.iter().filter(|one| one.twin_of.is_none());
    let labels: Vec<&str> = own.map(|one| one.label.as_str()).collect();
    assert_eq!(labels, ["empty", "row=read size=4KiB", "copy"]);
}

#[test]
fn rows_that_cannot_be_are_refused_where_they_stand() {
    let row =
        |row: &str| format!("[workload]\nkind = \"crossing\"\n[[rows]]\nlist = [\n{row}\n]\n");
    for (text, line, words) in [
        (
            "{ name = \"a\", operation = \"fly\" }",
            7,
            "it must be one of",
        ),
        (
            "{ name = \"a\", method = \"page\" }",
            7,
            "no such parameter",
        ),
        ("{ name = \"a\", times = -1 }", 7, "above 0"),
        (
            "{ name = \"a\", vary = [\"size\"], size = 4 }",
            7,
            "also holds fixed",
        ),
        ("{ name = \"a\" },\n{ name = \"a\" }", 8, "twice"),
        ("{ name = \"a\", vary = [\"size\"] }", 7, "no such factor"),
    ] {
        refused(&row(text), line, words);
    }
    let command = row("{ name = \"a\" }").replace("[[rows]]", "[[rows]]\nkind = \"command\"");
    refused(&command, 8, "cannot be a row");
    let factor = "[[factor]]\nname = \"row\"\nlevels = [\"a\", \"b\"]\n";
    refused(
        &(row("{ name = \"a\" }") + factor),
        11,
        "no row of this name",
    );
}

/// Checks that an experiment is refused at a line with words in the message.
fn refused(rest: &str, line: usize, words: &str) {
    let error = parse(&format!("{HEAD}{rest}"), "x.toml", "quick").expect_err(rest);
    assert!(error.message.contains(words), "{error}");
    assert_eq!(error.line, Some(line), "{error}");
}
