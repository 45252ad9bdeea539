//! `toll ci` compares a commit with its base.

use toll_testing::{Bench, has, has_program, lacks, python_with_packages, skip, source_tree};

pub const GIT: &str = "git -c user.name=A -c user.email=a@example.org -c commit.gpgsign=false \
                   -c protocol.file.allow=always";

/// A repository whose branch `change` has one commit more than `main`. Files say how much memory
/// the commands use. Memory hardly varies, no matter how busy the machine is.
pub fn repository(base: &str, head: &str) -> Option<Bench> {
    if !has_program("git") {
        skip("git is missing");
        return None;
    }
    let bench = Bench::new();
    let script = format!(
        "mkdir tree && cd tree && {GIT} init -q -b main && echo built >.gitignore \
         && {base} && {GIT} add . && {GIT} commit -q -m Before && {GIT} checkout -q -b change \
         && {head} && {GIT} add . && {GIT} commit -q --allow-empty -m After"
    );
    shell(&bench, &script);
    Some(bench)
}

pub fn shell(bench: &Bench, script: &str) -> String {
    let ran = bench.shell(&format!("cd {} && {script}", bench.path("").display()));
    assert_eq!(ran.code, Some(0), "{script}: {ran:#?}");
    ran.stdout
}

pub fn sized(kilobytes: u32) -> String {
    format!("echo {kilobytes} >a && echo 30000 >b && echo 'cat a >built' >make.sh")
}

pub fn takes(file: &str) -> String {
    format!("dd if=/dev/zero of=/dev/null count=1 bs=$(cat {{tree}}/{file})k status=none")
}

pub fn ci(bench: &Bench, further: &[&str]) -> Vec<String> {
    let tree = bench.path("tree").display().to_string();
    let words = [
        "ci",
        "-q",
        "--no-html",
        "--metric",
        "max_rss_bytes",
        "--tree",
        &tree,
    ];
    let words = words.iter().chain(further);
    words.map(|word| (*word).to_owned()).collect()
}

/// Checks that the repository is unchanged and that nothing is left in the cache.
pub fn nothing_is_left(bench: &Bench) {
    let output = shell(
        bench,
        "cd tree && git status --short && git worktree list && git branch --list && ls -A \
         ../cache/toll/versions",
    );
    lacks(&output, &["ci-", "base", " M "]);
    has(&output, &["[change]", "* change\n"]);
    assert_eq!(output.lines().count(), 3, "{output}");
}

#[test]
fn a_regression_fails_and_is_told_in_every_format() {
    let Some(bench) = repository(&sized(20_000), &sized(24_000)) else {
        return;
    };
    let (one, other) = (takes("built"), takes("b"));
    let files = [
        "markdown",
        "junit",
        "github-action-benchmark",
        "bencher",
        "json",
    ];
    let options = files.map(|format| format!("--export-{format}={format}"));
    let mut words = vec!["--build", "sh make.sh", &one, &other];
    words.extend(options.iter().map(String::as_str));
    let ran = bench.run(ci(&bench, &words).as_slice());
    assert_eq!(ran.code, Some(3), "{ran:#?}");
    let screen = ran.stdout.replace('\n', " ");
    has(
        &screen,
        &[
            "over 2 rows.",
            "past the limit of 3 %: 1 of 2; below it: 1 of 2",
            "A/A twin",
        ],
    );
    has(
        &ran.stderr,
        &["regression: ", "1 ratio lies wholly past 3 %"],
    );
    has(
        &bench.read("markdown"),
        &["against", "{tree}/built", "A/A twin"],
    );
    let junit = bench.read("junit");
    has(
        &junit,
        &["tests=\"2\" failures=\"1\"", "type=\"regression\""],
    );
    let action: serde_json::Value =
        serde_json::from_str(&bench.read("github-action-benchmark")).unwrap();
    let entries = action.as_array().unwrap();
    assert_eq!(entries.len(), 2, "only of head: {action}");
    assert!(
        entries.iter().all(|one| one["value"].as_f64() > Some(2e7)),
        "{action}"
    );
    let names: Vec<&str> = entries
        .iter()
        .filter_map(|one| one["name"].as_str())
        .collect();
    assert_eq!(
        names,
        [one.as_str(), other.as_str()],
        "they do not depend on the commit"
    );
    let bencher: serde_json::Value = serde_json::from_str(&bench.read("bencher")).unwrap();
    let measures = bencher.as_object().unwrap().values();
    assert!(measures.clone().count() == 2);
    for measure in measures {
        let value = |name: &str| measure["max_rss_bytes"][name].as_f64().unwrap();
        assert!(value("lower_value") <= value("value"), "{bencher}");
        assert!(value("value") <= value("upper_value"), "{bencher}");
    }
    nothing_is_left(&bench);
}

