//! `kill -9` at random moments of runs of every kind. A run that is resumed afterwards ends like
//! one that was never killed, no finished trial is lost, and the machine's settings are restored.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags};
use rustix::process::Signal;
use serde_json::Value;
use toll_host::store::{RunStatus, Store};
use toll_stats::Rng;
use toll_testing::{Bench, Running, capability, full_or, processes_marked, skip, wait_until};

use super::guest::kernel;
use crate::settings::Settings;

/// Number of kills for each kind of run.
const KILLS_OF_COMMANDS: usize = 110;
const KILLS_OF_COMMANDS_IN_SHORT: usize = 15;
const KILLS_AROUND_SIDE_COMMANDS: usize = 30;
const KILLS_ON_FILE_SYSTEMS: usize = 30;
const KILLS_UNDER_A_LIMIT: usize = 25;
const KILLS_IN_GUESTS: usize = 5;

/// Trials that end within this time after a commit are committed together with the next one.
const SAVE_INTERVAL: Duration = Duration::from_millis(100);

/// The duration of a start depends on the machine. If a start ends before its kill, later kills
/// come sooner by the first factor; after each kill, they come later by the second. About three
/// starts in ten then end by themselves.
const SOONER: f64 = 0.8;
const LATER: f64 = 1.1;

/// A run that is killed again and again.
struct Storm<'a> {
    bench: &'a Bench,
    /// The command line of the run, without its seed.
    run: &'a [&'a str],
    kills: usize,
    /// Initially, kills come at any moment up to this long after a start, so that some hit the
    /// set-up of a run, some its trials and some its end.
    latest: Duration,
}

const QUIET: [&str; 2] = ["-q", "--no-html"];

