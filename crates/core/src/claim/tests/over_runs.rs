//! Combined evidence of runs of one experiment.

use super::*;
use model::{ClaimOverRuns, ErrorRate, OverRuns};
use toll_stats::Rng;

/// Blocks of a run with one claim: four decide nothing.
const BLOCKS: u32 = 4;

fn numbered(id: i64, mut stored: StoredRun) -> StoredRun {
    stored.run.id = id;
    stored.run.uid = format!("{id:016x}");
    stored
}

fn holds(id: i64) -> StoredRun {
    let toml = claim("holds", "o-sync", "none", "direction = 'greater'");
    numbered(id, run(&toml, BLOCKS, cost))
}

fn over(runs: &[&StoredRun]) -> OverRuns {
    let (last, earlier) = runs.split_last().unwrap();
    let mut multiplied = Multiplied::new(last);
    earlier.iter().for_each(|one| multiplied.add(one));
    multiplied.conclude()
}

#[test]
fn runs_decide_together_what_each_leaves_open() {
    let [first, second] = [1, 2].map(holds);
    let single = analyse(&first).verdicts.remove(0);
    assert_eq!(single.outcome, Outcome::Undecided);
    let evidence = single.e_values.unwrap();
    assert_eq!((evidence.inside, evidence.blocks), (4, 4));
    let alone = over(&[&first]);
    assert_eq!(alone.claims[0].outcome, Outcome::Undecided);
    assert_eq!(alone.claims[0].e_values, Some(evidence));
    let both = over(&[&first, &second]);
    assert_eq!((both.run, both.runs), (2, vec![1, 2]));
    let claim = &both.claims[0];
    assert_eq!(claim.outcome, Outcome::Supported);
    assert_eq!(claim.error_rate, Some(ErrorRate::FamilyWise));
    assert_eq!((claim.runs, claim.needed), (2, Some(20.0)));
    let product = claim.e_values.unwrap();
    assert_eq!((product.inside, product.blocks), (8, 8));
    assert!((product.log10_support - 2.0 * evidence.log10_support).abs() < 1e-12);
}

#[test]
fn a_run_is_multiplied_once_and_an_unfinished_one_as_far_as_it_came() {
    let mut first = holds(1);
    first.run.status = RunStatus::Unfinished;
    first.trials.truncate(first.trials.len() / 2);
    let last = holds(2);
    let both = over(&[&first, &last, &first, &last]);
    assert_eq!(both.runs, [1, 2]);
    assert_eq!(both.claims[0].e_values.unwrap().blocks, 6);
}

#[test]
fn runs_of_another_machine_kernel_or_workload_are_left_out_with_the_reason() {
    type Change = fn(&mut StoredRun);
    let changes: [(&str, Change); 11] = [
        ("the host differs", |it| it.run.machine.hostname.push('x')),
        ("the memory differs", |it| {
            it.run.machine.memory_bytes = 1 << 30
        }),
        ("the kernel release differs", |it| {
            it.run.machine.kernel_release = "7.0".into();
            it.run.machine.kernel_version = "#2".into();
        }),
        ("the microcode differs", |it| {
            it.run.machine.microcode = Some("0x1".into());
        }),
        ("the version of toll differs", |it| {
            it.run.toll_version = "9".into();
        }),
        ("the guest's kernel release differs", |it| {
            it.boots[0]
                .facts
                .insert("kernel release".into(), "7".into());
        }),
        ("the variable LD_PRELOAD differs", |it| {
            let variables = &mut it.run.variables;
            variables.insert("LD_PRELOAD".into(), "a.so".into());
        }),
        ("the workload (input) differs", |it| {
            it.experiment.workload.input = "2MiB".into();
        }),
        ("the workload (iterations) differs", |it| {
            it.experiment.run.iterations += 1;
        }),
        ("the set of treatments differs", |it| {
            it.treatments.pop();
        }),
        ("the definition of the claims differs", |it| {
            it.experiment.claims[0].margin = Some(0.5);
        }),
    ];
    let with_guest = |id| {
        let mut stored = holds(id);
        let facts = ["kernel release", "clock read, ns"].map(|name| (name.into(), id.to_string()));
        stored.boots = vec![BootRecord {
            accelerator: Some("kvm".into()),
            facts: BTreeMap::from(facts),
            ..BootRecord::default()
        }];
        stored.boots[0]
            .facts
            .insert("kernel release".into(), "6".into());
        stored
    };
    let last = with_guest(2);
    for (reason, change) in changes {
        let mut first = with_guest(1);
        assert_eq!(over(&[&first, &last]).runs, [1, 2]);
        change(&mut first);
        let found = over(&[&first, &last]);
        assert_eq!(found.runs, [2], "{reason}");
        let excluded = &found.excluded[0];
        assert_eq!(
            (excluded.reason.as_str(), &excluded.runs[..]),
            (reason, &[1][..])
        );
    }
}

