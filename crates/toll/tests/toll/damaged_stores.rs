//! Damaged stores: a complete run that can be read equals what was written, and everything readable
//! can be copied to a new store.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use tempfile::TempDir;
use toll_host::store::{RunStatus, Store, StoreError, StoredRun};
use toll_stats::Rng;
use toll_testing::{Bench, Ran};

/// Number of stores damaged in each way.
const DAMAGES: u64 = 50;
const PAGE_BYTES: usize = 4096;

/// A store of three runs and a baseline, before any damage.
struct Intact {
    /// The file with all three runs and the baseline.
    file: Vec<u8>,
    /// The file during a run, and the log beside it.
    halfway: (Vec<u8>, Vec<u8>),
    runs: Vec<StoredRun>,
}

fn intact() -> &'static Intact {
    static INTACT: OnceLock<Intact> = OnceLock::new();
    INTACT.get_or_init(|| {
        let bench = Bench::new();
        for command in ["true {n}", "true x{n}", "echo {n}"] {
            bench.ok(&format!("run -q --no-html -r 15 -L n=1,2 '{command}'"));
        }
        bench.ok("baseline save main 1");
        let store = Store::read(&bench.store()).unwrap();
        let runs = (1..=3).map(|id| store.load(id).unwrap()).collect();
        let log = beside(&bench.store(), "-wal");
        // A store that is copied while it is open has a log.
        let mut open = Store::open(&bench.path("halfway.sqlite")).unwrap();
        for run in &runs {
            run_again(&mut open, run);
        }
        let halfway = bench.path("halfway.sqlite");
        let read = |path: &Path| std::fs::read(path).unwrap();
        let halfway = (read(&halfway), read(&beside(&halfway, "-wal")));
        drop(store);
        assert!(!log.exists(), "the last connection to close clears the log");
        Intact {
            file: read(&bench.store()),
            halfway,
            runs,
        }
    })
}

/// Stores a run in the same way as when it was made, trial by trial.
fn run_again(store: &mut Store, run: &StoredRun) {
    let mut begun = run.run.clone();
    (begun.status, begun.stop_reason, begun.updated_at) = (RunStatus::Unfinished, None, None);
    let id = store
        .add_run(&begun, &run.experiment, &run.treatments)
        .unwrap();
    for trial in &run.trials {
        store.add_trials(id, std::slice::from_ref(trial)).unwrap();
    }
    let reason = run.run.stop_reason.as_deref();
    store.set_status(id, run.run.status, reason).unwrap();
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    format!("{}{ending}", path.display()).into()
}

/// A damaged store in a directory of its own.
struct Wreck {
    directory: TempDir,
    what: String,
}

impl Wreck {
    fn new(what: String, file: &[u8], log: Option<&[u8]>) -> Self {
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let wreck = Self { directory, what };
        std::fs::write(wreck.path(), file).unwrap();
        if let Some(log) = log {
            std::fs::write(beside(&wreck.path(), "-wal"), log).unwrap();
        }
        wreck
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("runs.sqlite")
    }

    fn content(&self) -> (Vec<u8>, Option<Vec<u8>>) {
        let log = std::fs::read(beside(&self.path(), "-wal")).ok();
        (std::fs::read(self.path()).unwrap(), log)
    }
}

/// Damages bytes in a way that disks and people do. Returns a description that identifies a
/// failure.
fn damage(bytes: &mut Vec<u8>, seed: u64) -> String {
    let mut rng = Rng::new(seed);
    let length = bytes.len();
    let page = rng.below(length / PAGE_BYTES) * PAGE_BYTES;
    let page = page..page + PAGE_BYTES;
    let kind = match rng.below(6) {
        0 => {
            bytes.truncate(rng.below(length));
            "cut short"
        }
        1 => {
            bytes[rng.below(length)] ^= 1 << rng.below(8);
            "a bit flipped"
        }
        2 => {
            for _ in 0..8 {
                bytes[rng.below(length)] ^= 1 + rng.below(255) as u8;
            }
            "8 bytes changed"
        }
        3 => {
            bytes[page].fill(0);
            "a page zeroed"
        }
        4 => {
            bytes.copy_within(page, rng.below(length / PAGE_BYTES) * PAGE_BYTES);
            "a page written over another"
        }
        _ => {
            bytes[..1 + rng.below(100)].fill(0xff);
            "the beginning gone"
        }
    };
    format!("seed {seed}: {kind}")
}

/// Checks that every run that can be read from a wreck is what was written, and that errors say
/// what to do.
fn check_reading(wreck: &Wreck) {
    let store = match Store::read(&wreck.path()) {
        Ok(store) => store,
        Err(error) => return check_error(&error, wreck),
    };
    for original in &intact().runs {
        match store.load(original.run.id) {
            Ok(stored) => assert_eq!(stored, *original, "{}", wreck.what),
            Err(error) => check_error(&error, wreck),
        }
    }
    for outcome in [store.runs().err(), store.baselines().err()] {
        outcome.iter().for_each(|error| check_error(error, wreck));
    }
    if let Ok(id) = store.find_run("last") {
        assert_eq!(id, 3, "{}", wreck.what);
    }
}

