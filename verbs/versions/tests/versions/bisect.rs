//! `toll bisect` finds the commit that made a command need more memory.

use toll_testing::{Bench, has, has_program, lacks, skip};

/// A repository with a commit for each of `costs`, the kilobytes that the command allocates.
/// The fourth commit does not build.
fn history(costs: &[u32]) -> Option<Bench> {
    if !has_program("git") {
        skip("git is missing");
        return None;
    }
    let bench = Bench::new();
    let git = "git -c user.name='A Person' -c user.email=a@example.org -c commit.gpgsign=false";
    let mut script = format!("mkdir tree && cd tree && {git} init -q");
    for (place, kilobytes) in costs.iter().enumerate() {
        let build = if place == 3 {
            "echo no such header; false"
        } else {
            "cp size built"
        };
        script += &format!(
            " && echo {kilobytes} >size && echo '{build}' >make.sh && {git} add . \
             && {git} commit -q --allow-empty -m 'Commit {place}' && {git} tag c{place}"
        );
    }
    let ran = bench.shell(&format!("cd {} && {script}", bench.path("").display()));
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    Some(bench)
}

/// Arguments of a search by peak memory. That hardly varies, so the result does not depend on
/// how busy the machine is.
fn bisect(bench: &Bench, range: &str) -> Vec<String> {
    let tree = bench.path("tree").display().to_string();
    let command = "dd if=/dev/zero of=/dev/null count=1 bs=$(cat {tree}/built)k status=none";
    [
        "bisect",
        "--tree",
        &tree,
        "--build",
        "sh make.sh",
        "--metric",
        "max_rss_bytes",
        range,
        command,
    ]
    .map(str::to_owned)
    .into()
}

const STEP: [u32; 9] = [
    20_000, 20_000, 20_000, 20_000, 20_000, 23_000, 23_000, 23_000, 23_000,
];

#[test]
fn the_commit_with_the_step_is_found_and_confirmed_and_the_answer_is_kept() {
    let Some(bench) = history(&STEP) else { return };
    let arguments = bisect(&bench, "c0..c8");
    let found = bench.ok(arguments.as_slice());
    has(
        &found.stdout,
        &[
            "is worse than",
            "confirmation: ",
            "Commit 5\n",
            "A Person <a@example.org>, ",
            "its effect: 1.1",
            "worse than the commit before it",
        ],
    );
    let runs = bench.ok("list").stdout;
    let again = bench.ok(arguments.as_slice());
    assert_eq!(again.stdout, found.stdout);
    assert_eq!(bench.ok("list").stdout, runs, "nothing is measured twice");
}

#[test]
fn a_commit_that_does_not_build_is_left_out_and_is_a_suspect_with_its_next() {
    let mut costs = STEP;
    costs[4] = 23_000;
    let Some(bench) = history(&costs) else { return };
    let found = bench.ok(bisect(&bench, "c0..c8").as_slice());
    has(
        &found.stdout,
        &[
            "is left out: it does not build: exit status: 1: no such header",
            "one of 2 commits",
            "Commit 3\n",
            "Commit 4\n",
        ],
    );
}

#[test]
fn a_flat_history_has_no_culprit() {
    let Some(bench) = history(&[20_000; 9]) else {
        return;
    };
    let flat = bench.ok(bisect(&bench, "c0..c8").as_slice());
    has(&flat.stdout, &["no culprit: the ends differ by less than "]);
    lacks(&flat.stdout, &["confirmation"]);
}

#[test]
fn a_range_that_is_none_is_refused() {
    let Some(bench) = history(&STEP) else { return };
    let refused = |range: &str| bench.fails(2, bisect(&bench, range).as_slice());
    has(
        &refused("c8..c0"),
        &["the first is not an ancestor of the second"],
    );
    has(&refused("c0..c0"), &["between a commit and itself"]);
    has(&refused("c0..nowhere"), &["cannot find the commit nowhere"]);
    has(
        &refused("c0"),
        &["expected two commits, such as v1.0..HEAD"],
    );
    let mut unknown = bisect(&bench, "c0..c8");
    unknown[6] = "max_rss".into();
    has(&bench.fails(2, unknown.as_slice()), &["max_rss"]);
    let mut without = bisect(&bench, "c0..c8");
    without[8] = "true".into();
    has(
        &bench.fails(2, without.as_slice()),
        &["has no {tree} in it", "--kernel"],
    );
    let mut in_guest = bisect(&bench, "c0..c8");
    in_guest.drain(3..5);
    in_guest.push("--kernel".into());
    let output = bench.fails(2, in_guest.as_slice());
    has(&output, &["cannot run {tree} in a guest"]);
    let mut elsewhere = bisect(&bench, "c0..c8");
    elsewhere[2] = "/".into();
    has(
        &bench.fails(5, elsewhere.as_slice()),
        &["as a git repository"],
    );
    // Both ends must build.
    has(
        &bench.fails(1, bisect(&bench, "c3..c8").as_slice()),
        &[
            "  no such header\n",
            "an end of the range: it does not build",
        ],
    );
}

#[test]
fn a_search_that_fails_leaves_nothing_built() {
    let Some(bench) = history(&STEP) else { return };
    let mut words = bisect(&bench, "c0..c8");
    words[4] = "test $(cat size) = 20000 || { echo broken; false; }".into();
    let output = bench.fails(1, words.as_slice());
    has(&output, &["an end of the range", "broken"]);
    let left = bench.shell("ls -A cache/toll/versions");
    assert_eq!(left.stdout, "", "{left:#?}");
}