/// A command that computes, then sleeps for the seconds that another command prints.
fn computes_and_waits(seconds: &str) -> String {
    format!(
        "cd {{tree}}; dd if=/dev/zero of=/dev/null count=100 bs=1M status=none; sleep $({seconds})"
    )
}

/// Compares by one metric, and exports Markdown. Returns the text on the terminal and in the
/// file.
fn compared_by(bench: &Bench, metric: &str, command: &str) -> [String; 2] {
    let tree = bench.path("tree").display().to_string();
    let ran = bench.ok(&[
        "ci",
        "-q",
        "--no-html",
        "--runs=14",
        "--fail-on=regression=50%",
        "--export-markdown=markdown",
        &format!("--metric={metric}"),
        &format!("--tree={tree}"),
        command,
    ]);
    [ran.stdout, bench.read("markdown")].map(|text| text.replace(['\n', '\u{a0}'], " "))
}

#[test]
fn where_time_on_the_wall_decides_nothing_cpu_time_is_said_to() {
    let Some(bench) = repository("echo 0.1 0.1 >naps", "echo 0.03 0.6 >naps") else {
        return;
    };
    // The change waits alternately less and more than the limit, so that the blocks disagree.
    let turn = bench.path("turn").display().to_string();
    shell(&bench, &format!("echo 1 >{turn}"));
    let seconds = format!(
        "read less more <{{tree}}/naps; read turn <{turn}; \
         if test $turn = 1; then echo $less; else echo $more; fi; \
         test $less = $more || echo $((3 - turn)) >{turn}"
    );
    for output in compared_by(&bench, "duration_ns", &computes_and_waits(&seconds)) {
        has(
            &output,
            &[
                "CPU time would decide 1 of 1 undecided: 0 past the limit, 1 below it",
                "(--metric",
            ],
        );
    }
}

#[test]
fn where_cpu_time_gates_longer_waiting_is_said() {
    let Some(bench) = repository("echo 0.2 >nap", "echo 1.2 >nap") else {
        return;
    };
    let seconds = "cat {tree}/nap";
    for output in compared_by(&bench, "cpu_ns", &computes_and_waits(seconds)) {
        has(
            &output,
            &["waiting, which CPU time leaves out, got longer: time of "],
        );
    }
}

#[test]
fn a_change_without_effect_passes_and_an_improvement_too() {
    for head in [20_000, 15_000] {
        let Some(bench) = repository(&sized(20_000), &sized(head)) else {
            return;
        };
        let ran = bench.ok(ci(&bench, &["--build", "sh make.sh", &takes("built")]).as_slice());
        has(
            &ran.stderr,
            &["1 ratio judged, none wholly past 3 %; 0 undecided"],
        );
        has(
            &ran.stdout,
            &["past the limit of 3 %: 0 of 1; below it: 1 of 1"],
        );
        nothing_is_left(&bench);
    }
}

#[test]
fn an_experiment_file_is_compared_under_both_commits_and_trees_may_stay() {
    let Some(bench) = repository(&sized(20_000), &sized(20_000)) else {
        return;
    };
    bench.write(
        "benches.toml",
        "format = 1\nname = 'benches'\ntitle = 'Benches'\nquestion = 'How much?'\nmetric = \
         'max_rss_bytes'\n[[factor]]\nname = 'tree'\nlevels = ['.']\n[[factor]]\nname = 'file'\n\
         levels = ['a', 'b']\n[workload]\nkind = 'command'\ncommand = 'dd if=/dev/zero of=/dev/null count=1 bs=$(cat {tree}/{file})k status=none'\n",
    );
    let counting = "echo once >>built";
    let words = ["--build", counting, "--keep-trees", "trees", "benches.toml"];
    for _ in 0..2 {
        let ran = bench.ok(ci(&bench, &words).as_slice());
        has(&ran.stderr, &["2 ratios judged, none wholly past 3 %"]);
    }
    for side in ["base", "head"] {
        let built = bench.read(&format!("trees/0/{side}/built"));
        assert_eq!(built.lines().count(), 2, "built files stay: {built}");
    }
    // `toll run` accepts the same file and measures the current directory.
    let ran = bench.shell(&format!(
        "cd tree && {} run -q --no-html -r 1 ../benches.toml",
        toll_testing::TOLL
    ));
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    // A file without {tree}.
    bench.write(
        "other.toml",
        "format = 1\nname = 'other'\ntitle = 'Other'\nquestion = '?'\nmetric = 'duration_ns'\n\
         [workload]\nkind = 'command'\ncommand = 'true'\n",
    );
    let output = bench.fails(2, ci(&bench, &["other.toml"]).as_slice());
    has(&output, &["no command has {tree} in it"]);
    let output = bench.fails(2, ci(&bench, &["other.toml", "cat {tree}/a"]).as_slice());
    has(&output, &["several files at once"]);
}

