//! The built-in experiments can be read, planned, judged and run.

use std::collections::BTreeSet;

use toll_core::claim::analyse;
use toll_core::claim::model::{Analysis, Outcome};
use toll_core::plan::Plan;
use toll_core::spec::builtin;
use toll_core::spec::{DerivedKind, Experiment, Test, parse};
use toll_host::store::{RunRecord, RunStatus, StoredRun, TrialRecord};
use toll_testing::{Bench, list, source_tree};

const PROFILES: [&str; 3] = ["quick", "standard", "full"];

/// Published claims that must not get lost.
const CLAIMS: &[&str] = &[
    "cat.foreign-fs",
    "cat.byte",
    "cat.align",
    "cat.fs-block",
    "cat.swept",
    "cat.knee",
    "cat.fadvise",
    "write.sync-cost",
    "write.buffer-threshold",
    "write.fs-order",
    "write.old-kernel",
    "mem.read-write-mix",
    "mem.l1-random",
    "mem.tlb-random",
    "mem.time-random",
    "mem.footprint",
    "mem.shared-writes",
    "mem.populate",
    "mem.msync",
    "primes.kernel-faster",
    "primes.floor",
    "primes.converge",
    "primes.rng",
    "primes.copy",
    "mem.pressure",
    "mem.no-lru",
    "versions.write",
];

fn experiments(profile: &str) -> Vec<Experiment> {
    let read = |builtin: &builtin::Builtin| {
        parse(builtin.toml, builtin.name, profile).unwrap_or_else(|error| panic!("{error}"))
    };
    builtin::with_names().map(read).collect()
}

#[test]
fn every_experiment_can_be_planned_in_every_profile() {
    for profile in PROFILES {
        for experiment in experiments(profile) {
            let plan = Plan::new(&experiment, 1)
                .unwrap_or_else(|error| panic!("{} {profile}: {error}", experiment.name));
            assert!(plan.treatments.len() > 2, "{} {profile}", experiment.name);
            assert!(
                plan.treatments.iter().any(|t| t.twin_of.is_some()),
                "{profile}: it has no A/A twin"
            );
            assert!(!experiment.question.is_empty(), "{}", experiment.name);
        }
    }
}

#[test]
fn every_published_claim_is_judged_somewhere() {
    let known: BTreeSet<String> = experiments("full")
        .into_iter()
        .flat_map(|experiment| experiment.claims)
        .map(|claim| claim.id)
        .collect();
    for claim in CLAIMS {
        assert!(known.contains(*claim), "{claim} is missing");
    }
}

#[test]
fn a_corrected_claim_stands_beside_the_published_one() {
    for experiment in experiments("full") {
        let ids: BTreeSet<&String> = experiment.claims.iter().map(|claim| &claim.id).collect();
        assert_eq!(ids.len(), experiment.claims.len(), "an id is given twice");
        for claim in &experiment.claims {
            let Some(original) = &claim.corrects else {
                continue;
            };
            assert!(
                ids.contains(original),
                "{} corrects {original}, which is missing",
                claim.id
            );
        }
    }
}

#[test]
fn examples_and_benchmarks_can_be_read_in_every_profile() {
    let places = ["experiments/examples", "bench"].map(|place| source_tree().join(place));
    let files = places.iter().flat_map(std::fs::read_dir).flatten();
    let mut read = 0;
    for path in files.map(|entry| entry.unwrap().path()) {
        if path.ends_with("Cargo.toml") {
            continue;
        }
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        for profile in PROFILES {
            let origin = path.display().to_string();
            let experiment =
                parse(&text, &origin, profile).unwrap_or_else(|error| panic!("{error}"));
            Plan::new(&experiment, 1).unwrap_or_else(|error| panic!("{origin}: {error}"));
        }
        read += 1;
    }
    assert!(read > 6, "only {read} examples and benchmarks");
}

