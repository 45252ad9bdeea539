//! Texts of others, from files, hosts and commands, in everything that is shown or
//! written: they stay texts.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use toll::store::Store;
use toll::store::exchange::RunDocument;

use crate::common::{Bench, list};

/// What each kind of reader might take for a command of its own.
const NASTY: [&str; 16] = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "' onmouseover='alert(1)",
    "</title></style></text></svg><svg onload=alert(1)>",
    "]]><!-- {{ 7*7 }} {% for x in y %} &lt; &#60;b&#62;",
    "\u{1b}]0;title\u{7}\u{1b}[31mred\u{9b}1m\u{90}q\u{9c}\u{8}\u{7f}",
    "first\r\nsecond\u{2028}third\u{85}fourth\tfifth",
    "\u{202e}desrever\u{2066}isolated\u{200f}\u{61c}",
    "\u{0}\u{1}\u{b}\u{c}\u{fffe}\u{ffff}\u{feff}",
    "'; DROP TABLE runs; --\" OR 1=1",
    "$(touch pwned) `touch pwned`; touch pwned | touch pwned &",
    "a|b\\|c `d` **e** [f](http://example.org) ![g](x) @everyone # h ~i~ $j$",
    "=1+1\",\"@SUM(A1)",
    "-cmd|' /C calc'!A0",
    "Unit ns/op better=lower\nBenchmarkFake 1 1 ns/op\npkg: other",
    ".SH FAKE\n.sp \\fBbold\\fR 'x",
];

/// A document of a run with claims, a guest's boot and a failed trial, in which all
/// kinds of text stand somewhere.
fn document(bench: &Bench) -> Value {
    let file = bench.write(
        "pair.toml",
        "format = 1\nname = 'pair'\nreport = 'paper'\n[workload]\nkind = 'command'\n\
         command = 'sleep {s}'\n[[factor]]\nname = 's'\nlevels = ['0.001', '0.004']\n[[claim]]\n\
         id = 'pair.longer'\ntext = 'longer'\nof = { s = '0.004' }\nto = { s = '0.001' }\n\
         direction = 'greater'\npublished = 2.0\n[[claim]]\nid = 'pair.shorter'\ntext = 'shorter'\n\
         of = { s = '0.004' }\nto = { s = '0.001' }\ndirection = 'less'\n[reference]\ns = '0.001'\n\
         [[figure]]\ntitle = 'a curve'\nkind = 'curve'\nfactor = 's'\n",
    );
    bench.ok(&["run", "-q", "--no-html", "-r", "6", file.to_str().unwrap()]);
    let mut document = bench.json("export last --json -");
    document["run"]["stop_reason"] = json!("enough");
    document["boots"] = json!([{
        "block": 0, "started_at": "2026-01-01T00:00:00Z", "boot_ns": 5, "levels": {"kernel": "toll"},
        "accelerator": "kvm", "facts": {"kernel_release": "6.1"}, "error": "it died",
        "log": "a log\nof two lines\n", "partner": {"facts": {"swap": "0"}, "log": "another"},
    }]);
    let trial = &mut document["trials"][0];
    trial["message"] = json!("it failed");
    trial["state"] = json!("failed");
    trial["notes"] = json!(["a note"]);
    trial["counters_missing"] = json!({"cycles": "none"});
    trial["disturbance"] = json!({"steal_ns": 3.0});
    document["treatments"][2]["skipped"] = json!("not here");
    document["run"]["uid"] = json!("00000000deadbeef");
    document
}

/// Paths to all texts of a document; those of keys end in `#`.
fn places(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::String(_) => found.push(path.to_owned()),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                places(item, &format!("{path}/{index}"), found);
            }
        }
        Value::Object(members) => {
            for (key, member) in members {
                let path = format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"));
                found.push(format!("{path}#"));
                places(member, &path, found);
            }
        }
        _ => {}
    }
}

