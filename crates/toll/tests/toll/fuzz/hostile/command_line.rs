//! The command line: values of options, words, and names of files and directories.

use toll_testing::isolated;
use toll_testing::{Bench, Ran, all_are, list};

use super::checks::check_plain;
use super::text::{file_name, make, word};
use super::{check_ran, feed, ok, place, ran};

/// Other arguments of each verb, with which it reads the option under test.
const WORDS: [(&str, &str); 32] = [
    ("run", "-q --no-html -r 1 true"),
    ("list", ""),
    ("show", "last"),
    ("why", "last --stored"),
    ("report", "last --html page.html"),
    ("export", "last --json run.json"),
    ("import", "run.json"),
    ("grade", "run.json"),
    ("compare", "1 1"),
    (
        "ci",
        "-q --no-html --tree repo --base HEAD~1 -r 1 '{tree}/prog'",
    ),
    ("bisect", "--tree repo HEAD..HEAD '{tree}/prog'"),
    ("history record", "--tree repo --file points.json last"),
    ("history show", "--tree repo --file points.json"),
    (
        "history check",
        "--tree repo --file points.json '{tree}/prog'",
    ),
    ("fleet submit", "--script --dry-run cat"),
    ("fleet retry", "nothing"),
    ("fleet fetch", "nothing"),
    ("fleet work", "nothing"),
    ("fleet report", "nothing"),
    ("baseline list", ""),
    ("baseline save", "name last"),
    ("baseline remove", "name"),
    ("prices", "--row nothing"),
    ("trace", "true"),
    ("count", "true"),
    ("observe devices", "true"),
    ("observe session", "session"),
    ("observe dhcp", "nothing"),
    ("guest run", "true"),
    ("mount", "nothing at"),
    ("doctor", "--no-noise"),
    ("kernel add", "one --config one.config"),
];

/// Verbs that are not tested: they take minutes, need a terminal, or read other inputs.
const LEFT_OUT: [&str; 6] = [
    "",
    "selftest",
    "guest shell",
    "kernel ab",
    "kernel build",
    "kernel show",
];

/// Options whose values are commands or options of other programs, which are meant to be obeyed.
const COMMANDS: [&str; 8] = [
    "reference",
    "prepare",
    "conclude",
    "setup",
    "cleanup",
    "shell",
    "build",
    "ssh-option",
];

/// Options whose values may name a file to be written.
const FILES: [&str; 2] = ["input", "output"];

/// An option that takes a value.
#[derive(Debug)]
struct Valued {
    verb: &'static str,
    name: String,
    is_path: bool,
}

/// Returns all options that take a value, from the completions for fish.
fn options(bench: &Bench) -> Vec<Valued> {
    let completions = bench.ok("completions fish").stdout;
    let mut found = Vec::new();
    for line in completions.lines().filter(|line| line.contains(" -r")) {
        let condition = line.split('"').nth(1).expect("the line has a condition");
        let mut verb = condition
            .split("using_subcommand ")
            .nth(1)
            .unwrap_or_default();
        let mut of_two = String::new();
        if let Some((first, rest)) = verb.split_once(';') {
            // Options before the second word are also valid after it.
            let Some(second) = rest.strip_prefix(" and __fish_seen_subcommand_from ") else {
                continue;
            };
            of_two = format!("{first} {second}");
            verb = &of_two;
        }
        let known = WORDS.iter().find(|(known, _)| *known == verb);
        assert!(
            known.is_some() || LEFT_OUT.contains(&verb),
            "add {verb:?} to WORDS"
        );
        let names = line
            .split(" -l ")
            .skip(1)
            .filter_map(|rest| rest.split(' ').next());
        for name in names {
            let Some((verb, _)) = known else { continue };
            if !COMMANDS.contains(&name) {
                found.push(Valued {
                    verb,
                    name: name.to_owned(),
                    is_path: line.contains(" -r -F") || FILES.contains(&name),
                });
            }
        }
        drop(of_two);
    }
    assert!(found.len() > 150, "{found:?}");
    found
}

/// Prepares a bench with a run, a repository, a session and a configuration fragment.
fn prepared() -> Bench {
    let bench = place();
    repository(&bench);
    bench.write("one.config", "CONFIG_SMP=y\n");
    bench.write("session", "x\r\n");
    bench.ok("run -q --no-html -r 2 true");
    bench.ok("export last --json run.json");
    bench
}

/// Makes a repository with two commits of a program.
pub fn repository(bench: &Bench) {
    let ran = bench.shell(
        "git init -q repo && cd repo && git config user.email a@b && git config user.name n && \
         for i in 1 2; do printf '#!/bin/sh\\n: %s\\n' $i >prog; chmod +x prog; git add .; \
         git commit -qm $i; done",
    );
    assert_eq!(ran.code, Some(0), "{ran:#?}");
}

#[test]
fn values_of_all_options_stay_texts() {
    isolated(|| {
        let bench = prepared();
        let options = options(&bench);
        // Each case tests several options, so that the cases of a test cover all of them.
        const A_CASE: usize = 8;
        let cases = options.len().div_ceil(A_CASE) as u64;
        feed("option", cases, &bench, |first, case| {
            let mut text = first.to_owned();
            for number in 0..A_CASE {
                let place = case.number as usize * A_CASE + number;
                let option = &options[place % options.len()];
                let (verb, words) = WORDS.iter().find(|(verb, _)| *verb == option.verb).unwrap();
                let value = if option.is_path {
                    format!("./{}", file_name(&text))
                } else {
                    word(&text)
                };
                let mut line: Vec<String> = verb.split(' ').map(str::to_owned).collect();
                line.push(format!("--{}={value}", option.name));
                line.extend(shlex::split(words).unwrap());
                ran(&bench, &line);
                text = make(&mut case.rng);
            }
        });
    });
}

