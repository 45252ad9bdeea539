//! Options about commands: the commands run around them, variables, outputs and metrics, and what
//! `toll` reports about runs that cannot decide.

use serde_json::Value;
use toll_testing::{Bench, Ran, has, list};

const QUIET: [&str; 3] = ["run", "-q", "--no-html"];

fn run(bench: &Bench, arguments: &[&str]) -> Ran {
    bench.run(&[&QUIET[..], arguments].concat())
}

fn lines(bench: &Bench, file: &str) -> Vec<String> {
    let mut lines: Vec<String> = bench.read(file).lines().map(str::to_owned).collect();
    lines.sort_by_key(|line| (line.len(), line.clone()));
    lines
}

#[test]
fn what_concludes_runs_after_each_run_and_before_the_next_is_prepared() {
    let bench = Bench::new();
    let options = "-w 1 -r 2 -p 'echo prepare >>log' --conclude 'echo conclude >>log'";
    bench.ok(&format!(
        "run -q --no-html {options} \"sh -c 'echo run >>log'\""
    ));
    let runs = (1 + 2) * 2;
    assert_eq!(
        bench.read("log"),
        "prepare\nrun\nconclude\n".repeat(runs),
        "includes the warm-ups and the twin"
    );
    // It also runs after a failure, and if it fails itself, the trial fails.
    let ran = run(
        &bench,
        &["-r", "1", "-C", "touch concluded; exit 4", "sh -c 'exit 3'"],
    );
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    has(&(ran.stdout + &ran.stderr), &["exit status 3"]);
    assert!(bench.path("concluded").exists());
    let ran = run(&bench, &["-r", "1", "-C", "exit 4", "true"]);
    has(
        &(ran.stdout + &ran.stderr),
        &["cannot conclude by `exit 4`"],
    );
}

#[test]
fn several_of_an_option_are_one_for_each_command() {
    let bench = Bench::new();
    let options = [
        "-r",
        "1",
        "-n",
        "a",
        "-n",
        "b",
        "--prepare",
        "echo pa >>log",
        "--prepare",
        "echo pb >>log",
        "-C",
        "echo ca >>log",
        "-C",
        "echo cb >>log",
        "--output",
        "out-a",
        "--output",
        "out-b",
        "echo 1; echo a >>log",
        "echo 2; echo b >>log",
    ];
    bench.measured(&options);
    assert_eq!(bench.read("out-a"), "1\n");
    assert_eq!(bench.read("out-b"), "2\n");
    let log = bench.read("log");
    assert_eq!(
        log.matches("pa\na\nca\n").count(),
        2,
        "includes its twin: {log}"
    );
    assert_eq!(log.matches("pb\nb\ncb\n").count(), 1, "{log}");
    let errors = bench.fails(2, "run --output a --output b true 'true 2' 'true 3'");
    has(&errors, &["--output 2 times", "each of the 3"]);
}

#[test]
fn variables_reach_commands_and_all_that_is_run_around_them() {
    let bench = Bench::new();
    let echo = "echo \"$GREETING $LEVEL\" >>";
    let [setup, prepare, conclude, cleanup] =
        ["setup", "prepare", "conclude", "cleanup"].map(|file| format!("{echo} {file}"));
    let options = [
        "-r",
        "1",
        "--env",
        "GREETING='a=b $c' LEVEL={n}",
        "-L",
        "n=7,8",
        "-s",
        &setup,
        "-p",
        &prepare,
        "-C",
        &conclude,
        "-c",
        &cleanup,
        "sh -c 'echo \"$GREETING $LEVEL\" >>command'",
    ];
    bench.measured(&options);
    for (file, count) in [("setup", 2), ("prepare", 3), ("command", 3), ("cleanup", 2)] {
        let found = lines(&bench, file);
        assert_eq!(found.len(), count, "{file}: {found:?}");
        for level in ["7", "8"] {
            assert!(
                found.contains(&format!("a=b $c {level}")),
                "{file}: {found:?}"
            );
        }
    }
    // A program is looked up in the PATH that --env sets.
    bench.write("tool", "#!/bin/sh\nexit 0\n");
    toll_testing::make_executable(&bench.path("tool"));
    let path = format!("PATH={}:/usr/bin:/bin", bench.path("").display());
    bench.measured(&["-r", "1", "--env", &path, "tool"]);
    has(&bench.fails(2, "run --env =x true"), &["NAME=VALUE"]);
    has(&bench.fails(2, "run cat --env A=1"), &["--env"]);
    // Several --env options go to the commands in order, and the labels show them.
    let command = "sh -c 'echo $A$B >>each'";
    let line = [
        "-r",
        "1",
        "--env",
        "A=1",
        "--env",
        "",
        "--env",
        "A=2 B='x y'",
    ];
    let named = bench.measured(&[&line[..], &[command, "true", command]].concat());
    assert_eq!(lines(&bench, "each"), ["1", "1", "2x y"]);
    let labels: Vec<&Value> = list(&named["treatments"])
        .iter()
        .map(|one| &one["label"])
        .collect();
    assert_eq!(labels[0], &*format!("A=1 {command}"));
    assert_eq!(labels[1], "true");
    assert_eq!(labels[2], &*format!("A=2 B='x y' {command}"));
    let errors = bench.fails(2, "run --env A=1 --env A=2 true 'true 2' 'true 3'");
    has(&errors, &["--env 2 times"]);
}