/// Puts a nasty text wherever a document is still accepted with it, and tells in
/// how many places that was. What is of the same shape is tried together.
fn poisoned(good: &Value, nasty: &str) -> (Value, usize) {
    let mut found = Vec::new();
    places(good, "", &mut found);
    // A key before what is under it.
    found.retain(|path| !path.starts_with("/analysis") && path != "/run/uid" && path != "/format");
    found.sort_by_key(|path| std::cmp::Reverse(path.len()));
    let mut document = good.clone();
    document["analysis"] = Value::Null;
    // Without its metric a run has nothing to show.
    found.retain(|path| !path.ends_with("/metric"));
    // Trials are many and alike.
    found.retain(|path| !path.starts_with("/trials/") || path.starts_with("/trials/0/"));
    let mut count = 0;
    for path in found {
        let mut tried = document.clone();
        match path.strip_suffix('#') {
            None => match tried.pointer_mut(&path) {
                Some(text) => {
                    *text = json!(format!("{nasty}{}", text.as_str().unwrap_or_default()))
                }
                None => continue,
            },
            Some(path) => {
                let (parent, key) = path.rsplit_once('/').expect("it is under something");
                let key = key.replace("~1", "/").replace("~0", "~");
                let members = tried.pointer_mut(parent).and_then(Value::as_object_mut);
                let Some((members, member)) = members
                    .and_then(|members| members.remove(&key).map(|member| (members, member)))
                else {
                    continue;
                };
                members.insert(format!("{nasty}{key}"), member);
            }
        }
        if RunDocument::parse(&tried.to_string()).is_ok() {
            document = tried;
            count += 1;
        }
    }
    (document, count)
}

/// What a terminal, or a reader of lines, must not get.
#[track_caller]
fn check_plain(text: &str, what: &str) {
    let is_bad = |c: &char| {
        *c != '\n' && c.is_control()
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}')
            || matches!(c, '\u{2028}' | '\u{2029}')
    };
    let found = text.chars().find(is_bad);
    assert_eq!(found, None, "{what}: {text:?}");
}

/// The elements and attributes of a text in HTML, SVG or XML.
fn markup(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut rest = text;
    while let Some(begin) = rest.find('<') {
        rest = &rest[begin + 1..];
        let end = rest
            .find(['>', ' ', '\n', '/'])
            .unwrap_or(rest.len())
            .max(1);
        let element = rest[..end.min(rest.len())].to_owned();
        let mut attribute = String::new();
        let mut quote = None;
        let mut length = end.min(rest.len());
        for c in rest[length..].chars() {
            length += c.len_utf8();
            match (quote, c) {
                (Some(open), c) if c == open => quote = None,
                (Some(_), _) => {}
                (None, '"' | '\'') => quote = Some(c),
                (None, '>') => break,
                (None, '=') => {
                    found.insert(format!("{element} {}", attribute.trim()));
                    attribute.clear();
                }
                (None, c) if c.is_whitespace() => attribute.clear(),
                (None, c) => attribute.push(c),
            }
        }
        found.insert(element);
        rest = &rest[length..];
    }
    found
}

fn check_markdown(text: &str) {
    check_plain(text, "markdown");
    // Every other piece between backquotes is code, in which nothing is obeyed.
    let unescaped = text.replace("\\`", "").replace("<br>", "");
    let bare: String = unescaped.split('`').step_by(2).collect();
    assert!(!bare.contains('<'), "{text}");
    assert!(!bare.replace("\\]", "").contains("]("), "{text}");
    // As in cmark-gfm, any backslash before a pipe keeps it in its cell.
    check_rows(&text.replace("\\|", ""));
    for line in text.lines().filter(|line| !line.starts_with('|')) {
        let is_ours = line.is_empty() || line.starts_with("## ") || line.starts_with("> ");
        assert!(is_ours || !line.starts_with(['#', '-', '=']), "{line}");
    }
}

/// Rows of one table have as many cells.
fn check_rows(text: &str) {
    let mut columns = None;
    for line in text.lines() {
        if !line.starts_with('|') {
            columns = None;
            continue;
        }
        // A rule of Org has crosses where its columns meet.
        let borders = match line.starts_with("|-") {
            true => line.matches(['|', '+']).count(),
            false => line.matches('|').count(),
        };
        assert_eq!(*columns.get_or_insert(borders), borders, "{line}");
    }
}

fn check_asciidoc(text: &str) {
    check_plain(text, "asciidoc");
    for line in text.lines() {
        let own = ["== ", "NOTE: ", "[cols=", "|===", "| "];
        let rest = own
            .iter()
            .find_map(|own| line.strip_prefix(own))
            .unwrap_or(line);
        let is_head = line.starts_with("| Verdict | ") || line.starts_with("| treatment | ");
        let means_something = [
            '|', '<', '{', '}', '*', '_', '#', '+', '~', '^', '$', '\\', '\'',
        ];
        // The break of a line, and references by number.
        let bare = rest.trim_end_matches(" +").replace("&#", "&");
        let is_text = !bare.contains(means_something);
        assert!(is_text || is_head || line.starts_with("[cols="), "{line}");
    }
}

