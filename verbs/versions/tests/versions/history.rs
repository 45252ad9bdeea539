//! `toll history`: measurements of commits, kept in their repository.

use serde_json::Value;
use toll_testing::{Bench, has, has_program, lacks, list, skip};

const GIT: &str = "git -c user.name='A Person' -c user.email=a@example.org -c commit.gpgsign=false";

/// A repository `tree` of 10 commits; in each, the file `size` says how much memory the
/// command uses. The store has a run of the last commit.
fn repository(sizes: [u32; 10]) -> Option<Bench> {
    if !has_program("git") {
        skip("git is missing");
        return None;
    }
    let bench = Bench::new();
    let mut script = format!("mkdir tree && cd tree && {GIT} init -q");
    for (place, size) in sizes.iter().enumerate() {
        script += &format!(
            " && echo {size} >size && {GIT} add . \
             && {GIT} commit -q --allow-empty -m 'Commit {place}' && {GIT} tag c{place}"
        );
    }
    shell(&bench, &script);
    bench.measured(&["-r", "2", "--metric", "max_rss_bytes", "true"]);
    Some(bench)
}

fn shell(bench: &Bench, script: &str) -> String {
    let ran = bench.shell(&format!("cd {} && {script}", bench.path("").display()));
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    ran.stdout
}

fn history(bench: &Bench, action: &str, tree: &str, further: &[&str]) -> Vec<String> {
    let tree = bench.path(tree).display().to_string();
    let words = ["history", action, "--tree", &tree];
    let all = words.iter().chain(further);
    all.map(|word| (*word).to_owned()).collect()
}

/// A file with a record for each commit, made from one that toll wrote. Two values alternate
/// up to commit 4; from commit 5 on, both are higher by a tenth.
fn recorded(bench: &Bench) -> String {
    let file = bench.path("history.jsonl").display().to_string();
    bench.ok(history(bench, "record", "tree", &["--file", &file]).as_slice());
    let line: Value = serde_json::from_str(bench.read("history.jsonl").trim()).expect("JSON");
    let mut lines = Vec::new();
    for place in (0..10).rev() {
        let hash = shell(bench, &format!("git -C tree rev-parse c{place}"));
        let mut line = line.clone();
        line["commit"] = hash.trim().into();
        line["run"] = format!("run {place}").into();
        let level = if place < 5 { 100.0 } else { 110.0 };
        line["measured"][0]["values"] = vec![level + f64::from(place % 2)].into();
        lines.push(format!("{line}\n"));
    }
    bench.write("history.jsonl", &lines.concat());
    file
}

fn check(bench: &Bench, file: &str) -> String {
    let command = "dd if=/dev/zero of=/dev/null count=1 bs=$(cat {tree}/size)k status=none";
    bench
        .ok(history(bench, "check", "tree", &["--file", file, command]).as_slice())
        .stdout
}

#[test]
fn records_of_two_clones_are_merged_without_conflict() {
    let Some(bench) = repository([1; 10]) else {
        return;
    };
    shell(&bench, "git clone -q tree one && git clone -q tree two");
    for clone in ["one", "two"] {
        let output = bench.ok(history(&bench, "record", clone, &[]).as_slice());
        has(&output.stdout, &["is recorded at "]);
        let again = bench.ok(history(&bench, "record", clone, &[]).as_slice());
        has(&again.stdout, &["already"]);
        bench.measured(&["-r", "2", "--metric", "max_rss_bytes", "true"]);
    }
    shell(
        &bench,
        &format!(
            "cd one && git fetch -q ../two refs/notes/toll:refs/notes/toll-of-two \
             && {GIT} notes --ref=toll merge -q -s cat_sort_uniq refs/notes/toll-of-two"
        ),
    );
    let shown = bench.ok(history(&bench, "show", "one", &["--json"]).as_slice());
    let document: Value = serde_json::from_str(&shown.stdout).expect("JSON");
    let values = list(&document["series"][0]["values"]);
    assert_eq!(values.len(), 1, "{document}");
    assert_eq!(values[0]["trials"], 4, "both runs of the commit count");
}

