mod differences;

use toll_stats::Rng;

use super::model::{FactRole, PoolingScale};
use super::*;
use crate::claim::model::ClaimDirection;
use crate::spec::FACTS;

fn estimate(value: f64, low: f64, high: f64) -> Estimate {
    Estimate {
        value,
        low,
        high,
        confidence: 0.95,
    }
}

fn verdict(outcome: Outcome, measured: Option<Estimate>) -> FleetVerdict {
    FleetVerdict {
        claim: "cat.align".to_owned(),
        text: "aligned buffers are faster".to_owned(),
        report: None,
        quantity: "duration".to_owned(),
        unit: String::new(),
        differ_by: None,
        outcome,
        measured,
        direction: ClaimDirection::Less,
        threshold: 1.0,
    }
}

fn machine(id: usize, facts: &[(&str, &str)], verdict: FleetVerdict) -> FleetMachine {
    let facts = facts.iter();
    FleetMachine {
        id: format!("host{id}"),
        facts: facts
            .map(|(name, level)| ((*name).to_owned(), (*level).to_owned()))
            .collect(),
        verdicts: vec![verdict],
        platforms: Vec::new(),
    }
}

/// A ratio known to a hundredth.
fn ratio(value: f64) -> Estimate {
    estimate(value, value / 1.01, value * 1.01)
}

/// Ratios near one another, in some order.
fn near(value: f64, index: usize) -> f64 {
    value * (1.0 + (index * 7 % 10) as f64 / 100.0)
}

fn role(claim: &FleetClaim, name: &str) -> (FactRole, Option<String>) {
    let fact = claim.facts.iter().find(|fact| fact.name == name);
    let fact = fact.expect("the fact is listed");
    (fact.role, fact.with.clone())
}

#[test]
fn outcomes_are_counted_and_told() {
    let outcomes = [
        Outcome::Supported,
        Outcome::Supported,
        Outcome::Refuted,
        Outcome::Undecided,
        Outcome::NotTestable,
    ];
    let machines: Vec<FleetMachine> = outcomes
        .iter()
        .enumerate()
        .map(|(id, outcome)| machine(id, &[], verdict(*outcome, None)))
        .collect();
    let report = report(&machines);
    let claim = &report.claims[0];
    assert_eq!(claim.counts.total(), 5);
    assert_eq!(
        claim.sentence,
        "holds on 2 of 5 machines, refuted on 1, undecided on 1, not testable on 1"
    );
    assert_eq!(claim.pooled, None);
    assert_eq!(claim.machines[2].machine, "host2");
}

#[test]
fn ratios_are_pooled_as_logarithms_and_other_values_as_they_are() {
    let of = |unit: &str| {
        let machines = [0.5, 1.0, 2.0].into_iter().enumerate().map(|(id, value)| {
            let mut verdict = verdict(Outcome::Supported, Some(ratio(value)));
            verdict.unit = unit.to_owned();
            machine(id, &[], verdict)
        });
        let report = report(&machines.collect::<Vec<_>>());
        report.claims[0]
            .pooled
            .clone()
            .expect("three can be pooled")
    };
    let ratios = of("");
    assert_eq!(ratios.scale, PoolingScale::Logarithmic);
    assert!((ratios.mean.value - 1.0).abs() < 1e-9, "{ratios:?}");
    assert!((ratios.between_deviation - 2.0_f64.ln()).abs() < 1e-3);
    assert!(ratios.prediction.low < ratios.mean.low && ratios.mean.low > 0.0);
    let times = of("ns");
    assert_eq!(times.scale, PoolingScale::Linear);
    assert!((times.mean.value - 3.5 / 3.0).abs() < 0.01, "{times:?}");
}

