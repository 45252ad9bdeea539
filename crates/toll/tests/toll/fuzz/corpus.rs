//! Real inputs, which the targets mutate.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::OnceLock;

use toll_core::plan::Plan;
use toll_core::spec;
use toll_core::spec::Experiment;
use toll_core::spec::builtin::BUILTINS;
use toll_host::store::exchange::RunDocument;
use toll_host::store::{RunRecord, RunStatus, StoredRun, TrialRecord};
use toll_stats::Rng;

/// An experiment with every kind of statement that the built-in ones lack.
const COMMANDS: &str = "format = 1\nname = 'x'\n[workload]\nkind = 'command'\nsetup = 'true'\n\
    output = 'pipe'\n[workload.commands]\na = 'true {n}'\nb = 'echo {n} {m}'\n[[factor]]\nname = 'n'\n\
    levels = { from = '1k', to = '1M', times = 4 }\n[[factor]]\nname = 'm'\nlevels = [1, 2.5, 'x']\n\
    [metrics.speed]\npattern = 'speed ([0-9.]+)'\nunit = 'B/s'\nbetter = 'higher'\n\
    [profile.quick]\nrequire = ['n <= 4k or m == x']\n[run]\niterations = 2\ntime_budget = '5s'\n";

/// Returns all experiment files that come with the program, and one more.
pub fn experiments() -> Vec<&'static str> {
    let builtins = BUILTINS.iter().map(|builtin| builtin.toml);
    builtins.chain([COMMANDS]).collect()
}

/// Returns documents of runs: one that was measured, and one for each built-in experiment, with
/// random numbers.
pub fn documents() -> &'static [String] {
    static DOCUMENTS: OnceLock<Vec<String>> = OnceLock::new();
    DOCUMENTS.get_or_init(|| {
        let made_up = experiments().into_iter().filter_map(|toml| {
            let experiment =
                spec::parse(toml, "corpus", "quick").expect("our own experiment is valid");
            made_up(experiment, &mut Rng::new(3))
        });
        let texts = made_up.map(|stored| text(&stored));
        texts.chain([measured()]).collect()
    })
}

/// Returns a run as a document.
pub fn text(stored: &StoredRun) -> String {
    let document = RunDocument::new(stored.clone(), toll_core::claim::analyse(stored));
    serde_json::to_string(&document).expect("a document is plain data")
}

/// Measures a run with the program, and returns the exported document.
fn measured() -> String {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))
        .expect("a temporary directory can be made");
    let toll = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_toll"));
        for name in ["HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"] {
            command.env(name, directory.path());
        }
        command.env_remove("TOLL_STORE").env_remove("TOLL_WORK_DIR");
        let output = command.args(arguments).output().expect("toll starts");
        // The status is 1 because one of the commands fails on purpose.
        assert!(matches!(output.status.code(), Some(0 | 1)), "{output:#?}");
        String::from_utf8(output.stdout).expect("documents are UTF-8")
    };
    toll(&[
        "run",
        "-q",
        "--no-html",
        "-r",
        "4",
        "-L",
        "n=1,2",
        "true {n}",
        "sh -c 'exit {n}'",
    ]);
    toll(&["export", "last", "--json", "-"])
}

/// Makes a run of an experiment with the first levels of each factor and random numbers; `None` if
/// it cannot be planned or would take long to judge.
pub fn made_up(mut experiment: Experiment, rng: &mut Rng) -> Option<StoredRun> {
    const TREATMENTS_MAX: usize = 17;
    for factor in &mut experiment.factors {
        factor.levels.truncate(3);
    }
    let plan = Plan::new(&experiment, rng.next_u64()).ok()?;
    if plan.treatments.len() > TREATMENTS_MAX {
        return None;
    }
    let metrics = [
        experiment.metric.as_str(),
        "duration_ns",
        "user_ns",
        "bytes_copied",
    ];
    let mut trials = Vec::new();
    for block in 0..3 {
        for (position, treatment) in plan.block_order(block, None).into_iter().enumerate() {
            let samples: BTreeMap<String, Vec<f64>> = metrics
                .iter()
                .map(|name| ((*name).to_owned(), vec![1e6 * (1.0 + rng.uniform())]))
                .collect();
            trials.push(TrialRecord {
                block,
                position: u32::try_from(position).expect("plans are limited"),
                treatment,
                started_at: "2026-01-01T00:00:01Z".into(),
                wall_ns: 1_000_000,
                samples,
                disturbance: BTreeMap::from([("steal_ns".into(), 3.0)]),
                notes: vec!["a note".into()],
                ..TrialRecord::default()
            });
        }
    }
    let run = RunRecord {
        id: 1,
        uid: format!("{:016x}", rng.next_u64()),
        seed: plan.seed(),
        created_at: "2026-01-01T00:00:00Z".into(),
        status: RunStatus::Complete,
        stop_reason: Some("drawn".into()),
        ..RunRecord::from_experiment(&experiment)
    };
    Some(StoredRun {
        run,
        treatments: plan.treatments,
        experiment,
        trials,
        boots: Vec::new(),
        profiles: Vec::new(),
    })
}
