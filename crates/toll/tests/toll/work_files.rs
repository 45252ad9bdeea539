//! Work files that vanish or are replaced during a run.

use std::os::unix::fs::symlink;
use std::path::PathBuf;

use toll_host::store::{RunStatus, Store, StoredRun, TrialState};
use toll_testing::{Bench, Running, has, wait_until};

use crate::settings::Settings;

const COPIES: &str = "format = 1\nname = 'copies'\n[workload]\nkind = 'copy'\nsize = '64KiB'\n\
                      cache = 'warm'\n[[factor]]\nname = 'method'\nlevels = ['readv', 'mmap']\n\
                      [run]\nmin_blocks = 200\nmax_blocks = 200\niterations = 1\n";

fn stored(bench: &Bench) -> Option<StoredRun> {
    let store = Store::read(&bench.store()).ok()?;
    store.load(store.find_run("last").ok()?).ok()
}

fn start(bench: &Bench) -> Running {
    let file = bench.write("copies.toml", COPIES);
    let line = format!("run -q --no-html --seed 3 {}", file.display());
    let mut command = bench.spawnable(&*line);
    let errors = std::fs::File::create(bench.path("errors")).unwrap();
    let mut running = Running(command.stderr(errors).spawn().unwrap());
    wait_until("the store has some trials", || {
        let ended = running.0.try_wait().unwrap();
        assert_eq!(ended, None, "{}", bench.read("errors"));
        stored(bench).is_some_and(|run| run.trials.len() > 3)
    });
    running
}

fn work_directory(bench: &Bench) -> PathBuf {
    let entries = std::fs::read_dir(bench.path("cache/toll/work")).unwrap();
    let found: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    assert_eq!(found.len(), 1);
    found[0].clone()
}

/// Damages the work directory of a run. Checks that the run ends with an error that says what
/// happened, and that it can be resumed.
#[track_caller]
fn check(needle: &str, harm: impl FnOnce(&Bench, &std::path::Path)) {
    let bench = Bench::new();
    let before = Settings::before(&bench);
    let mut running = start(&bench);
    harm(&bench, &work_directory(&bench));
    let status = running.end();
    let errors = bench.read("errors");
    assert_eq!(status.code(), Some(1), "{errors}");
    has(&errors, &[needle, "cannot continue", "toll run --resume"]);
    let then = stored(&bench).unwrap();
    assert_eq!(then.run.status, RunStatus::Unfinished);
    before.are_back();
    bench.ok("run --resume -q --no-html -r 30");
    let whole = stored(&bench).unwrap();
    let is_completed = |trial: &toll_host::store::TrialRecord| trial.state == TrialState::Completed;
    assert!(whole.trials.iter().all(is_completed));
    assert_eq!(whole.trials[..then.trials.len()], then.trials);
    // Both treatments in each block, and the twin in some of them.
    assert!(whole.trials.len() > 30 * 2, "{}", whole.trials.len());
    before.are_back();
}

fn source(root: &std::path::Path) -> PathBuf {
    root.join("work/source-65536")
}

#[test]
fn a_work_file_that_is_deleted_ends_the_run_which_goes_on() {
    check("source-65536 is gone", |_, root| {
        std::fs::remove_file(source(root)).unwrap();
    });
}

#[test]
fn a_work_directory_that_is_deleted_ends_the_run_which_goes_on() {
    check("is gone", |_, root| {
        // A trial may be creating a file at the same time.
        wait_until("the directory is gone", || {
            std::fs::remove_dir_all(root).is_ok() || !root.exists()
        });
    });
}

#[test]
fn a_work_file_that_became_a_link_is_not_followed() {
    check("was replaced by a symbolic link", |bench, root| {
        // The link leads to a copy of the source, so only the fact that it is a link can be
        // noticed.
        let copy = bench.path("copy");
        std::fs::copy(source(root), &copy).unwrap();
        let link = root.join("work/link");
        symlink(&copy, &link).unwrap();
        std::fs::rename(&link, source(root)).unwrap();
    });
}

#[test]
fn a_work_file_that_is_cut_ends_the_run_which_goes_on() {
    check("was truncated", |_, root| {
        let file = std::fs::File::options().write(true).open(source(root));
        file.unwrap().set_len(100).unwrap();
    });
}

#[test]
fn clearing_a_work_directory_that_became_a_link_follows_it_not() {
    let bench = Bench::new();
    let mut running = start(&bench);
    let root = work_directory(&bench);
    std::fs::create_dir_all(bench.path("precious/work")).unwrap();
    std::fs::write(bench.path("precious/work/file"), "kept").unwrap();
    std::fs::rename(&root, bench.path("moved")).unwrap();
    symlink(bench.path("precious"), &root).unwrap();
    assert_eq!(running.end().code(), Some(1));
    assert_eq!(bench.read("precious/work/file"), "kept");
    assert!(root.is_symlink(), "the link does not belong to the run");
    let output = bench.run("doctor --restore");
    assert_eq!(output.code, Some(1), "{output:#?}");
    toll_testing::has(&output.stdout, &["it is not what the run made"]);
}
