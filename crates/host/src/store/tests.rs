use std::collections::BTreeMap;

use rusqlite::Connection;

use super::*;
use crate::plan::Plan;
use crate::reason::Reason;
use crate::spec::{self, Experiment};

fn experiment() -> Experiment {
    let toml = "format = 1\nname = 'x'\n[workload]\nkind = 'command'\ncommand = 'true {a}'\n\
                [[factor]]\nname = 'a'\nlevels = ['1', '2']\n";
    spec::parse(toml, "test", "quick").unwrap()
}

fn record(uid: &str) -> RunRecord {
    RunRecord {
        uid: uid.into(),
        experiment: "x".into(),
        title: "x".into(),
        profile: "quick".into(),
        seed: u64::MAX,
        created_at: "2026-01-01T00:00:00Z".into(),
        toll_version: "0".into(),
        command_line: "toll run x".into(),
        ..RunRecord::default()
    }
}

fn trial(block: u32, treatment: usize) -> TrialRecord {
    TrialRecord {
        block,
        position: u32::try_from(treatment).unwrap(),
        treatment,
        started_at: "2026-01-01T00:00:01Z".into(),
        wall_ns: 12,
        run_ns: 15,
        samples: BTreeMap::from([("duration_ns".into(), vec![1.5, -0.0, f64::MAX])]),
        disturbance: BTreeMap::from([("steal_ns".into(), 3.0)]),
        notes: vec!["buffer 4096".into()],
        functions: BTreeMap::from([("vfs_read".into(), 7)]),
        ..TrialRecord::default()
    }
}

fn filled(directory: &tempfile::TempDir) -> (Store, i64) {
    let mut store = Store::open(&directory.path().join("runs.sqlite")).unwrap();
    let experiment = experiment();
    let plan = Plan::new(&experiment, u64::MAX).unwrap();
    let id = store
        .add_run(&record("00000000000000aa"), &experiment, &plan.treatments)
        .unwrap();
    store.add_trials(id, &[trial(0, 1)]).unwrap();
    store.add_trials(id, &[trial(0, 0)]).unwrap();
    (store, id)
}

#[test]
fn what_was_added_is_read_back_whole() {
    let directory = tempfile::tempdir().unwrap();
    let (mut store, id) = filled(&directory);
    let reason = Reason::GivenUp {
        failures: 3,
        message: "no such 'thing'".into(),
    };
    store.skip_treatment(id, 1, &reason).unwrap();
    store
        .set_status(id, RunStatus::Complete, Some("narrow enough"))
        .unwrap();
    drop(store);
    let store = Store::open(&directory.path().join("runs.sqlite")).unwrap();
    let stored = store.load(id).unwrap();
    assert_eq!(stored.run.seed, u64::MAX);
    assert_eq!(
        stored.run.updated_at.as_ref(),
        Some(&trial(0, 0).started_at)
    );
    assert_eq!(stored.run.status, RunStatus::Complete);
    assert_eq!(stored.experiment, experiment());
    assert_eq!(stored.treatments[1].skipped, Some(reason));
    assert_eq!(stored.trials, [trial(0, 0), trial(0, 1)]);
    assert_eq!(store.runs().unwrap(), [(stored.run, 2)]);
}

#[test]
fn a_trial_is_never_taken_twice() {
    let directory = tempfile::tempdir().unwrap();
    let (mut store, id) = filled(&directory);
    assert!(store.add_trials(id, &[trial(0, 1)]).is_err());
    assert_eq!(store.load(id).unwrap().trials.len(), 2);
}

#[test]
fn runs_are_found_by_number_by_last_and_by_identity() {
    let directory = tempfile::tempdir().unwrap();
    let (mut store, id) = filled(&directory);
    let second = store
        .add_run(&record("00000000000000ab"), &experiment(), &[])
        .unwrap();
    assert_eq!(store.find_run(&id.to_string()).unwrap(), id);
    assert_eq!(store.find_run("last").unwrap(), second);
    assert_eq!(store.find_run("00000000000000ab").unwrap(), second);
    assert!(matches!(
        store.find_run("000000000"),
        Err(StoreError::Ambiguous(_))
    ));
    for name in ["77", "ffff", "%", "", "'; DROP TABLE runs"] {
        assert!(
            matches!(store.find_run(name), Err(StoreError::NoSuchRun(_))),
            "{name}"
        );
    }
}