#[test]
fn iterations_are_numbered_without_a_gap_as_by_hyperfine() {
    let bench = Bench::new();
    let echo = "sh -c 'echo $HYPERFINE_ITERATION >>numbers'";
    let around = "echo $HYPERFINE_ITERATION >>around";
    bench.measured(&["-w", "1", "-r", "3", "-p", around, "-C", around, echo]);
    // The A/A twin runs the same command.
    let expected = ["0", "1", "2", "3", "4", "5", "warmup-0", "warmup-1"];
    assert_eq!(lines(&bench, "numbers"), expected);
    assert_eq!(lines(&bench, "around").len(), 2 * expected.len());
    // A command without a twin runs once per block.
    bench.measured(&[
        "-r",
        "3",
        "true",
        "sh -c 'echo $HYPERFINE_ITERATION >>second'",
    ]);
    assert_eq!(lines(&bench, "second"), ["0", "1", "2"]);
    // If a trial has several iterations, all of them count.
    bench.write(
        "several.toml",
        "format = 1\nname = 'several'\n[workload]\nkind = 'command'\n\
         command = 'echo $HYPERFINE_ITERATION >>several'\n[run]\niterations = 2\n\
         warmup_iterations = 1\n",
    );
    bench.measured("-r 2 several.toml");
    let mut expected: Vec<String> = (0..8).map(|number| number.to_string()).collect();
    expected.extend((0..4).map(|number| format!("warmup-{number}")));
    assert_eq!(lines(&bench, "several"), expected);
}

#[test]
fn files_have_the_same_keys_and_tell_what_is_mistyped() {
    let bench = Bench::new();
    let text = "format = 1\nname = 'own'\n[workload]\nkind = 'command'\n\
                output = { a = 'out-a', b = 'null' }\nconclude = 'echo {command} >>log'\n\
                environment = { WORD = '{command}' }\n[workload.commands]\na = 'echo $WORD'\n\
                b = 'echo $WORD'\n";
    bench.write("own.toml", text);
    bench.measured("-r 1 own.toml");
    assert_eq!(bench.read("out-a"), "a\n");
    assert_eq!(lines(&bench, "log"), ["a", "a", "b"]);
    for (from, to, message) in [
        ("b = 'null'", "c = 'null'", "there is no such command"),
        ("{ a = 'out-a', b = 'null' }", "7", "each command name"),
        ("WORD", "'W='", "the variable"),
    ] {
        bench.write("own.toml", &text.replacen(from, to, 1));
        has(&bench.fails(2, "run own.toml"), &[message, "own.toml:"]);
    }
}

#[test]
fn a_command_that_never_succeeds_ends_with_status_1_and_the_others_are_shown() {
    let bench = Bench::new();
    for missing in ["nosuchcommand", "./nosuchcommand", "false"] {
        for commands in [[missing, "true"], ["true", missing]] {
            let options = ["-r", "2", "--save-baseline", "main"];
            let ran = run(&bench, &[&options[..], &commands].concat());
            assert_eq!(ran.code, Some(1), "{commands:?}: {ran:#?}");
            has(&ran.stdout, &["true"]);
            has(
                &ran.stderr,
                &[&format!("cannot compare {missing}: no run of it succeeded")],
            );
        }
    }
    has(&bench.ok("baseline list").stdout, &["No baselines"]);
    // An experiment file may name programs that only some machines have.
    bench.write(
        "own.toml",
        "format = 1\nname = 'own'\n[workload]\nkind = 'command'\n[workload.commands]\n\
         here = 'true'\nthere = '/no/such/program'\n",
    );
    bench.ok("run -q --no-html -r 2 own.toml");
}

