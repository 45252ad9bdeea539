//! The command line: what it accepts and refuses, and where it prints.

use toll_testing::{Bench, TOLL, has, has_program, lacks, list, skip, values};

/// Returns the verbs that `toll --help` lists.
fn verbs(bench: &Bench) -> Vec<String> {
    let help = bench.ok("--help").stdout;
    let (_, listed) = help.split_once("Commands:\n").unwrap();
    let (listed, _) = listed.split_once("\n\n").unwrap();
    let words = listed
        .lines()
        .filter_map(|line| line.split_whitespace().next());
    let verbs: Vec<String> = words
        .filter(|word| *word != "help")
        .map(String::from)
        .collect();
    assert!(verbs.len() > 20, "{help}");
    verbs
}

/// The first byte of an escape sequence.
const ESCAPE: char = '\u{1b}';

#[test]
fn help_names_every_verb_and_the_exit_codes() {
    let help = Bench::new().ok("--help").stdout;
    insta::assert_snapshot!(help);
}

#[test]
fn every_verb_explains_itself() {
    let bench = Bench::new();
    for verb in verbs(&bench) {
        let help = bench.ok(&[&verb, "--help"][..]).stdout;
        assert!(help.contains(&format!("Usage: toll {verb}")), "{help}");
        assert!(!help.contains(ESCAPE), "{help}");
    }
    assert_eq!(
        bench.ok("--version").stdout,
        concat!("toll ", env!("CARGO_PKG_VERSION"), "\n")
    );
}

#[test]
fn a_run_that_is_not_there_is_named_and_list_is_pointed_to() {
    let bench = Bench::new();
    assert!(bench.fails(1, "show").contains("toll run"));
    assert!(!bench.path("data").exists(), "reading creates no store");
    bench.ok("run -q --no-html -r 1 true");
    for verb in ["show", "report"] {
        let errors = bench.fails(1, &[verb, "77"]);
        has(&errors, &["run 77", "toll list"]);
    }
}

#[test]
fn hyperfines_parameter_list_and_scan_are_understood() {
    let bench = Bench::new();
    let lists = [
        ["-L", "size", "4k,64k"].as_slice(),
        &["-L", "size=4k,64k"],
        &["--parameter-list", "size", "4k,64k"],
    ];
    for list in lists {
        let arguments = [&["run", "--dry-run"], list, &["head -c {size} /dev/zero"]].concat();
        let plan = bench.ok(&arguments).stdout;
        assert!(plan.contains("3 treatments"), "{plan}");
        has(&plan, &["    4KiB\n", "    64KiB\n"]);
    }
    let plan = bench.ok("run --dry-run -P n 1 4 -D 1 'echo {n}'").stdout;
    for n in 1..=4 {
        assert!(plan.contains(&format!("    {n}\n")), "{plan}");
    }
    let plan = bench.ok("run --dry-run -D 3 -P n 1 4 'echo {n}'").stdout;
    has(&plan, &["3 treatments"]);
    lacks(&plan, &["    2\n"]);
}

#[test]
fn hyperfines_other_options_are_understood() {
    let bench = Bench::new();
    let json = bench.json("run --json --no-html -q -w 1 -r 2 -p true -s true -c true -n first -n second -i -S bash --reference 'true b' --export-json o.json --export-csv o.csv --export-markdown o.md 'true a' 'true b'");
    let run = &json["runs"][0];
    assert_eq!(list(&run["trials"]).len(), 2 * 3);
    let labels: Vec<_> = list(&run["treatments"])
        .iter()
        .map(|t| t["label"].clone())
        .collect();
    assert_eq!(labels, ["first", "second", "second (A/A twin)"]);
    assert_eq!(list(&run["analysis"]["comparisons"])[0]["reference"], 1);
    for file in ["o.json", "o.csv", "o.md"] {
        assert!(!bench.read(file).is_empty(), "{file}");
    }
    for arguments in [&["-N"][..], &["--shell=none"], &["-m", "1", "-M", "2"]] {
        let arguments = [
            &["run", "--no-html", "-q", "-r", "1"][..1],
            arguments,
            &["--no-html", "-q", "true"],
        ]
        .concat();
        bench.ok(&arguments);
    }
}

#[test]
fn no_shell_means_that_nothing_is_expanded() {
    let bench = Bench::new();
    bench.ok("run -N -r 1 -q --no-html --output out 'echo $HOME'");
    assert_eq!(bench.read("out"), "$HOME\n");
    bench.ok("run -r 1 -q --no-html --output out 'echo $HOME'");
    assert_eq!(
        bench.read("out"),
        format!("{}\n", bench.path("home").display())
    );
}

#[test]
fn json_is_one_document_on_stdout_and_remarks_go_to_stderr() {
    let bench = Bench::new();
    bench.ok("run -q --no-html -r 2 true");
    let ran = bench.ok("run --json -r 2 true");
    assert_eq!(ran.json()["runs"][0]["format"], "toll-run");
    assert!(ran.stderr.contains("report:"), "{ran:#?}");
    for arguments in [
        &["list", "--json"][..],
        &["show", "--json"],
        &["compare", "1", "2", "--json"],
        &["doctor", "--json", "--no-noise"],
        &["doctor", "--json", "--restore"],
    ] {
        bench.json(arguments);
    }
}