#[test]
fn a_newer_store_and_another_programs_database_are_refused_unharmed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("runs.sqlite");
    drop(Store::open(&path).unwrap());
    let connection = Connection::open(&path).unwrap();
    connection
        .execute_batch("PRAGMA user_version = 99")
        .unwrap();
    drop(connection);
    let error = Store::open(&path).unwrap_err().to_string();
    assert!(
        error.contains("version 99") && error.contains("runs.sqlite"),
        "{error}"
    );

    let foreign = directory.path().join("other.sqlite");
    let connection = Connection::open(&foreign).unwrap();
    connection.execute_batch("CREATE TABLE t (x)").unwrap();
    drop(connection);
    assert!(
        Store::open(&foreign)
            .unwrap_err()
            .to_string()
            .contains("another program")
    );

    let text = directory.path().join("text");
    std::fs::write(
        &text,
        "not a database at all, but long enough to be looked at",
    )
    .unwrap();
    assert!(Store::open(&text).is_err());
    assert!(
        std::fs::read_to_string(&text)
            .unwrap()
            .starts_with("not a database")
    );
}

#[test]
fn a_run_is_imported_once() {
    let directory = tempfile::tempdir().unwrap();
    let (store, id) = filled(&directory);
    let stored = store.load(id).unwrap();
    let mut other = Store::open(&directory.path().join("other.sqlite")).unwrap();
    let new = other.import(&stored).unwrap();
    assert_eq!(other.load(new).unwrap().trials, stored.trials);
    assert!(matches!(
        other.import(&stored),
        Err(StoreError::AlreadyThere(_))
    ));
}

#[test]
fn boots_of_guests_come_back_in_order() {
    let directory = tempfile::tempdir().unwrap();
    let (mut store, id) = filled(&directory);
    let boots: Vec<BootRecord> = ["one", "two"]
        .into_iter()
        .map(|log| BootRecord {
            block: 3,
            levels: BTreeMap::from([("kernel".into(), "toll".into())]),
            accelerator: Some("tcg".into()),
            log: log.into(),
            ..BootRecord::default()
        })
        .collect();
    for boot in &boots {
        store.add_boot(id, boot).unwrap();
    }
    assert_eq!(store.load(id).unwrap().boots, boots);
}

#[test]
fn profiles_stay_with_a_complete_run() {
    let directory = tempfile::tempdir().unwrap();
    let (mut store, id) = filled(&directory);
    store
        .set_status(id, RunStatus::Complete, Some("done"))
        .unwrap();
    let profile = ProfileRecord {
        treatment: 1,
        stacks: vec![vec![0]],
        ..ProfileRecord::default()
    };
    store.add_profile(id, &profile).unwrap();
    assert_eq!(store.load(id).unwrap().profiles, [profile]);
    let damage = "UPDATE profiles SET record = replace(record, '[0]', '[1]')";
    store.connection.execute_batch(damage).unwrap();
    let error = store.load(id).unwrap_err().to_string();
    assert!(error.contains("its hash differs"), "{error}");
}

fn baseline(name: &str, run_id: i64) -> Baseline {
    Baseline {
        name: name.into(),
        experiment: "x".into(),
        run_id,
        saved_at: "2026-01-01T00:00:02Z".into(),
    }
}

#[test]
fn a_baseline_stands_for_one_run_of_an_experiment_until_it_is_removed() {
    let directory = tempfile::tempdir().unwrap();
    let (mut store, id) = filled(&directory);
    assert_eq!(store.save_baseline(&baseline("main", id)).unwrap(), None);
    let second = store
        .add_run(&record("00000000000000ab"), &experiment(), &[])
        .unwrap();
    assert_eq!(
        store.save_baseline(&baseline("main", second)).unwrap(),
        Some(id)
    );
    let other = Baseline {
        experiment: "y".into(),
        ..baseline("main", id)
    };
    store.save_baseline(&other).unwrap();
    assert_eq!(
        store.baselines().unwrap(),
        [baseline("main", second), other]
    );
    assert_eq!(store.remove_baseline("main", Some("z")).unwrap(), 0);
    assert_eq!(store.remove_baseline("main", Some("x")).unwrap(), 1);
    assert_eq!(store.remove_baseline("main", None).unwrap(), 1);
    assert_eq!(store.baselines().unwrap(), []);
    assert!(
        store.save_baseline(&baseline("none", 99)).is_err(),
        "there is no such run"
    );
}