#[test]
fn commands_are_compared_in_all_metrics_that_are_named() {
    let bench = Bench::new();
    let [less, more] =
        ["64k", "1M"].map(|size| format!("dd if=/dev/zero of=/dev/null count=1 bs={size}"));
    let metrics = [
        "-r",
        "10",
        "--metric",
        "minor_faults,max_rss_bytes",
        "--metric",
        "duration_ns",
    ];
    let run_of = bench.measured(&[&metrics[..], &[&*less, &*more]].concat());
    let analysis = &run_of["analysis"];
    assert_eq!(analysis["primary_metric"], "minor_faults");
    let found: Vec<&Value> = list(&analysis["comparisons"]).iter().collect();
    let judged = found.iter().filter(|one| one["is_judged"] == true);
    let names: Vec<&str> = judged.filter_map(|one| one["metric"].as_str()).collect();
    assert_eq!(names, ["minor_faults", "max_rss_bytes", "duration_ns"]);
    assert_eq!(found[0]["relation"], "worse", "{found:#?}");
    // All intervals hold simultaneously.
    assert!(found[0]["ratio"]["confidence"].as_f64().unwrap() > 0.983);
    assert_eq!(list(&analysis["twins"]).len(), 3);
    let shown = bench.ok("show last --metric minor_faults --metric system_ns --json");
    let shown = shown.json();
    assert_eq!(shown["analysis"]["primary_metric"], "minor_faults");
    assert_eq!(
        list(&shown["analysis"]["twins"])[0]["metric"],
        "minor_faults"
    );
    let errors = bench.fails(2, "show last --metric minor_fault");
    has(
        &errors,
        &["minor_fault ", "recorded metrics are", "minor_faults"],
    );
    // A regression in any of these metrics counts.
    let gate = ["--fail-on", "regression=5%"];
    let ran = run(
        &bench,
        &[
            &["-r", "10", "--metric", "exit_status,minor_faults"],
            &gate[..],
            &[&*less, &*more],
        ]
        .concat(),
    );
    assert_eq!(ran.code, Some(3), "{ran:#?}");
    has(&ran.stderr, &["minor_faults"]);
}

#[test]
fn a_comparison_of_time_shows_what_else_the_commands_used_and_gates_on_none_of_it() {
    let bench = Bench::new();
    let [less, more] =
        ["64k", "64M"].map(|size| format!("dd if=/dev/zero of=/dev/null count=1 bs={size}"));
    let file = bench.path("out.json").display().to_string();
    let options = "-r 10 --fail-on regression=5%";
    let mut line: Vec<&str> = options.split(' ').collect();
    line.extend(["--export-json", &file, &more, &less]);
    let ran = run(&bench, &line);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let document: Value = serde_json::from_str(&bench.read("out.json")).unwrap();
    let found = list(&document["analysis"]["comparisons"]);
    let (main, memory) = (&found[0], &found[found.len() - 1]);
    assert_eq!(main["metric"], "duration_ns", "{found:#?}");
    assert_eq!(memory["metric"], "max_rss_bytes", "{found:#?}");
    assert_eq!(memory["relation"], "better", "{found:#?}");
    // Processor time is 0 in some blocks, so it has no ratio there.
    let judged: Vec<&Value> = found.iter().map(|one| &one["is_judged"]).collect();
    assert!(judged[0] == true && judged[1..].iter().all(|one| **one == false));
    has(&ran.stderr, &["1 ratio judged"]);
    has(&ran.stdout, &["64M"]);
}

#[test]
fn too_few_blocks_are_told_before_the_run_and_in_its_result() {
    let bench = Bench::new();
    let few = "5 blocks cannot decide; at least 6 can";
    let line = "run --no-html -r 5 'sleep 0.001' 'sleep 0.01'";
    let ran = bench.ok(line);
    has(&ran.stderr, &[few]);
    has(&ran.stdout, &["undecided", few]);
    has(&bench.ok(&format!("{line} --dry-run")).stderr, &[few]);
    let ran = bench.ok(&*line.replace("-r 5", "-r 8"));
    assert!(!ran.stderr.contains("cannot decide"), "{ran:#?}");
    // More comparisons need more blocks, because they hold simultaneously.
    let ran = bench.ok("run --no-html -r 6 true 'true 2' 'true 3'");
    has(&ran.stderr, &["6 blocks cannot decide; at least 7 can"]);
    // A single command is not compared.
    let ran = bench.ok("run --no-html -r 2 true");
    assert!(!ran.stderr.contains("cannot decide"), "{ran:#?}");
}