#[test]
fn lines_of_two_branches_are_merged_by_union() {
    let Some(bench) = repository([1; 10]) else {
        return;
    };
    let file = bench.path("tree/history.jsonl").display().to_string();
    let record = |revision: &str| {
        let further = ["--file", &file, "--revision", revision];
        bench.ok(history(&bench, "record", "tree", &further).as_slice());
        shell(
            &bench,
            &format!("cd tree && {GIT} add . && {GIT} commit -qm Record"),
        );
    };
    shell(
        &bench,
        "cd tree && echo 'history.jsonl merge=union' >.gitattributes && git checkout -qb side",
    );
    record("c3");
    shell(
        &bench,
        "cd tree && git checkout -q c9 && git checkout -qb other",
    );
    shell(
        &bench,
        "cd tree && echo 'history.jsonl merge=union' >.gitattributes",
    );
    record("c4");
    shell(&bench, &format!("cd tree && {GIT} merge -q -m Merge side"));
    let arguments = history(&bench, "show", "tree", &["--file", &file, "--json"]);
    let document = bench.json(arguments.as_slice());
    assert_eq!(list(&document["series"][0]["values"]).len(), 2);
}

#[test]
fn a_step_is_a_candidate_until_both_sides_were_measured() {
    let sizes = std::array::from_fn(|place| if place < 5 { 20_000 } else { 23_000 });
    let Some(bench) = repository(sizes) else {
        return;
    };
    let file = recorded(&bench);
    let show = || {
        let arguments = history(&bench, "show", "tree", &["--file", &file]);
        bench.ok(arguments.as_slice()).stdout
    };
    has(
        &show(),
        &[
            ": 10 commits, the latest ",
            "candidate, not checked",
            "Commit 5\n",
            "candidates for a change: in 1 of 1 series",
        ],
    );
    has(&check(&bench, &file), &[": confirmed", "side by side: 1.1"]);
    has(&show(), &[": confirmed"]);
    lacks(&show(), &["not checked"]);
    has(&check(&bench, &file), &["nothing to check"]);
}

#[test]
fn a_candidate_of_equal_commits_is_called_noise_and_a_damaged_line_is_named() {
    let Some(bench) = repository([20_000; 10]) else {
        return;
    };
    let file = recorded(&bench);
    has(&check(&bench, &file), &[": noise"]);
    let whole = bench.read("history.jsonl");
    bench.write("history.jsonl", &format!("{whole}{}\n", &whole[..50]));
    let shown = bench.ok(history(&bench, "show", "tree", &["--file", &file]).as_slice());
    has(&shown.stdout, &[": noise"]);
    has(&shown.stderr, &["history.jsonl:12 is left out: "]);
}

#[test]
fn what_cannot_be_recorded_or_shown_is_refused() {
    let Some(bench) = repository([1; 10]) else {
        return;
    };
    let refused = |code, action, tree, further: &[&str]| {
        bench.fails(code, history(&bench, action, tree, further).as_slice())
    };
    has(
        &refused(2, "show", "tree", &[]),
        &["cannot find a record of HEAD"],
    );
    has(
        &refused(2, "record", "tree", &["--revision", "nowhere"]),
        &["cannot find the commit nowhere"],
    );
    shell(&bench, "echo 5 >tree/size");
    has(
        &refused(2, "record", "tree", &[]),
        &["differs from it in 1 file (size)"],
    );
    bench.ok(history(&bench, "record", "tree", &["--revision", "HEAD"]).as_slice());
    shell(&bench, "git clone -q --depth 2 file://$PWD/tree shallow");
    has(
        &refused(2, "show", "shallow", &[]),
        &["the clone is shallow"],
    );
    let mut elsewhere = history(&bench, "show", "tree", &[]);
    elsewhere[3] = "/".into();
    has(
        &bench.fails(5, elsewhere.as_slice()),
        &["as a git repository"],
    );
}

#[test]
fn a_comparison_of_two_commits_is_a_record_of_the_later_one() {
    let Some(bench) = repository([1; 10]) else {
        return;
    };
    let tree = bench.path("tree").display().to_string();
    let command = "cat {tree}/size";
    let words = [
        "ci",
        "-q",
        "--no-html",
        "--tree",
        &tree,
        "--base",
        "c3",
        command,
    ];
    bench.ok(&words);
    bench.ok(history(&bench, "record", "tree", &[]).as_slice());
    let arguments = history(&bench, "show", "tree", &["--json"]);
    let document = bench.json(arguments.as_slice());
    let series = list(&document["series"]);
    assert_eq!(series.len(), 1, "{document}");
    assert_eq!(series[0]["benchmark"], command);
}