#[track_caller]
fn check_error(error: &StoreError, wreck: &Wreck) {
    let text = error.to_string();
    let says_what_to_do = text.contains("; ") || text.contains(": see");
    assert!(
        text.starts_with("cannot ") && says_what_to_do,
        "{}: {text}",
        wreck.what
    );
}

/// Checks that the readable content is what the store held at some moment.
fn check_moment(wreck: &Wreck) {
    let Ok(store) = Store::read(&wreck.path()) else {
        return;
    };
    let runs = store.runs().expect(&wreck.what);
    for (index, (run, _)) in runs.iter().enumerate() {
        let original = &intact().runs[index];
        let stored = store.load(run.id).expect(&wreck.what);
        let begun = &original.trials[..stored.trials.len()];
        assert_eq!(stored.trials, begun, "{}", wreck.what);
        let is_last = index + 1 == runs.len();
        assert!(is_last || stored == *original, "{}", wreck.what);
    }
}

/// Checks that the salvaged runs are what was written. Returns their number.
fn check_salvage(wreck: &Wreck) -> usize {
    let before = wreck.content();
    let surveyed = Store::survey(&wreck.path());
    let new = wreck.directory.path().join("new.sqlite");
    let salvaged = Store::salvage(&wreck.path(), &new);
    assert_eq!(
        wreck.content(),
        before,
        "{}: the store was changed",
        wreck.what
    );
    let Ok(salvaged) = salvaged else {
        assert!(!new.exists(), "{}", wreck.what);
        return 0;
    };
    assert_eq!(surveyed.unwrap(), salvaged, "{}", wreck.what);
    let store = Store::read(&new).unwrap();
    for run in &salvaged.runs {
        let saved = store.load(run.id).unwrap();
        assert_eq!(saved.trials.len(), run.trials);
        if saved.run.status == RunStatus::Complete {
            let original = &intact().runs[usize::try_from(run.id).unwrap() - 1];
            assert_eq!(saved, *original, "{}", wreck.what);
        }
    }
    assert_eq!(store.runs().unwrap().len(), salvaged.runs.len());
    drop(store);
    let saved = std::fs::read(&new).unwrap();
    let again = Store::salvage(&wreck.path(), &new).unwrap_err();
    assert!(matches!(again.kind(), StoreError::InTheWay), "{again}");
    assert_eq!(
        std::fs::read(&new).unwrap(),
        saved,
        "the new store was overwritten"
    );
    salvaged.runs.len()
}

#[test]
fn an_intact_store_is_saved_whole() {
    let (file, log) = &intact().halfway;
    for (file, log) in [(&intact().file, None), (file, Some(&log[..]))] {
        let wreck = Wreck::new("intact".into(), file, log);
        assert_eq!(check_salvage(&wreck), 3);
        assert!(Store::survey(&wreck.path()).unwrap().is_whole);
    }
}

#[test]
fn of_a_damaged_file_what_was_written_is_read_or_nothing() {
    let mut saved = 0;
    for seed in 0..DAMAGES {
        let mut file = intact().file.clone();
        let what = damage(&mut file, seed);
        let wreck = Wreck::new(what, &file, None);
        saved += check_salvage(&wreck);
        check_reading(&wreck);
    }
    let share = saved as f64 / (DAMAGES as f64 * 3.0);
    assert!(share > 0.25, "only {share} of all runs were saved");
}

#[test]
fn of_a_damaged_or_missing_log_an_earlier_moment_is_read() {
    let (file, log) = &intact().halfway;
    for seed in 0..DAMAGES {
        let mut log = log.clone();
        let what = damage(&mut log, seed);
        let wreck = Wreck::new(what, file, Some(&log));
        check_salvage(&wreck);
        check_moment(&wreck);
    }
    check_moment(&Wreck::new("no log".into(), file, None));
}

#[test]
fn any_page_may_be_gone() {
    let pages = intact().file.len() / PAGE_BYTES;
    let mut saved = 0;
    for page in 0..pages {
        let mut file = intact().file.clone();
        file[page * PAGE_BYTES..][..PAGE_BYTES].fill(0xa5);
        let wreck = Wreck::new(format!("page {page} gone"), &file, None);
        saved += check_salvage(&wreck);
        check_reading(&wreck);
        let survey = Store::survey(&wreck.path());
        assert!(
            survey.is_err() || !survey.unwrap().is_whole,
            "{}",
            wreck.what
        );
    }
    assert!(
        saved > pages,
        "losing one of {pages} pages costs more than two runs on average"
    );
}

#[test]
fn a_store_is_not_begun_over_a_log_whose_file_is_lost() {
    let (_, log) = &intact().halfway;
    for file in [None, Some(&[][..])] {
        let wreck = Wreck::new("file lost".into(), file.unwrap_or_default(), Some(log));
        if file.is_none() {
            std::fs::remove_file(wreck.path()).unwrap();
        }
        for opened in [Store::open(&wreck.path()), Store::read(&wreck.path())] {
            let error = opened.unwrap_err().to_string();
            assert!(error.contains("the file is lost"), "{error}");
        }
        assert_eq!(std::fs::read(beside(&wreck.path(), "-wal")).unwrap(), *log);
    }
}