/// Returns every metric that an experiment mentions.
fn metrics(experiment: &Experiment) -> BTreeSet<String> {
    // A cost model also needs the numbers of calls and bytes.
    let counts = [
        "calls",
        "bytes_copied",
        "bytes_written",
        "bytes_transferred",
    ]
    .map(str::to_owned);
    let mut metrics = BTreeSet::from(counts);
    metrics.insert(experiment.metric.clone());
    for claim in &experiment.claims {
        if let Test::Ratio(contrast) = claim.test() {
            metrics.insert(contrast.metric.to_owned());
        }
    }
    metrics.extend(
        experiment
            .derived
            .iter()
            .map(|derived| derived.metric.clone()),
    );
    for derived in &experiment.derived {
        if let DerivedKind::Quotient { per, .. } = &derived.kind {
            metrics.insert(per.clone());
        }
    }
    for group in experiment.tables.iter().flat_map(|table| &table.quantities) {
        metrics.insert(group.metric.clone());
        metrics.extend(group.per.clone());
    }
    metrics.extend(
        experiment
            .figures
            .iter()
            .map(|figure| figure.metric.clone()),
    );
    metrics.extend(experiment.advice.iter().map(|advice| advice.metric.clone()));
    metrics
}

/// Analyses an experiment as if every treatment had run on a machine that lacks nothing.
fn as_if_all_ran(experiment: &Experiment) -> Analysis {
    const BLOCKS: u32 = 8;
    let plan = Plan::new(experiment, 1).unwrap();
    let metrics = metrics(experiment);
    let trial = |block: u32, treatment: usize| {
        let number = |name: &str| plan.treatments[treatment].levels.get(name)?.number;
        let bytes = number("input").or(number("size")).unwrap_or(1e6);
        let calls = (bytes / number("buffer").unwrap_or(4096.0)).ceil();
        // The cost model that some derived quantities fit, with a price for each call and byte.
        // Other treatments of the same work differ slightly.
        let cost = 1000.0 * calls + 0.1 * bytes + treatment as f64 + f64::from(block);
        let value = |metric: &str| match metric {
            "calls" => calls,
            "bytes_copied" | "bytes_written" => bytes,
            _ => cost,
        };
        TrialRecord {
            block,
            treatment,
            samples: metrics
                .iter()
                .map(|metric| (metric.clone(), vec![value(metric)]))
                .collect(),
            ..TrialRecord::default()
        }
    };
    let treatments = 0..plan.treatments.len();
    let trials = (0..BLOCKS).flat_map(|block| treatments.clone().map(move |t| (block, t)));
    analyse(&StoredRun {
        run: RunRecord {
            status: RunStatus::Complete,
            ..RunRecord::from_experiment(experiment)
        },
        experiment: experiment.clone(),
        treatments: plan.treatments.clone(),
        trials: trials
            .map(|(block, treatment)| trial(block, treatment))
            .collect(),
        boots: Vec::new(),
        profiles: Vec::new(),
    })
}

#[test]
fn in_the_full_profile_every_selector_finds_its_treatment() {
    for experiment in experiments("full") {
        let analysis = as_if_all_ran(&experiment);
        let never = |id: &str| {
            let claim = experiment.claims.iter().find(|claim| claim.id == id);
            claim.is_some_and(|claim| matches!(claim.test(), Test::Never(_)))
        };
        let over_machines = |id: &str| {
            let mut claims = experiment.claims.iter();
            claims.any(|claim| claim.id == id && claim.differ_by.is_some())
        };
        for verdict in analysis.verdicts.iter().chain(&analysis.checks) {
            let has_value = if over_machines(&verdict.id) {
                verdict.measured.is_some()
            } else {
                verdict.outcome != Outcome::NotTestable
            };
            assert_eq!(
                has_value,
                !never(&verdict.id),
                "{}: {}",
                verdict.id,
                verdict.reason
            );
        }
        for derived in &analysis.derived {
            assert!(
                derived.estimate.is_some(),
                "{}: {:?}",
                derived.id,
                derived.note
            );
        }
        assert_eq!(analysis.tables.len(), experiment.tables.len());
        for (table, spec) in analysis.tables.iter().zip(&experiment.tables) {
            let rows = table.groups.iter().flat_map(|group| &group.rows);
            let row_specs = spec.quantities.iter().flat_map(|group| &group.rows);
            for (row, row_spec) in rows.zip(row_specs) {
                let expected = !row_spec.at.is_empty();
                assert_eq!(
                    row.measured.is_some(),
                    expected,
                    "{}: {:?}",
                    row.printed.label,
                    row.missing
                );
            }
        }
        // An experiment that asks for no figures gets those that fit.
        assert!(
            analysis.figures.len() == experiment.figures.len() || experiment.figures.is_empty(),
            "{}",
            experiment.name
        );
        assert!(
            analysis.advice.len() >= experiment.advice.len(),
            "{}",
            experiment.name
        );
        for twin in &analysis.twins {
            assert!(twin.ratio.reach().is_finite());
        }
        assert_eq!(
            analysis.twins.len(),
            experiment.twins.len().max(1),
            "{}",
            experiment.name
        );
    }
}