/// Verbs that take a name.
const NAMING: [&[&str]; 19] = [
    &["show"],
    &["why"],
    &["report"],
    &["export"],
    &["compare"],
    &["run", "--resume"],
    &["baseline", "save"],
    &["baseline", "remove"],
    &["history", "record"],
    &["bisect"],
    &["guest", "run"],
    &["kernel", "add", "--tree", "nothing"],
    &["kernel", "show"],
    &["kernel", "build"],
    &["kernel", "remove"],
    &["observe", "interface"],
    &["completions"],
    &["fleet", "submit", "--script", "--dry-run"],
    &["no-verb"],
];

/// Verbs that take a file or directory.
const READING: [&[&str]; 13] = [
    &["run"],
    &["import"],
    &["grade"],
    &["list", "--store"],
    &["doctor", "--salvage"],
    &["observe", "session"],
    &["observe", "dhcp"],
    &["fleet", "status"],
    &["fleet", "fetch"],
    &["fleet", "retry"],
    &["fleet", "report"],
    &["fleet", "work", "--node", "n"],
    &["mount", "--read-only"],
];

#[test]
fn words_and_names_of_files_stay_texts() {
    isolated(|| {
        let bench = prepared();
        feed("word", 6, &bench, |text, _| {
            for verb in NAMING {
                // Without `--`, a word that begins with a dash is an option.
                ran(&bench, &[verb, &["--", &word(text)]].concat());
                ran(&bench, &[verb, &[&word(text)]].concat());
            }
            ran(
                &bench,
                &[
                    "run",
                    "--dry-run",
                    "-r",
                    "1",
                    "--",
                    &format!("true # {}", word(text)),
                ],
            );
            let file = format!("./{}.toml", file_name(text));
            bench.write(&file, "format = 1\nname = 'x'\nno = 1\n");
            for verb in READING {
                ran(&bench, &[verb, &[&file]].concat());
            }
        });
    });
}

#[test]
fn names_of_directories_are_one_word_in_commands() {
    isolated(|| {
        let bench = place();
        repository(&bench);
        feed("directory", 10, &bench, |text, _| {
            let work = format!("./w{}", file_name(text));
            let command =
                "test -e {workdir}/a{n} && test -e \"{workdir}/a{n}\" && test -d '{workdir}'";
            let words = [
                "run",
                "-q",
                "--no-html",
                "-r",
                "3",
                "-L",
                "n=1,2",
                "--work-dir",
                &work,
            ];
            let around = [
                "-s",
                "echo {n} >{workdir}/a{n}",
                "-p",
                "test -e '{workdir}/a{n}'",
                "-c",
                "rm \"{workdir}/a{n}\"",
            ];
            ok(&bench, &[&words[..], &around, &[command]].concat());
            all_are("completed", &bench.trials());
            let trees = format!("./t{}", file_name(text));
            let words = [
                "ci",
                "-q",
                "--no-html",
                "--tree",
                "repo",
                "--base",
                "HEAD~1",
                "-r",
                "3",
            ];
            let more = [
                "--fail-on",
                "regression=1000%",
                "--keep-trees",
                &trees,
                "{tree}/prog",
            ];
            let quoted = "test -x \"{tree}/prog\" && '{tree}/prog'";
            let printed = ran(&bench, &[&words[..], &more, &[quoted]].concat());
            // A brace begins a placeholder.
            if printed.code == Some(2) && text.contains('{') {
                return;
            }
            assert!([Some(0), Some(4)].contains(&printed.code), "{printed:#?}");
            all_are("completed", &bench.trials());
        });
    });
}

#[test]
fn variables_of_the_environment_stay_texts() {
    const NAMES: [&str; 14] = [
        "TOLL_STORE",
        "TOLL_WORK_DIR",
        "TOLL_PROBE",
        "TOLL_RUN_LOCK",
        "XDG_STATE_HOME",
        "XDG_CACHE_HOME",
        "XDG_DATA_HOME",
        "HOME",
        "USER",
        "TERM",
        "COLUMNS",
        "LC_ALL",
        "LD_LIBRARY_PATH",
        "MALLOC_PERTURB_",
    ];
    isolated(|| {
        let bench = place();
        feed("variable", NAMES.len() as u64, &bench, |text, case| {
            let name = NAMES[case.number as usize % NAMES.len()];
            let path = bench.path(&file_name(text)).display().to_string();
            for value in [file_name(text), path] {
                for words in [
                    "run -q --no-html -r 1 true",
                    "list",
                    "doctor --no-noise --json",
                ] {
                    let output = bench.toll(words).env(name, &value).output().unwrap();
                    let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                    check_ran(&Ran {
                        code: output.status.code(),
                        stdout: shown(&output.stdout),
                        stderr: shown(&output.stderr),
                    });
                }
            }
        });
    });
}

#[test]
fn completions_and_the_manual_page_have_nothing_of_others() {
    let bench = Bench::new();
    for arguments in [
        "completions bash",
        "completions zsh",
        "completions fish",
        "man",
    ] {
        let first = bench.ok(arguments).stdout;
        check_plain(&first.replace('\t', " "), "static");
        let mut command = bench.toll(arguments);
        command
            .env("TOLL_STORE", "\u{1b}[31m")
            .env("USER", "$(touch OBEYED)");
        let again = command.output().unwrap();
        assert_eq!(String::from_utf8(again.stdout).unwrap(), first);
    }
    assert_eq!(list(&bench.json("list --json")["runs"]).len(), 0);
}