fn check_org(text: &str) {
    check_plain(text, "org");
    check_rows(text);
    for line in text.lines() {
        let is_ours = ["#+begin_quote", "#+end_quote"].contains(&line);
        assert!(is_ours || !line.starts_with('#'), "{line}");
        assert!(!line.contains("[[") && !line.contains("src_"), "{line}");
    }
}

/// The fields of CSV by RFC 4180.
fn records(text: &str) -> Vec<Vec<String>> {
    let (mut records, mut record, mut field) = (Vec::new(), Vec::new(), String::new());
    let mut is_quoted = false;
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            '"' if is_quoted && characters.peek() == Some(&'"') => {
                characters.next();
                field.push('"');
            }
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => record.push(std::mem::take(&mut field)),
            '\r' if !is_quoted => {}
            '\n' if !is_quoted => {
                record.push(std::mem::take(&mut field));
                records.push(std::mem::take(&mut record));
            }
            c => field.push(c),
        }
    }
    assert!(
        !is_quoted && record.is_empty() && field.is_empty(),
        "{text}"
    );
    records
}

fn check_csv(text: &str) {
    let records = records(text);
    let columns = records[0].len();
    for record in &records {
        assert_eq!(record.len(), columns, "{record:?}");
        for field in record {
            let is_formula = field.starts_with(['=', '@', '\t', '\r'])
                || field.starts_with(['+', '-']) && field.parse::<f64>().is_err();
            assert!(!is_formula, "{field:?}");
        }
    }
    assert!(
        !text.contains('\u{1b}') && !text.contains('\u{9b}'),
        "{text:?}"
    );
}

fn check_benchstat(text: &str) {
    check_plain(text, "benchstat");
    for line in text.lines() {
        let known = [
            "goos: ",
            "goarch: ",
            "pkg: ",
            "cpu: ",
            "# ",
            "Unit ",
            "BenchmarkPair/",
        ];
        assert!(known.iter().any(|begin| line.starts_with(begin)), "{line}");
    }
    assert_eq!(text.matches("\npkg: ").count(), 1, "{text}");
}

fn check_xml(text: &str, known: &BTreeSet<String>) {
    check_plain(text, "junit");
    assert!(!text.contains(['\u{fffe}', '\u{ffff}']), "{text:?}");
    assert!(
        markup(text).is_subset(known),
        "{:?}",
        markup(text).difference(known)
    );
}

/// What a run is written as.
struct Written {
    page: String,
    plots: Vec<String>,
    junit: String,
}

fn written(bench: &Bench, run: &str) -> Written {
    let directory = format!("out-{run}");
    let file = |name: &str| format!("{directory}/{name}");
    bench.ok(&[
        "report",
        run,
        "--html",
        &file("page.html"),
        "--plots",
        &directory,
    ]);
    let files = [
        "markdown",
        "asciidoc",
        "orgmode",
        "csv",
        "junit",
        "hyperfine",
        "benchstat",
        "json",
    ];
    let mut arguments = vec!["export".to_owned(), run.to_owned()];
    for name in files {
        arguments.extend([format!("--{name}"), file(name)]);
    }
    bench.ok(&arguments);
    let mut plots = Vec::new();
    for entry in std::fs::read_dir(bench.path(&directory)).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "svg") {
            plots.push(std::fs::read_to_string(path).unwrap());
        }
    }
    assert!(!plots.is_empty(), "run {run}");
    Written {
        page: bench.read(&file("page.html")),
        plots,
        junit: bench.read(&file("junit")),
    }
}

/// What every verb prints of the poisoned run of an index.
fn check_verbs(bench: &Bench, index: usize, nasty: &str) {
    let run = (index + 3).to_string();
    let mut ran = vec![bench.ok("import hostile.json")];
    for arguments in [
        &["list"][..],
        &["list", "--json"],
        &["show", &run],
        &["show", &run, "--json"],
        &["show", &run, "--kernel-log"],
        &["compare", "2", &run],
        &["compare", "2", &run, "--json"],
        &["baseline", "list"],
    ] {
        ran.push(bench.ok(arguments));
    }
    ran.push(bench.run(&["baseline", "save", &format!("name{index}"), &run]));
    ran.push(bench.run(&["show", &run, "--baseline", &format!("name{index}")]));
    ran.push(bench.run(&["run", "--resume", &run]));
    for name in ["show", "export", "compare", "report"] {
        ran.push(bench.run(&[name, nasty.replace('\0', "").trim_start_matches('-')]));
    }
    for ran in &ran {
        check_plain(&ran.stdout, nasty);
        check_plain(&ran.stderr, nasty);
    }
}