#[test]
fn a_profile_tests_some_claims_and_says_why_not_the_others() {
    for profile in ["quick", "standard"] {
        for experiment in experiments(profile) {
            let analysis = as_if_all_ran(&experiment);
            let (tested, not): (Vec<_>, Vec<_>) = analysis
                .verdicts
                .iter()
                .partition(|v| v.outcome != Outcome::NotTestable);
            // A price list has rows, but no claims.
            let is_list = !experiment.rows.is_empty() && !analysis.prices.is_empty();
            assert!(
                is_list || !tested.is_empty(),
                "{} {profile}",
                experiment.name
            );
            assert!(not.iter().all(|verdict| !verdict.reason.is_empty()));
        }
    }
}

/// Runs a built-in experiment with levels that take almost no time.
fn tiny(name: &str, levels: &[&str]) {
    let bench = Bench::new();
    let mut arguments = vec![
        "run",
        name,
        "--profile",
        "quick",
        "-q",
        "--json",
        "-r",
        "2",
        "--html",
        "page.html",
    ];
    arguments.extend(levels.iter().flat_map(|levels| ["-L", levels]));
    let run = bench.json(&arguments)["runs"][0].clone();
    let trials = list(&run["trials"]);
    let ran: Vec<_> = trials
        .iter()
        .filter(|trial| trial["state"] == "completed")
        .collect();
    for trial in trials {
        let state = trial["state"].as_str().unwrap();
        // On a small file GNU cat may take no longer than on none, which is not a measurement.
        // Such a trial is excluded and says so.
        let expected = ["completed", "unsupported", "excluded"];
        assert!(expected.contains(&state), "{trial:#}");
    }
    assert!(
        ran.len() * 2 > trials.len(),
        "too few of {} trials ran: {}",
        trials.len(),
        ran.len()
    );
    let metric = run["analysis"]["primary_metric"].as_str().unwrap();
    for treatment in list(&run["analysis"]["treatments"]) {
        let value = &treatment["estimates"][metric]["median"]["value"];
        let is_positive = value.as_f64().is_some_and(|value| value > 0.0);
        let is_excluded = treatment["trials_completed"] == 0
            && treatment["trials_excluded"] != 0
            && !treatment["first_failure"].is_null();
        assert!(
            is_positive || is_excluded || !treatment["skipped"].is_null(),
            "{treatment:#}"
        );
    }
    assert!(list(&run["analysis"]["verdicts"]).len() > 1);
    assert!(bench.read("page.html").contains("</html>"));
    assert_eq!(bench.leftovers(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn experiments_run_on_what_is_here() {
    for (name, levels) in [
        ("cat", &["size=4KiB,16MiB", "fs=work"][..]),
        ("sweep", &["size=256KiB"]),
        ("transfer", &["size=4,577,1502860"]),
        (
            "write",
            &["input=128KiB", "buffer=4KiB,64KiB,128KiB", "fs=work"],
        ),
        ("mem", &["buffer=16MiB", "steps=64"]),
        ("chase", &["size=4KiB,16KiB,64KiB,1MiB", "accesses=1000"]),
        (
            "userfs",
            &[
                "fs=work,userfs-writeback,userfs-sftp,sshfs",
                "operation=read-sequential,write-sequential,create",
                "size=256KiB",
                "count=30",
            ],
        ),
    ] {
        tiny(name, levels);
    }
}

#[test]
fn kernels_of_other_suites_are_booted_only_if_they_are_asked_for() {
    let bench = Bench::new();
    let listed = bench.ok("list").stdout;
    assert!(listed.contains("  versions "), "{listed}");
    let named = bench.ok("run versions --profile quick --dry-run").stdout;
    assert!(named.contains("kernel=bullseye"), "{named}");
    let all = bench.ok("run --profile quick --dry-run").stdout;
    assert!(all.contains("reclaim"), "{all}");
    assert!(!all.contains("bullseye"), "{all}");
}