/// Each shell checks its completions if it is installed.
#[test]
fn shells_accept_their_completions() {
    let bench = Bench::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = bench.ok(&["completions", shell]).stdout;
        assert!(script.contains("toll") && script.len() > 1000, "{shell}");
        bench.write(shell, &script);
        if !has_program(shell) {
            skip(&format!(
                "{shell} is not installed; its completions are not checked"
            ));
            continue;
        }
        let checked = bench.shell(&format!("{shell} -n ./{shell}"));
        let ended = (checked.code, checked.stderr.as_str());
        assert_eq!(ended, (Some(0), ""), "{shell}");
    }
}

#[test]
fn the_manual_page_renders_without_warnings() {
    let bench = Bench::new();
    let page = bench.ok("man").stdout;
    for verb in verbs(&bench) {
        assert!(
            page.contains(&format!(".SH TOLL {}", verb.to_uppercase())),
            "{verb}: {page}"
        );
    }
    if !has_program("man") {
        skip("man is missing; install the package man-db");
        return;
    }
    let rendered = bench.shell("toll man >toll.1; MANWIDTH=80 man --warnings -E UTF-8 -l toll.1");
    assert_eq!(
        (rendered.code, rendered.stderr.as_str()),
        (Some(0), ""),
        "{rendered:#?}"
    );
    assert!(rendered.stdout.contains("EXIT STATUS") || rendered.stdout.contains("Exit status"));
}

#[test]
fn a_dry_run_runs_nothing_and_keeps_nothing() {
    let bench = Bench::new();
    let plan = bench.ok("run --dry-run --seed 7 'touch ran' true").stdout;
    has(&plan, &["seed 7", "touch ran (A/A twin)"]);
    assert!(!bench.path("ran").exists() && !bench.store().exists());
    let again = bench.ok("run --dry-run --seed 7 'touch ran' true").stdout;
    assert_eq!(plan, again, "the plan depends only on the seed");
}

#[test]
fn runs_are_listed_and_shown_by_number_identity_and_last() {
    let bench = Bench::new();
    bench.ok("run -r 2 -q --no-html true");
    let listing = bench.json("list --json");
    let run = &list(&listing["runs"])[0];
    assert_eq!((&run["id"], &run["trials"]), (&1.into(), &4.into()));
    let uid = run["uid"].as_str().unwrap();
    let shown = bench.ok("show 1").stdout;
    assert_eq!(bench.ok("show last").stdout, shown);
    assert_eq!(bench.ok(&["show", &uid[..6]]).stdout, shown);
    let text = bench.ok("list").stdout;
    has(&text, &["complete", "commands"]);
}

#[test]
fn the_store_can_be_named_by_option_and_environment() {
    let bench = Bench::new();
    let elsewhere = bench.path("else where/runs.sqlite");
    let option = elsewhere.to_str().unwrap();
    bench.ok(&[
        "run",
        "-r",
        "1",
        "-q",
        "--no-html",
        "--store",
        option,
        "true",
    ]);
    assert!(elsewhere.exists() && !bench.store().exists());
    let mut command = bench.toll("show --json");
    command.env("TOLL_STORE", &elsewhere);
    let shown = command.output().expect("toll starts");
    assert!(shown.status.success(), "{shown:?}");
}

#[test]
fn the_doctor_examines_without_a_store_and_makes_none() {
    let bench = Bench::new();
    let text = bench.ok("doctor --no-noise").stdout;
    for word in ["CPU", "kernel", "perf counters", "io_uring", "probe"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    assert!(!bench.store().exists());
}

#[test]
fn the_doctor_measures_noise_and_keeps_no_run() {
    let bench = Bench::new();
    let examination = bench.json("doctor --json");
    assert!(
        examination["noise_band"].as_f64().unwrap() > 0.0,
        "{examination:#}"
    );
    let region = &examination["empty_region"];
    assert!(region["duration_ns"].as_f64().unwrap() > 0.0, "{region:#}");
    // Even where page faults can be counted, the empty region causes none.
    let faults = region["counters"].get("page-faults");
    assert!(
        faults.is_none_or(|count| count.as_f64() == Some(0.0)),
        "{region:#}"
    );
    assert!(!bench.store().exists());
    assert_eq!(bench.leftovers(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn counters_that_cannot_be_had_are_named_with_the_reason() {
    let bench = Bench::new();
    bench.ok("run -r 1 -q --no-html --counter page-faults,raw:0xfffffff true");
    let run = bench.document("last");
    let trial = &list(&run["trials"])[0];
    let counted = values(&run, "true", "counter.page-faults");
    let missing = &trial["counters_missing"];
    assert!(
        missing.get("raw:0xfffffff").is_some() || missing.get("page-faults").is_some(),
        "{trial:#}"
    );
    assert_eq!(
        counted.is_empty(),
        missing.get("page-faults").is_some(),
        "{trial:#}"
    );
}

#[test]
fn the_program_is_static() {
    let header = std::fs::read(TOLL).unwrap();
    let has_interpreter = header
        .windows(15)
        .take(4096)
        .any(|w| w.starts_with(b"/lib64/ld-linux"));
    assert!(!has_interpreter, "{TOLL} needs a dynamic linker");
}