/// Returns everything that a store holds about its trials, one line each, in the order of their
/// commits. `None` if the store cannot be read just now, for example while its tables are being
/// created.
fn kept(store: &Path) -> Option<Vec<String>> {
    if !store.exists() {
        return Some(Vec::new());
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(store, flags).ok()?;
    connection.busy_timeout(Duration::ZERO).ok()?;
    let tables = "SELECT count(*) FROM sqlite_schema WHERE name = 'trials'";
    let count: i64 = connection.query_row(tables, [], |row| row.get(0)).ok()?;
    if count == 0 {
        return Some(Vec::new());
    }
    let all = "SELECT run_id || record || coalesce((SELECT group_concat(metric || '=' || \
               hex(iterations), ' ') FROM samples WHERE trial_id = trials.id), '') \
               FROM trials ORDER BY id";
    let mut statement = connection.prepare(all).ok()?;
    let lines = statement.query_map([], |row| row.get(0)).ok()?;
    lines.collect::<Result<Vec<String>, _>>().ok()
}

/// Returns whether these trials can belong to a single commit: all but the last one ended before
/// the next save was due. A commit that is under way at a kill is either complete or absent.
fn is_one_commit(lines: &[String]) -> bool {
    let ends_ns = |line: &String| {
        let record = &line[line.find('{').expect("a line contains a record")..];
        let mut values = serde_json::Deserializer::from_str(record).into_iter::<Value>();
        let record = values.next().unwrap().expect("a record is JSON");
        record["run_ns"].as_u64().expect("a trial has an end")
    };
    match lines {
        [first, .., last_but_one, _] => {
            Duration::from_nanos(ends_ns(last_but_one) - ends_ns(first)) < SAVE_INTERVAL
        }
        _ => true,
    }
}

/// Block, position and treatment of each trial of a run, in order.
type TrialList = Vec<(u32, u32, usize)>;

/// Returns the trial list of each run of a store, and whether the run is complete.
fn runs(bench: &Bench) -> Vec<(TrialList, bool)> {
    if kept(&bench.store()).is_none_or(|lines| lines.is_empty()) {
        // Opening a missing store would create it.
        return Vec::new();
    }
    let store = Store::open(&bench.store()).expect("a killed run leaves its store intact");
    let runs = store.runs().expect("the runs can be read");
    let of = |id| {
        let stored = store.load(id).expect("the run can be read");
        let trials = stored.trials.iter();
        let list = trials.map(|trial| (trial.block, trial.position, trial.treatment));
        (list.collect(), stored.run.status == RunStatus::Complete)
    };
    runs.into_iter().map(|(run, _)| of(run.id)).collect()
}

/// Returns whether there is a run to resume.
fn has_unfinished(bench: &Bench) -> bool {
    if !bench.store().exists() {
        return false;
    }
    let store = Store::open(&bench.store()).expect("a killed run leaves its store intact");
    let found = store.last_unfinished().expect("the runs can be read");
    found.is_some()
}

impl Storm<'_> {
    fn arguments(&self) -> Vec<&str> {
        if has_unfinished(self.bench) {
            [&["run", "--resume"], &QUIET[..]].concat()
        } else {
            [&["run", "--seed", "42"], &QUIET[..], self.run].concat()
        }
    }

    /// Kills starts of the run until there were enough kills, and compares the result with a run
    /// that was never killed.
    fn rage(&self) {
        let undisturbed = super::guest_commands::bench();
        if let Ok(experiment) = std::fs::read_to_string(self.bench.path("experiment.toml")) {
            undisturbed.write("experiment.toml", &experiment);
        }
        let begin = Instant::now();
        undisturbed.ok(&[&["run", "--seed", "42"], &QUIET[..], self.run].concat());
        let expected = &runs(&undisturbed)[0].0;
        assert!(expected.len() > 4, "{expected:?}");

        let settings = Settings::before(self.bench);
        let seed = seed();
        let mut rng = Rng::new(seed);
        let (mut kills, mut fell_into_trials) = (0, 0);
        // A slow machine needs enough time to make progress.
        let mut latest = self.latest.max(begin.elapsed() / 3);
        while kills < self.kills || fell_into_trials == 0 {
            assert!(kills < 10 * self.kills, "no kill hit a run with trials");
            let child = self.bench.spawnable(&self.arguments()).spawn().unwrap();
            let mut running = Running(child);
            let moment = rng.below(latest.as_micros() as usize) as u64;
            std::thread::sleep(Duration::from_micros(moment));
            // Half of the runs are stopped first, so that the content of the store just before the
            // kill can be read.
            let before = (kills % 2 == 0).then(|| {
                running.send(Signal::STOP);
                kept(&self.bench.store())
            });
            let earlier = before.flatten();
            match running.0.try_wait().unwrap() {
                None => {
                    kills += 1;
                    latest = latest.mul_f64(LATER);
                }
                Some(ended) => {
                    assert!(ended.success(), "seed {seed}: a start ended with {ended}");
                    latest = latest.mul_f64(SOONER);
                }
            }
            running.kill();
            wait_until("all processes of the run are gone", || {
                processes_marked(&self.bench.marker()).is_empty()
            });
            let after = kept(&self.bench.store()).expect("no process uses the store");
            if let Some(before) = earlier {
                let (same, new) = after.split_at(before.len());
                assert_eq!(same, before, "seed {seed}, kill {kills}");
                assert!(is_one_commit(new), "seed {seed}, kill {kills}: {new:?}");
                fell_into_trials += usize::from(!before.is_empty());
            }
        }
        self.end(expected, seed);
        settings.are_back();
    }

    /// Finishes the run that was killed last, and checks all runs.
    fn end(&self, expected: &[(u32, u32, usize)], seed: u64) {
        self.bench.ok(&self.arguments());
        for (trials, is_complete) in runs(self.bench) {
            assert!(is_complete, "seed {seed}: {trials:?}");
            assert_eq!(trials, expected, "seed {seed}");
        }
        // Clears what the last kill left if the run before it was already complete.
        self.bench.ok("doctor --restore");
    }
}

/// Chooses the seed that determines the moments of the kills; `TOLL_TEST_SEED` repeats a given one.
#[expect(clippy::print_stderr, reason = "the seed reproduces a failure")]
fn seed() -> u64 {
    let given = std::env::var("TOLL_TEST_SEED").ok();
    let seed = given.and_then(|text| text.parse().ok()).unwrap_or_else(|| {
        let mut bytes = [0_u8; 4];
        let flags = rustix::rand::GetRandomFlags::empty();
        rustix::rand::getrandom(&mut bytes, flags).expect("the kernel returns random bytes");
        u32::from_le_bytes(bytes).into()
    });
    eprintln!("TOLL_TEST_SEED={seed}");
    seed
}