#[test]
fn limits_of_a_run_and_what_is_read_anew_each_time_are_no_difference() {
    let (mut first, last) = (holds(1), holds(2));
    let machine = &mut first.run.machine;
    (machine.clock_read_ns, machine.swap_bytes) = (30.0, 1 << 30);
    let settings = &mut first.experiment.run;
    (settings.max_blocks, settings.time_budget_s) = (77, 1.0);
    first.treatments[0].skipped = Some("not here".into());
    assert_eq!(over(&[&first, &last]).runs, [1, 2]);
}

#[test]
fn quantities_with_a_value_in_each_block_have_evidence_and_checks_have_none() {
    let derived = |id: &str, rest: &str| {
        format!(
            "[[derived]]\nid = '{id}'\ntext = 'x'\nfactor = 'buffer'\nmetric = 'duration_ns'\n{rest}\n\
             [[claim]]\nid = 'c{id}'\ntext = 'x'\nderived = '{id}'\ndirection = 'greater'\n\
             threshold = 0.01\n"
        )
    };
    let at = "at = { durability = 'none' }";
    let of_to = "of = { durability = 'none' }\nto = { durability = 'o-sync' }";
    let toml = derived(
        "a",
        &format!("kind = 'acceleration'\nlevel = '4KiB'\n{of_to}"),
    ) + &derived("b", &format!("kind = 'cost-per-call'\n{at}"))
        + &derived(
            "c",
            &format!("kind = 'quotient'\nper = 'calls'\nlevel = '4KiB'\n{at}"),
        )
        + &derived("d", &format!("kind = 'spread'\n{at}"))
        + &derived("e", &format!("kind = 'knee'\n{at}"))
        + &derived("f", &format!("kind = 'crossing'\n{of_to}"))
        + &claim("g", "o-sync", "none", "direction = 'greater'\ncheck = true");
    let analysis = analyse(&run(&toml, 8, cost));
    let evidence = |verdict: &Verdict| verdict.e_values.map(|one| (one.inside, one.blocks));
    let found: Vec<_> = analysis.verdicts.iter().map(evidence).collect();
    let all = Some((8, 8));
    assert_eq!(found, [all, all, all, None, None, None]);
    assert_eq!(analysis.checks[0].e_values, None);
    let over = over(&[&numbered(1, run(&toml, 8, cost))]);
    assert_eq!(over.claims[3].outcome, Outcome::NotTestable);
    assert_eq!(over.claims[3].needed, None);
}