#[track_caller]
fn check_refusal(ran: &Ran, line: &str, page: usize) {
    let errors = &ran.stderr;
    let is_named = errors.contains("cannot ") && errors.contains(".sqlite");
    assert!(
        ran.code == Some(1) && is_named && !errors.contains("panicked"),
        "page {page}, {line}: {ran:#?}"
    );
}

#[test]
fn each_verb_tells_of_a_damage() {
    let document = Bench::new();
    document.ok("run -q --no-html -r 1 true");
    document.ok("export 1 --json run.json");
    let reads = [
        "list",
        "show 1",
        "report 1 --html page.html",
        "export 1 --csv -",
        "compare 1 3",
        "baseline list",
        "trace --cost-model 1 true",
    ];
    let writes = [
        "baseline save x 1",
        "import run.json",
        "run -q --no-html -r 1 true",
        "run --resume 1 -q --no-html -r 26",
    ];
    let last = intact().file.len() / PAGE_BYTES - 1;
    for page in [0, 1, last / 2, last] {
        let mut file = intact().file.clone();
        file[page * PAGE_BYTES..][..PAGE_BYTES].fill(0xa5);
        let bench = Bench::new();
        bench.write("run.json", &document.read("run.json"));
        std::fs::write(bench.path("runs.sqlite"), &file).unwrap();
        let run = |line: &str| bench.run(&format!("{line} --store runs.sqlite"));
        for line in reads {
            let ran = run(line);
            // Runs of commands have no prices, whether the store is damaged or not.
            if ran.code != Some(0) && (line, ran.code) != (reads[6], Some(2)) {
                check_refusal(&ran, line, page);
            }
        }
        let is_refused = Store::open(&bench.path("runs.sqlite")).is_err();
        for line in writes.iter().filter(|_| is_refused) {
            check_refusal(&run(line), line, page);
        }
        let doctor = run("doctor --no-noise");
        assert!(doctor.stdout.contains("is damaged"), "{doctor:#?}");
        let salvage = run("doctor --salvage new.sqlite");
        if doctor.stdout.contains("no run in it can be saved") {
            check_refusal(&salvage, "doctor --salvage", page);
            continue;
        }
        assert!(doctor.stdout.contains("--salvage"), "{doctor:#?}");
        assert!(salvage.stdout.contains("is unchanged"), "{salvage:#?}");
        let again = run("doctor --salvage new.sqlite");
        assert!(again.stderr.contains("not overwritten"), "{again:#?}");
        bench.ok("list --store new.sqlite");
        let after = std::fs::read(bench.path("runs.sqlite")).unwrap();
        assert!(!is_refused || after == file, "page {page}");
    }
}

/// Replaces every occurrence of a text. `SQLite` leaves the old bytes of a row that it moved to
/// another page, so the first occurrence need not be in the row.
fn overwrite(bytes: &mut [u8], text: &str) {
    let windows = bytes.windows(text.len()).enumerate();
    let found = windows.filter(|(_, window)| *window == text.as_bytes());
    let places: Vec<usize> = found.map(|(at, _)| at).collect();
    assert!(!places.is_empty(), "{text}");
    for at in places {
        bytes[at..at + text.len()].fill(b'?');
    }
}

#[test]
fn a_run_that_is_not_damaged_is_read_and_saved_and_an_unfinished_one_goes_on() {
    let bench = Bench::new();
    let plan = &intact().runs[2];
    let path = bench.path("runs.sqlite");
    std::fs::write(&path, &intact().file).unwrap();
    let mut store = Store::open(&path).unwrap();
    let mut begun = plan.clone();
    begun.run.uid = "00000000000000aa".into();
    begun.run.status = RunStatus::Unfinished;
    begun.trials.truncate(7);
    assert_eq!(store.import(&begun).unwrap(), 4);
    drop(store);
    let mut file = std::fs::read(&path).unwrap();
    overwrite(&mut file, &intact().runs[1].run.seed.to_string());
    std::fs::write(&path, &file).unwrap();

    bench.ok("show 1 --store runs.sqlite");
    let errors = bench.fails(1, "show 2 --store runs.sqlite");
    assert!(errors.contains("runs 1, 3-4 can still be read"), "{errors}");
    let output = bench.ok("doctor --salvage new.sqlite --store runs.sqlite");
    for needle in ["run 2: lost", "3 of 4 runs"] {
        assert!(output.stdout.contains(needle), "{output:#?}");
    }
    // This test imported the run, so it counts as foreign.
    let line = "run --resume 4 -q --no-html --store new.sqlite";
    bench.fails(2, line);
    bench.ok(&format!("{line} --run-foreign-commands"));
    let order = |run: &StoredRun| -> Vec<(u32, u32, usize)> {
        let trials = run.trials.iter();
        trials.map(|t| (t.block, t.position, t.treatment)).collect()
    };
    let run = Store::read(&bench.path("new.sqlite"))
        .unwrap()
        .load(4)
        .unwrap();
    assert_eq!(order(&run), order(plan));
    assert_eq!(run.run.status, RunStatus::Complete);
}