#[test]
fn an_interval_without_an_end_is_not_pooled() {
    let ends = [1.1, 1.2, f64::INFINITY, 1.4];
    let machines = ends.into_iter().enumerate().map(|(id, high)| {
        let measured = estimate(1.05, 1.0, high);
        machine(id, &[], verdict(Outcome::Undecided, Some(measured)))
    });
    let report = report(&machines.collect::<Vec<_>>());
    let pooled = report.claims[0].pooled.as_ref().expect("three are left");
    assert_eq!(pooled.machines, 3);
}

#[test]
fn different_quantities_are_different_claims() {
    let mut other = verdict(Outcome::Refuted, None);
    other.quantity = "cpu".to_owned();
    let mut machine = machine(0, &[], verdict(Outcome::Supported, None));
    machine.verdicts.push(other);
    let report = report(&[machine]);
    let quantities: Vec<&str> = report.claims.iter().map(|c| c.quantity.as_str()).collect();
    assert_eq!(quantities, ["cpu", "duration"]);
}

#[test]
fn a_fact_that_explains_is_named_with_those_confounded_with_it() {
    let machines: Vec<FleetMachine> = (0..24)
        .map(|id| {
            let is_zfs = id < 8;
            let facts = [
                (
                    "CPU family",
                    if id % 2 == 0 {
                        "AMD EPYC"
                    } else {
                        "Intel Xeon"
                    },
                ),
                ("file system", if is_zfs { "zfs" } else { "ext4" }),
                // Finer, but no level is on both file systems.
                ("kernel", ["6.8", "6.1", "6.12"][id / 8]),
                (
                    "operating system",
                    if id == 3 { "Alpine" } else { "Debian 12" },
                ),
            ];
            let outcome = if is_zfs {
                Outcome::Refuted
            } else {
                Outcome::Supported
            };
            let value = near(if is_zfs { 1.5 } else { 0.7 }, id);
            machine(id, &facts, verdict(outcome, Some(ratio(value))))
        })
        .collect();
    let report = report(&machines);
    let claim = &report.claims[0];
    assert_eq!(role(claim, "file system"), (FactRole::Explains, None));
    let confounded = (FactRole::Confounded, Some("file system".to_owned()));
    assert_eq!(role(claim, "kernel"), confounded);
    assert_eq!(role(claim, "CPU family"), (FactRole::NoDifference, None));
    assert_eq!(role(claim, "operating system"), (FactRole::NotTested, None));
    assert_eq!(
        claim.sentence,
        "holds on 16 of 24 machines, refuted on 8; \
         differs by file system (confounded with kernel), not by CPU family"
    );
    let fact = claim.facts.iter().find(|fact| fact.name == "file system");
    let levels = &fact.expect("it is listed").levels;
    assert_eq!(
        (levels[0].level.as_str(), levels[0].supported),
        ("ext4", 16)
    );
    let zfs = levels[1].mean.expect("eight can be pooled");
    assert!(zfs.low > 1.4 && zfs.high < 1.7, "{zfs:?}");
}

#[test]
fn two_facts_may_explain_each_its_part_and_a_third_go_along() {
    let machines: Vec<FleetMachine> = (0..40)
        .map(|id| {
            let (is_zfs, is_guest) = (id % 2 == 0, id % 4 < 2);
            // The same as `is_guest` except for one machine in five, and without effect.
            let is_mitigated = is_guest != (id % 5 == 4);
            let facts = [
                ("file system", if is_zfs { "zfs" } else { "ext4" }),
                ("virtualization", if is_guest { "KVM" } else { "none" }),
                ("mitigations", if is_mitigated { "on" } else { "off" }),
            ];
            let value = if is_zfs { 2.0 } else { 1.0 } * if is_guest { 1.5 } else { 1.0 };
            let value = near(value, id / 4);
            machine(id, &facts, verdict(Outcome::Supported, Some(ratio(value))))
        })
        .collect();
    let report = report(&machines);
    let claim = &report.claims[0];
    assert_eq!(role(claim, "file system").0, FactRole::Explains);
    assert_eq!(
        role(claim, "virtualization").0,
        FactRole::Explains,
        "{claim:#?}"
    );
    assert_ne!(role(claim, "mitigations").0, FactRole::Explains);
}

