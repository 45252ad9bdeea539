//! Two runs at once: into one store or two, in one work directory, or of the same run.

use serde_json::Value;
use toll_testing::{Bench, Running, list};

use crate::settings::Settings;

/// Starts a run of another user, who measures at the same time.
fn of_another_user(bench: &Bench, arguments: &[&str]) -> Running {
    let mut command = bench.spawnable(arguments);
    command.env("XDG_STATE_HOME", bench.path("other/state"));
    command.env("TOLL_RUN_LOCK", bench.path("other.lock"));
    command.stderr(std::fs::File::create(bench.path("errors")).unwrap());
    Running(command.spawn().unwrap())
}

/// Returns how the runs of a bench ended: number, status, trials.
fn ends(bench: &Bench) -> Vec<(i64, String, usize)> {
    let listed = bench.json("list --json");
    let end = |run: &Value| {
        let document = bench.document(&run["id"].to_string());
        (
            run["id"].as_i64().unwrap(),
            document["run"]["status"].as_str().unwrap().to_owned(),
            list(&document["trials"]).len(),
        )
    };
    list(&listed["runs"]).iter().map(end).collect()
}

#[test]
fn runs_of_two_users_in_one_work_directory_do_not_touch_each_other() {
    let bench = Bench::new();
    let settings = Settings::before(&bench);
    let work = bench.path("work").display().to_string();
    let base = ["run", "-q", "--no-html", "-r", "10", "--work-dir", &work];
    let command = "sh -c 'echo $$ >{workdir}/mine; sleep 0.02; test $(cat {workdir}/mine) = $$'";
    let first = [&base[..], &[command]].concat();
    let second = [&base[..], &["--store", "other.sqlite", command]].concat();
    let mut one = bench.start(&first);
    let mut other = of_another_user(&bench, &second);
    assert_eq!(one.end().code(), Some(0));
    assert_eq!(other.end().code(), Some(0), "{}", bench.read("errors"));
    for store in [&[][..], &["--store", "other.sqlite"]] {
        let shown = bench.json(&[&["show", "--json"], store].concat());
        let states = list(&shown["trials"]).iter().map(|trial| &trial["state"]);
        assert!(
            states.clone().all(|state| state == "completed"),
            "{shown:#}"
        );
        assert_eq!(states.count(), 20);
    }
    settings.are_back();
    assert_eq!(std::fs::read_dir(work).unwrap().count(), 0);
}

#[test]
fn runs_of_two_users_into_one_store_are_both_kept() {
    let bench = Bench::new();
    let run = ["run", "-q", "--no-html", "-r", "20", "sleep 0.01"];
    let mut one = bench.start_measuring(&run);
    let mut other = of_another_user(&bench, &run);
    assert_eq!(other.end().code(), Some(0), "{}", bench.read("errors"));
    assert_eq!(one.end().code(), Some(0));
    let complete = |id| (id, "complete".to_owned(), 40);
    assert_eq!(ends(&bench), [complete(1), complete(2)]);
}

#[test]
fn of_two_that_start_at_once_on_a_new_store_none_breaks_it() {
    for _ in 0..5 {
        let bench = Bench::new();
        let run = ["run", "-q", "--no-html", "-r", "2", "true"];
        let mut one = bench.start(&run);
        let mut other = of_another_user(&bench, &run);
        let codes = [one.end().code(), other.end().code()];
        let good = codes.iter().filter(|code| **code == Some(0)).count();
        assert!(good >= 1, "{codes:?} {}", bench.read("errors"));
        let ends = ends(&bench);
        assert_eq!(ends.len(), good, "{ends:?}");
        assert!(
            ends.iter()
                .all(|(_, status, trials)| status == "complete" && *trials == 4)
        );
    }
}

#[test]
fn of_two_that_go_on_with_one_run_one_does() {
    let bench = Bench::new();
    let settings = Settings::before(&bench);
    // The run takes long enough that the second toll starts before the first one has finished it.
    let run = ["run", "-q", "--no-html", "-r", "40", "sleep 0.1"];
    bench.start_measuring(&run).kill();
    // The second one finds a run that is signed with another key.
    let resume = [
        "run",
        "--resume",
        "1",
        "-q",
        "--no-html",
        "--run-foreign-commands",
    ];
    let mut command = bench.spawnable(&resume);
    command.stderr(std::fs::File::create(bench.path("errors-1")).unwrap());
    let mut one = Running(command.spawn().unwrap());
    let mut other = of_another_user(&bench, &resume);
    let errors = || bench.read("errors-1") + &bench.read("errors");
    let mut codes = [one.end().code(), other.end().code()];
    codes.sort_unstable();
    // The other is refused because the first has stored a trial or, if that happens between its two
    // checks of the signature, because of the first one's key.
    let refusal = match codes {
        [Some(0), Some(1)] => "is also continuing it",
        [Some(0), Some(2)] => "did not begin it on this machine",
        _ => panic!("{codes:?}: {}", errors()),
    };
    assert!(errors().contains(refusal), "{}", errors());
    assert_eq!(ends(&bench), [(1, "complete".into(), 80)]);
    bench.ok("doctor --restore");
    settings.are_back();
}