#[test]
fn texts_of_others_stay_texts_in_everything_that_is_shown_or_written() {
    let bench = Bench::new();
    let good = document(&bench);
    bench.write("good.json", &good.to_string());
    bench.ok("import good.json");
    let benign = written(&bench, "2");
    let known = |texts: &[String]| texts.iter().flat_map(|text| markup(text)).collect();
    let (page, junit) = (markup(&benign.page), markup(&benign.junit));
    let plots: BTreeSet<String> = known(&benign.plots);
    for (index, nasty) in NASTY.iter().enumerate() {
        let (mut document, places) = poisoned(&good, nasty);
        assert!(places > 40, "{nasty:?} in {places} places");
        document["run"]["uid"] = json!(format!("0000000000000{index:03x}"));
        bench.write("hostile.json", &document.to_string());
        let run = (index + 3).to_string();
        check_verbs(&bench, index, nasty);
        let Written {
            page: hostile,
            plots: hostile_plots,
            junit: hostile_junit,
        } = written(&bench, &run);
        check_plain(&hostile.replace('\t', " "), "page");
        assert!(
            markup(&hostile).is_subset(&page),
            "{nasty}: {:?}",
            markup(&hostile).difference(&page)
        );
        for plot in &hostile_plots {
            check_plain(plot, "plot");
            let found = markup(plot);
            assert!(
                found.is_subset(&plots),
                "{nasty}: {:?}",
                found.difference(&plots)
            );
        }
        check_xml(&hostile_junit, &junit);
        let out = |name: &str| bench.read(&format!("out-{run}/{name}"));
        check_markdown(&out("markdown"));
        check_asciidoc(&out("asciidoc"));
        check_org(&out("orgmode"));
        check_csv(&out("csv"));
        check_benchstat(&out("benchstat"));
        for name in ["hyperfine", "json"] {
            check_plain(&out(name), name);
            serde_json::from_str::<Value>(&out(name)).unwrap();
        }
        assert!(!bench.path("pwned").exists());
    }
    let salvaged = bench.ok("doctor --salvage new.sqlite");
    check_plain(&salvaged.stdout, "salvage");
    assert!(Store::survey(&bench.store()).unwrap().is_whole);
    let listed = bench.json("list --json");
    assert_eq!(list(&listed["runs"]).len(), NASTY.len() + 2);
}

#[test]
fn names_on_the_command_line_reach_neither_terminal_nor_shell() {
    let bench = Bench::new();
    for nasty in NASTY {
        let name = nasty.replace('\0', "");
        let file = format!("{}.toml", name.replace('/', "_"));
        bench.write(&file, "format = 1\nname = 'x'\nno = 1\n");
        for arguments in [
            &["run", "--", &file][..],
            &["run", "--dry-run", "--", &format!("true # {name}")],
            &["run", "--dry-run", "-n", &name, "--", "true"],
            &["list", "--store", &file],
            &["import", "--", &file],
            &["baseline", "save", "--", &name],
            &["baseline", "remove", "x", &format!("--experiment={name}")],
            &["doctor", "--salvage", &file],
        ] {
            let ran = bench.run(arguments);
            check_plain(&ran.stdout, nasty);
            check_plain(&ran.stderr, nasty);
        }
        let command = "test -d {workdir} && test -d \"{workdir}\" && test -d '{workdir}'";
        let work_dir = format!("./w{}", name.replace('/', "_"));
        let ran = bench.run(&[
            "run",
            "-q",
            "--no-html",
            "-r",
            "1",
            "--work-dir",
            &work_dir,
            command,
        ]);
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        check_plain(&ran.stderr, nasty);
        assert!(!bench.path("pwned").exists(), "{nasty}");
    }
}

#[test]
fn completions_and_the_manual_page_have_nothing_of_others() {
    let bench = Bench::new();
    for arguments in [
        &["completions", "bash"][..],
        &["completions", "zsh"],
        &["completions", "fish"],
        &["man"],
    ] {
        let first = bench.ok(arguments).stdout;
        check_plain(&first.replace('\t', " "), "static");
        let mut command = bench.toll(arguments);
        command.env("TOLL_STORE", NASTY[5]).env("USER", NASTY[10]);
        let again = command.output().unwrap();
        assert_eq!(String::from_utf8(again.stdout).unwrap(), first);
    }
}