#[test]
fn an_outlying_machine_is_named() {
    let machines: Vec<FleetMachine> = (0..20)
        .map(|id| {
            let value = near(if id == 7 { 9.0 } else { 0.5 }, id);
            machine(id, &[], verdict(Outcome::Supported, Some(ratio(value))))
        })
        .collect();
    let report = report(&machines);
    let claim = &report.claims[0];
    assert_eq!(
        claim.pooled.as_ref().expect("it is pooled").outlying,
        ["host7"]
    );
    let outlying = claim.machines.iter().filter(|one| one.is_outlying);
    assert_eq!(outlying.count(), 1);
}

/// Machines whose facts are independent of each other. Those with the second file system
/// differ by `effect` standard deviations, one in ten is outlying, and errors differ up to
/// ninefold.
fn fleet(rng: &mut Rng, count: usize, effect: f64) -> Vec<FleetMachine> {
    const LEVELS: [&str; 3] = ["a", "b", "c"];
    let mut levels = FACTS.map(|name| {
        let kinds = if name == "kernel" || name == "operating system" {
            3
        } else {
            2
        };
        (0..count).map(|id| id % kinds).collect::<Vec<usize>>()
    });
    for of_fact in &mut levels {
        rng.shuffle(of_fact);
    }
    let one = |id: usize| {
        let error = 0.01 * 9.0_f64.powf(rng.uniform());
        let outlying = match rng.below(20) {
            0 => 0.6,
            1 => -0.6,
            _ => 0.0,
        };
        let own = 0.1 * (rng.normal() + effect * levels[2][id] as f64);
        let value = own + outlying + error * rng.normal();
        let half = 1.96 * error;
        let measured = estimate(value, value - half, value + half);
        let measured = Estimate {
            value: measured.value.exp(),
            low: measured.low.exp(),
            high: measured.high.exp(),
            confidence: 0.95,
        };
        let facts: Vec<(&str, &str)> = FACTS
            .iter()
            .zip(&levels)
            .map(|(name, of_fact)| (*name, LEVELS[of_fact[id]]))
            .collect();
        machine(id, &facts, verdict(Outcome::Supported, Some(measured)))
    };
    (0..count).map(one).collect()
}

/// Returns in how many fleets the file system explains, and in how many something else does.
fn explained(runs: usize, count: usize, effect: f64) -> (usize, usize) {
    let mut rng = Rng::new(count as u64);
    let mut found = (0, 0);
    for _ in 0..runs {
        let report = report(&fleet(&mut rng, count, effect));
        let facts = &report.claims[0].facts;
        let explaining = facts.iter().filter(|fact| fact.role == FactRole::Explains);
        let names: Vec<&str> = explaining.map(|fact| fact.name.as_str()).collect();
        found.0 += usize::from(names.contains(&"file system"));
        found.1 += usize::from(names.iter().any(|name| *name != "file system"));
    }
    found
}

#[test]
fn a_planted_fact_is_found_and_none_where_there_is_none() {
    const RUNS: usize = 30;
    for (machines, effect) in [(20, 6.0), (40, 4.0)] {
        // 5 % err, plus three standard deviations of a binomial.
        let most = 0.05 * RUNS as f64 + 3.0 * (RUNS as f64 * 0.05 * 0.95).sqrt();
        let (found, wrong) = explained(RUNS, machines, effect);
        assert!((RUNS - found) as f64 <= most, "{machines}: {found} found");
        assert!(wrong as f64 <= most, "{machines}: {wrong} wrong");
        let (found, wrong) = explained(RUNS, machines, 0.0);
        assert!(
            (found + wrong) as f64 <= most,
            "{machines}: {found}, {wrong}"
        );
    }
}