/// A claim: side, buffer, what it says, the true ratio, and the wrong verdict.
type Known = (&'static str, &'static str, &'static str, f64, Outcome);

/// The first four truths lie on a border.
const CLAIMS: [Known; 8] = [
    (
        "fsync",
        "4KiB",
        "direction = 'greater'",
        1.01,
        Outcome::Supported,
    ),
    (
        "fsync",
        "16KiB",
        "direction = 'less'",
        1.0 / 1.01,
        Outcome::Supported,
    ),
    (
        "fsync",
        "64KiB",
        "direction = 'equal'\nmargin = '10%'",
        1.1,
        Outcome::Refuted,
    ),
    (
        "fsync",
        "256KiB",
        "between = [1.2, 1.5]",
        1.2,
        Outcome::Refuted,
    ),
    (
        "o-sync",
        "4KiB",
        "direction = 'greater'",
        1.06,
        Outcome::Refuted,
    ),
    (
        "o-sync",
        "16KiB",
        "direction = 'less'",
        1.03,
        Outcome::Supported,
    ),
    (
        "o-sync",
        "64KiB",
        "direction = 'equal'\nmargin = '10%'",
        1.0,
        Outcome::Refuted,
    ),
    (
        "o-sync",
        "256KiB",
        "between = [1.2, 1.5]",
        1.8,
        Outcome::Supported,
    ),
];

/// Runs an experiment again until each claim is decided over the runs, at most six times.
fn until_decided(planned: &StoredRun, claims: &[Known], rng: &mut Rng) -> OverRuns {
    const RUNS_MAX: i64 = 6;
    let truth = |treatment: &plan::Treatment| {
        let at = |name: &str| treatment.levels[name].text.as_str();
        let here = (at("durability"), at("buffer"));
        let own = |(durability, buffer, ..): &&Known| (*durability, *buffer) == here;
        claims.iter().find(own).map(|(.., ratio, _)| *ratio)
    };
    let is_needed = |treatment: &&plan::Treatment| {
        let buffer = treatment.levels["buffer"].text.as_str();
        claims.iter().any(|(_, of_claim, ..)| *of_claim == buffer)
    };
    // Skewed, with a median of 1.
    let noise = |rng: &mut Rng| 1.0 + 0.05 * (-rng.uniform().ln() - std::f64::consts::LN_2);
    let mut measured = |id: i64| {
        let mut stored = numbered(id, planned.clone());
        for block in 0..5 + rng.below(4) as u32 {
            for treatment in planned.treatments.iter().filter(|one| is_needed(one)) {
                let ratio = truth(treatment).map_or(1.0, |ratio| ratio * noise(rng));
                stored.trials.push(TrialRecord {
                    block,
                    treatment: treatment.index,
                    samples: BTreeMap::from([("duration_ns".to_owned(), vec![1e6 * ratio])]),
                    ..TrialRecord::default()
                });
            }
        }
        stored
    };
    let first = measured(1);
    let mut multiplied = Multiplied::new(&first);
    for id in 2..=RUNS_MAX {
        let mut claims = multiplied.clone().conclude().claims.into_iter();
        if claims.all(|one| one.outcome != Outcome::Undecided) {
            break;
        }
        multiplied.add(&measured(id));
    }
    multiplied.conclude()
}

/// Average results of experiments with some claims.
#[derive(Debug)]
struct Shares {
    /// Share of the verdicts that are wrong.
    wrong: f64,
    /// Share of the experiments with a wrong verdict that is family-wise.
    any_wrong: f64,
    /// Number of claims with a verdict.
    decided: f64,
}

fn simulate(claims: &[Known]) -> Shares {
    const FAMILIES: u32 = 400;
    let toml = claims.iter().map(|(durability, buffer, says, ..)| {
        let text = claim("NAME", durability, "none", says).replace("4KiB", buffer);
        text.replace("NAME", &format!("{durability}.{buffer}"))
    });
    let planned = run(&toml.collect::<String>(), 0, cost);
    let mut rng = Rng::new(7);
    let (mut wrong, mut any_wrong, mut decided) = (0.0, 0.0, 0.0);
    for _ in 0..FAMILIES {
        let found = until_decided(&planned, claims, &mut rng);
        let verdicts = found.claims.iter().zip(claims);
        let verdicts: Vec<_> = verdicts
            .filter(|(one, _)| one.outcome != Outcome::Undecided)
            .collect();
        let are_wrong = verdicts
            .iter()
            .filter(|(one, known)| one.outcome == known.4);
        let are_wrong: Vec<_> = are_wrong.collect();
        let guarded =
            |(one, _): &&(&ClaimOverRuns, _)| one.error_rate == Some(ErrorRate::FamilyWise);
        wrong += are_wrong.len() as f64 / verdicts.len().max(1) as f64;
        any_wrong += f64::from(u8::from(are_wrong.into_iter().any(|one| guarded(&one))));
        decided += verdicts.len() as f64;
    }
    let of_families = |sum: f64| sum / f64::from(FAMILIES);
    Shares {
        wrong: of_families(wrong),
        any_wrong: of_families(any_wrong),
        decided: of_families(decided),
    }
}

#[test]
fn whoever_runs_again_until_all_is_decided_has_few_wrong_verdicts() {
    let all = simulate(&CLAIMS);
    assert!(all.wrong <= 0.05 && all.any_wrong <= 0.05, "{all:?}");
    assert!(all.decided > 3.9, "those with an effect: {all:?}");
    // A claim alone has the whole error rate.
    let alone = [0, 1, 2, 3].map(|place| simulate(&CLAIMS[place..=place]));
    assert!(alone.iter().all(|one| one.wrong <= 0.05), "{alone:?}");
    assert!(alone[0].wrong > 0.01, "{alone:?}");
}