#[test]
fn submodules_are_laid_out_from_those_of_the_repository() {
    let base = format!(
        "{GIT} init -q -b main ../part && echo 20000 >../part/c && {GIT} -C ../part add . \
         && {GIT} -C ../part commit -q -m Part && {GIT} submodule --quiet add ../part part && {}",
        sized(1)
    );
    let head = format!(
        "echo 24000 >part/c && {GIT} -C part commit -q -a -m Worse && {GIT} -C part branch kept"
    );
    let Some(bench) = repository(&base, &head) else {
        return;
    };
    let command = takes("part/c");
    let without = bench.run(ci(&bench, &["cat {tree}/part/c"]).as_slice());
    assert_eq!(without.code, Some(1), "{without:#?}");
    let ran = bench.run(ci(&bench, &["--submodules", &command]).as_slice());
    assert_eq!(ran.code, Some(3), "{ran:#?}");
    nothing_is_left(&bench);
}

#[test]
fn a_hook_of_git_leaves_its_repository_alone() {
    let Some(bench) = repository(&sized(20_000), &sized(20_000)) else {
        return;
    };
    let hook = format!(
        "#!/bin/sh\nexec {} ci -q --no-html -r 1 --build 'git rev-parse --show-toplevel' \
         'cat {{tree}}/a'\n",
        toll_testing::TOLL
    );
    bench.write("tree/.git/hooks/pre-push", &hook);
    shell(
        &bench,
        &format!(
            "chmod +x tree/.git/hooks/pre-push && {GIT} init -q --bare remote.git && cd tree && \
             GIT_DIR=$PWD/.git GIT_WORK_TREE=$PWD {GIT} push -q ../remote.git change"
        ),
    );
    nothing_is_left(&bench);
}

#[test]
fn what_cannot_be_compared_is_told_and_leaves_nothing() {
    let Some(bench) = repository(&sized(20_000), "echo 'cat nothing >built' >make.sh") else {
        return;
    };
    let command = takes("a");
    let output = |code: i32, words: &[&str]| bench.fails(code, ci(&bench, words).as_slice());
    has(&output(2, &[]), &["name a command"]);
    has(&output(2, &["cat a"]), &["no command has {tree} in it"]);
    has(
        &output(2, &["cat a", &command]),
        &["cat a has no {tree} in it"],
    );
    has(
        &output(2, &["write"]),
        &["the experiment has no such factor"],
    );
    has(
        &output(2, &["--base", "nowhere", &command]),
        &["cannot find the commit nowhere"],
    );
    has(
        &output(2, &["--base", "change", &command]),
        &["with itself"],
    );
    has(
        &output(2, &["--head", "main", &command]),
        &["it is on main", "~1"],
    );
    has(
        &output(2, &["--guest", &command]),
        &["unexpected argument '--guest'"],
    );
    let built = output(1, &["--build", "echo first; echo why; exit 7", &command]);
    has(
        &built,
        &[
            "  first\n  why\n",
            "cannot build base (",
            "Before)",
            "exit status: 7",
        ],
    );
    let is_head = "grep -q 'cat a' make.sh || { echo broken; false; }";
    has(
        &output(1, &["--build", is_head, &command]),
        &["cannot build head (", "broken"],
    );
    shell(&bench, "echo 1 >tree/a");
    has(
        &output(2, &[&command]),
        &["differs from it in 1 file (a)", "--head HEAD"],
    );
    shell(&bench, "cd tree && git checkout -q a");
    nothing_is_left(&bench);
    let mut elsewhere = ci(&bench, &[&command]);
    elsewhere[6] = "/".into();
    has(
        &bench.fails(5, elsewhere.as_slice()),
        &["as a git repository"],
    );
}

