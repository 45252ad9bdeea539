//! Full disks: finished trials are kept, and a run goes on once there is room again.

use toll_host::store::{RunStatus, Store, StoredRun};
use toll_testing::{Bench, has, in_a_namespace};

use crate::settings::Settings;

fn order(run: &StoredRun) -> Vec<(u32, u32, usize)> {
    let trials = run.trials.iter();
    trials.map(|t| (t.block, t.position, t.treatment)).collect()
}

/// Returns the order of a plan's trials when nothing disturbs it.
fn undisturbed(plan: &str) -> Vec<(u32, u32, usize)> {
    let bench = Bench::new();
    let ran = bench.shell(&format!("toll run -q --no-html {plan}"));
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    order(&Store::read(&bench.store()).unwrap().load(1).unwrap())
}

fn load(bench: &Bench, name: &str) -> StoredRun {
    Store::read(&bench.path(name)).unwrap().load(1).unwrap()
}

#[test]
fn a_store_that_fills_up_ends_the_run_which_goes_on_when_there_is_room() {
    let plan = "--seed 5 -r 40 true";
    let bench = Bench::new();
    let before = Settings::before(&bench);
    let line = format!(
        "mkdir small; mount -t tmpfs -o size=256k small small
         toll run -q --no-html --store small/runs.sqlite {plan} || echo \"status $?\"
         mkdir then; cp small/runs.sqlite* then
         toll show --store small/runs.sqlite >/dev/null
         mount -o remount,size=64m small
         toll run --resume -q --no-html --store small/runs.sqlite
         cp small/runs.sqlite* ."
    );
    let Some(ran) = in_a_namespace(&bench, &line) else {
        return;
    };
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert!(ran.stdout.contains("status 1"), "{ran:#?}");
    has(
        &ran.stderr,
        &["disk is full", "small/runs.sqlite", "toll run --resume"],
    );
    let then = load(&bench, "then/runs.sqlite");
    assert!(!then.trials.is_empty());
    assert_eq!(then.run.status, RunStatus::Unfinished);
    let whole = load(&bench, "runs.sqlite");
    assert_eq!(whole.trials[..then.trials.len()], then.trials);
    assert_eq!(order(&whole), undisturbed(plan));
    assert_eq!(whole.run.status, RunStatus::Complete);
    before.are_back();
}

#[test]
fn a_work_directory_that_fills_up_from_outside_ends_the_run_which_goes_on_when_there_is_room() {
    // The command plays another program that fills the disk while it runs.
    let command = "n=$(cat count); echo $((n + 1)) >count; [ $n != 7 ] || dd if=/dev/zero \
                   of=small/fill bs=64k status=none; head -c 100000 count /dev/zero >{workdir}/x \
                   && rm {workdir}/x";
    let command = command.replace('$', "\\$");
    let plan = format!("--seed 6 -r 8 \"{command}\"");
    let bench = Bench::new();
    let before = Settings::before(&bench);
    let line = format!(
        "echo 0 >count; mkdir small; mount -t tmpfs -o size=16m small small
         toll run -q --no-html --work-dir small {plan} || echo \"status $?\"
         cp data/toll/runs.sqlite then.sqlite; ls -A small
         rm small/fill
         toll run --resume -q --no-html --work-dir small"
    );
    let Some(ran) = in_a_namespace(&bench, &line) else {
        return;
    };
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert!(ran.stdout.contains("status 1"), "{ran:#?}");
    assert!(
        ran.stdout.contains("\nfill\n"),
        "everything else is removed: {ran:#?}"
    );
    has(&ran.stderr, &["small/run-", "is full", "toll run --resume"]);
    let then = load(&bench, "then.sqlite");
    assert_eq!(then.trials.len(), 7, "the trials before the disk was full");
    assert_eq!(then.run.status, RunStatus::Unfinished);
    let whole = load(&bench, "data/toll/runs.sqlite");
    assert_eq!(whole.trials[..7], then.trials);
    assert_eq!(whole.trials.len(), 16);
    assert_eq!(whole.run.status, RunStatus::Complete);
    before.are_back();
}