#[test]
fn what_is_changed_behind_its_back_is_seen_once_a_run_is_complete() {
    for change in [
        "UPDATE runs SET record = replace(record, 'narrow', 'wide')",
        "UPDATE runs SET hash = hash + 1",
        "UPDATE runs SET treatments = json_set(treatments, '$[1].skipped', 'tired')",
        "UPDATE runs SET experiment = replace(experiment, 'true', 'echo')",
        "UPDATE trials SET record = json_set(record, '$.position', 5) WHERE treatment = 1",
        "UPDATE trials SET treatment = 9, record = '{}' WHERE treatment = 1",
        "UPDATE samples SET iterations = x'0000000000000840'",
        "UPDATE samples SET metric = 'duration_ms'",
        "DELETE FROM samples",
        "DELETE FROM trials WHERE treatment = 1",
        "DELETE FROM boots",
        "UPDATE boots SET record = replace(record, 'all is well', 'panic')",
        "DELETE FROM runs",
    ] {
        let directory = tempfile::tempdir().unwrap();
        let (mut store, id) = filled(&directory);
        let mut boot = BootRecord::default();
        boot.set_log("all is well");
        store.add_boot(id, &boot).unwrap();
        store
            .set_status(id, RunStatus::Complete, Some("narrow"))
            .unwrap();
        store.load(id).unwrap();
        let unchecked = format!("PRAGMA foreign_keys = OFF; {change}");
        store.connection.execute_batch(&unchecked).unwrap();
        let error = store
            .find_run("last")
            .and_then(|id| store.load(id))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("cannot read the store") && error.contains("runs.sqlite"),
            "{change}: {error}"
        );
        assert!(error.contains("no run in it can be read"), "{error}");
    }
}

#[test]
fn a_complete_run_that_goes_on_is_hashed_anew() {
    let directory = tempfile::tempdir().unwrap();
    let (mut store, id) = filled(&directory);
    let mut more = experiment();
    more.run.max_blocks += 1;
    for block in 1..3 {
        store.set_status(id, RunStatus::Complete, None).unwrap();
        store.reopen(id, &more).unwrap();
        assert_eq!(store.load(id).unwrap().run.status, RunStatus::Unfinished);
        store.add_trials(id, &[trial(block, 0)]).unwrap();
    }
    // Another program may have completed it meanwhile.
    store.set_status(id, RunStatus::Complete, None).unwrap();
    store.add_trials(id, &[trial(3, 0)]).unwrap();
    let stored = store.load(id).unwrap();
    assert_eq!((stored.trials.len(), stored.experiment), (5, more));
}

#[test]
fn of_a_damaged_store_the_other_runs_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let (mut store, first) = filled(&directory);
    for uid in 1..4 {
        let (run, experiment) = (record(&format!("{uid:016x}")), experiment());
        let id = store.add_run(&run, &experiment, &[]).unwrap();
        store.set_status(id, RunStatus::Complete, None).unwrap();
    }
    let change = "UPDATE runs SET record = replace(record, 'quick', 'thick') WHERE id = 3";
    store.connection.execute_batch(change).unwrap();
    let error = store.load(3).unwrap_err().to_string();
    assert!(error.contains("runs 1-2, 4 can still be read"), "{error}");
    store.load(first).unwrap();
}

#[test]
fn an_experiment_that_changed_after_it_was_read_is_neither_obeyed_nor_signed() {
    let directory = tempfile::tempdir().unwrap();
    let (mut store, id) = filled(&directory);
    store.sign_by(RunKey::new([1; 32]));
    let own = store.load(id).unwrap();
    assert!(!store.is_signed(&own).unwrap());
    store.sign(&own).unwrap();
    assert!(store.is_signed(&own).unwrap());
    let mut theirs = own.clone();
    theirs.experiment.title = "another".into();
    assert!(store.is_signed(&theirs).is_err());
    assert!(store.sign(&theirs).is_err());
}