#[test]
fn commands_are_killed_at_any_moment() {
    let storm = Storm {
        bench: &Bench::new(),
        run: &["-r", "20", "-L", "n=1,2,3", "true {n}"],
        kills: full_or(KILLS_OF_COMMANDS_IN_SHORT, KILLS_OF_COMMANDS),
        latest: Duration::from_millis(250),
    };
    storm.rage();
}

#[test]
fn commands_with_a_set_up_are_killed_in_it_and_in_the_clean_up() {
    let bench = Bench::new();
    let run = [
        "-r",
        "6",
        "-s",
        "sleep 0.05; touch {workdir}/made",
        "-p",
        "test -e {workdir}/made",
        "-c",
        "sleep 0.05; rm {workdir}/made",
        "cat {workdir}/made",
        "cat {workdir}/made {workdir}/made",
    ];
    let storm = Storm {
        bench: &bench,
        run: &run,
        kills: KILLS_AROUND_SIDE_COMMANDS,
        latest: Duration::from_millis(400),
    };
    storm.rage();
}

const COLD_FILES: &str = "
format = 1
name = 'cold-files'
require = ['fs != tmpfs or cache == warm']
[workload]
kind = 'copy'
source = 'file'
buffer = '64KiB'
size = '256KiB'
[[factor]]
name = 'cache'
levels = ['warm', 'cold']
[[factor]]
name = 'fs'
levels = ['work', 'ext4', 'xfs', 'btrfs', 'tmpfs']
";

#[test]
fn copies_on_file_systems_of_their_own_are_killed_while_those_are_made_and_used() {
    let bench = Bench::new();
    for kind in ["ext4", "xfs", "btrfs"] {
        let name = format!("file system {kind} on a loop device");
        if let Err(reason) = capability(&bench, &name) {
            skip(&format!("{kind}: {reason}"));
            return;
        }
    }
    bench.write("experiment.toml", COLD_FILES);
    let storm = Storm {
        bench: &bench,
        run: &["-r", "3", "experiment.toml"],
        kills: KILLS_ON_FILE_SYSTEMS,
        latest: Duration::from_millis(1200),
    };
    storm.rage();
}

const LIMITED: &str = "
format = 1
name = 'limited'
metric = 'duration_ns'
[workload]
kind = 'memory'
buffer = '8MiB'
order = 'random'
steps = 64
limit = '64MiB'
[[factor]]
name = 'pressure'
levels = ['none', 'competing']
[run]
iterations = 1
";

#[test]
fn runs_with_swap_and_control_groups_are_killed_while_those_are_made_and_used() {
    let bench = Bench::new();
    if let Err(reason) = capability(&bench, "limit on memory, with swap") {
        skip(&format!("a limit on memory: {reason}"));
        return;
    }
    bench.write("experiment.toml", LIMITED);
    let storm = Storm {
        bench: &bench,
        run: &["-r", "4", "experiment.toml"],
        kills: KILLS_UNDER_A_LIMIT,
        latest: Duration::from_millis(900),
    };
    storm.rage();
}

const IN_GUESTS: &str = "
format = 1
name = 'in-guests'
metric = 'minor_faults'
[workload]
kind = 'memory'
buffer = '4MiB'
steps = 64
addressing = 'corrected'
[guest]
memory = '96MiB'
accelerator = 'tcg'
[[factor]]
name = 'vcpus'
levels = [1, 2]
";

#[test]
fn runs_in_guests_are_killed_while_those_boot_and_work() {
    if kernel("toll").is_none() {
        return;
    }
    let bench = super::guest_commands::bench();
    bench.write("experiment.toml", IN_GUESTS);
    let storm = Storm {
        bench: &bench,
        run: &["-r", "2", "experiment.toml"],
        kills: KILLS_IN_GUESTS,
        latest: Duration::from_secs(6),
    };
    storm.rage();
}