#[test]
fn what_no_run_could_do_is_refused_before_the_builds() {
    let Some(bench) = repository(&sized(20_000), &sized(20_000)) else {
        return;
    };
    let built = bench.path("built");
    let build = format!("touch {}", built.display());
    for (option, why) in [
        ("--runs=0", "--runs and --min-runs must be at least 1"),
        ("--fail-on=refuted", "there are no claims"),
        ("--why", "it compares max_rss_bytes first"),
        ("--export-csv=missing/x", "its directory does not exist"),
    ] {
        let ran = bench.run(ci(&bench, &["--build", &build, option, &takes("a")]).as_slice());
        assert!(ran.code != Some(0) && !built.exists(), "{option}: {ran:#?}");
        has(&ran.stderr, &[why]);
    }
}

#[test]
fn a_shallow_clone_says_how_to_get_the_rest() {
    let Some(bench) = repository(&sized(20_000), &sized(20_000)) else {
        return;
    };
    shell(
        &bench,
        "git -C tree checkout -q main && git clone -q --depth 1 --no-single-branch \
         file://$PWD/tree shallow && git -C shallow checkout -q change && rm -r tree && mv shallow tree",
    );
    let output = bench.fails(2, ci(&bench, &[&takes("a")]).as_slice());
    has(&output, &["the clone is shallow", "git fetch --unshallow"]);
    let output = bench.fails(2, ci(&bench, &["--base", "HEAD~1", &takes("a")]).as_slice());
    has(&output, &["the clone is shallow"]);
}

#[test]
fn the_action_is_valid() {
    if !has_program("python3") {
        return skip("the linters need python3");
    }
    let python = python_with_packages();
    let programs = python.strip_suffix("python").unwrap();
    let action = source_tree().join("action.yml");
    let bench = Bench::new();
    for linter in [
        "check-jsonschema --builtin-schema vendor.github-actions",
        "zizmor --offline --no-progress",
    ] {
        let ran = bench.shell(&format!("{programs}{linter} {}", action.display()));
        assert_eq!(ran.code, Some(0), "{linter}: {ran:#?}");
    }
}

#[test]
fn the_action_compares_a_pull_request_with_the_branch_that_it_is_for() {
    let Some(bench) = repository(&sized(20_000), &sized(24_000)) else {
        return;
    };
    // As in a workflow: a clone whose HEAD is the merge, on no branch.
    let merge = format!(
        "{GIT} clone -q tree clone && cd clone && {GIT} checkout -q --detach origin/main \
         && {GIT} merge -q --no-ff -m Merge origin/change"
    );
    shell(&bench, &merge);
    let toll = std::path::Path::new(toll_testing::TOLL).parent().unwrap();
    let script = source_tree().join("packaging/action/compare");
    let compare_with = |base: &str, command: &str, options: &str| {
        bench.shell(&format!(
            "cd clone && rm -f ../output && PATH={}:$PATH RUNNER_TEMP=$PWD/.. GITHUB_BASE_REF={base} \
             GITHUB_OUTPUT=$PWD/../output GITHUB_STEP_SUMMARY=$PWD/../step TOLL_CI_COMMANDS='\n{command}\n' \
             TOLL_CI_BUILD='sh make.sh' TOLL_CI_BASE= TOLL_CI_FAIL_ON=regression=5% \
             TOLL_CI_OPTIONS='{options}' {}",
            toll.display(),
            script.display()
        ))
    };
    let compare =
        |base: &str, command: &str| compare_with(base, command, "-q --metric \"max_rss_bytes\"");
    let ran = compare("main", &takes("built"));
    assert_eq!(ran.code, Some(3), "{ran:#?}");
    has(&bench.read("output"), &["regressed=true\n", "summary="]);
    has(&bench.read("step"), &["peak memory of base (", "A/A twin"]);
    let ran = compare("main", &takes("b"));
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    has(&bench.read("output"), &["regressed=false\n"]);
    let ran = compare("nowhere", &takes("b"));
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    has(
        &ran.stderr,
        &[
            "cannot find where the change left nowhere",
            "fetch-depth: 0",
        ],
    );
    // Inputs are plain words; no shell interprets them.
    for options in [
        "$(touch ../carried-out)",
        "`touch ../carried-out`",
        "; touch ../carried-out",
    ] {
        let ran = compare_with("main", &takes("b"), options);
        assert_eq!(ran.code, Some(2), "{options}: {ran:#?}");
        assert!(!bench.path("carried-out").exists(), "{options}");
    }
    let ran = compare_with("main", &takes("b"), "-q \"");
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    has(&ran.stderr, &["a quote is not closed"]);
    let ran = compare("main", "--build=touch ../carried-out");
    assert!(
        ran.code != Some(0) && !bench.path("carried-out").exists(),
        "{ran:#?}"
    );
}
