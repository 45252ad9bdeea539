//! Claims on how machines differ.

use super::*;
use crate::fleet::model::FleetDifference;
use crate::spec::{builtin, parse};

/// Machines with the claim that they differ at least twofold by a fact.
fn machines<'a>(
    differ_by: &str,
    direction: ClaimDirection,
    all: impl IntoIterator<Item = (f64, Vec<(&'a str, &'a str)>)>,
) -> Vec<FleetMachine> {
    let verdict = |value| FleetVerdict {
        claim: "write.fs-order".to_owned(),
        unit: "ns".to_owned(),
        differ_by: Some(differ_by.to_owned()),
        direction,
        threshold: 2.0,
        ..verdict(Outcome::NotTestable, Some(ratio(value)))
    };
    let all = all.into_iter().enumerate();
    all.map(|(id, (value, facts))| machine(id, &facts, verdict(value)))
        .collect()
}

fn judged(machines: &[FleetMachine]) -> (FleetDifference, String) {
    let claim = report(machines).claims.remove(0);
    let difference = claim.difference.expect("it is a claim on differences");
    (difference, claim.sentence)
}

/// Machines with two file systems, `each` of one kind, whose values differ by a factor.
fn of_file_systems(each: usize, factor: f64) -> Vec<FleetMachine> {
    let one = |id: usize| {
        let (kernel, is_zfs) = (["6.1", "6.8"][id % 2], id < each);
        let value = near(if is_zfs { factor } else { 1.0 }, id);
        let file_system = if is_zfs { "zfs" } else { "ext4" };
        (
            value,
            vec![("file system", file_system), ("kernel", kernel)],
        )
    };
    machines(
        "file system",
        ClaimDirection::Greater,
        (0..2 * each).map(one),
    )
}

#[test]
fn file_systems_that_differ_by_more_than_the_factor_support_a_claim() {
    let (found, sentence) = judged(&of_file_systems(8, 5.0));
    assert_eq!(found.outcome, Outcome::Supported, "{sentence}");
    let levels = found.levels.expect("two are compared");
    assert_eq!((levels.of.as_str(), levels.to.as_str()), ("zfs", "ext4"));
    assert!(levels.ratio.low > 4.0 && levels.ratio.high < 6.0);
    assert!(
        sentence.starts_with("supported: zfs over ext4 is 5.0")
            && sentence.ends_with(", beyond the claimed 2"),
        "{sentence}"
    );
    // Either may be the slower one.
    let (found, sentence) = judged(&of_file_systems(8, 0.2));
    assert_eq!(found.outcome, Outcome::Supported, "{sentence}");
    assert_eq!(found.levels.map(|one| one.of).as_deref(), Some("ext4"));
}

#[test]
fn file_systems_that_differ_by_less_refute_it_and_those_in_between_leave_it_open() {
    let (found, sentence) = judged(&of_file_systems(8, 1.1));
    assert_eq!(found.outcome, Outcome::Refuted, "{sentence}");
    assert!(
        sentence.starts_with("refuted: zfs over ext4 is 1.1")
            && sentence.ends_with(" at most, below the claimed 2"),
        "{sentence}"
    );
    let (found, sentence) = judged(&of_file_systems(8, 2.0));
    assert_eq!(found.outcome, Outcome::Undecided, "{sentence}");
    assert!(
        sentence.ends_with("which may be above or below the claimed 2"),
        "{sentence}"
    );
}

#[test]
fn what_another_fact_splits_alike_is_neither_supported_nor_refuted() {
    for factor in [5.0, 1.0] {
        let one = |id: usize| {
            let is_zfs = id.is_multiple_of(2);
            let facts = vec![
                ("file system", if is_zfs { "zfs" } else { "ext4" }),
                ("virtualization", if is_zfs { "KVM" } else { "none" }),
            ];
            (near(if is_zfs { factor } else { 1.0 }, id), facts)
        };
        let fleet = machines("file system", ClaimDirection::Greater, (0..20).map(one));
        let (found, sentence) = judged(&fleet);
        assert_eq!(found.outcome, Outcome::Undecided);
        assert_eq!(found.confounded_with, ["virtualization"]);
        assert_eq!(
            sentence,
            "undecided: on these machines file system cannot be told from virtualization"
        );
    }
}

#[test]
fn too_few_machines_decide_nothing() {
    let (found, sentence) = judged(&of_file_systems(2, 5.0));
    assert_eq!((found.outcome, found.levels), (Outcome::Undecided, None));
    assert_eq!(
        sentence,
        "undecided: no two levels of file system have 3 machines each"
    );
    let (found, sentence) = judged(&of_file_systems(3, 50.0));
    assert_eq!(found.outcome, Outcome::Undecided);
    assert!(
        sentence.ends_with("but with so few machines this may be chance"),
        "{sentence}"
    );
    let mut fleet = of_file_systems(8, 5.0);
    for machine in &mut fleet {
        machine.verdicts[0].measured = None;
    }
    let (found, sentence) = judged(&fleet);
    assert_eq!(found.outcome, Outcome::NotTestable);
    assert_eq!(
        sentence,
        "not testable: no machine has a value with an interval"
    );
}

#[test]
fn kernels_are_compared_in_the_order_of_their_releases() {
    let one = |id: usize| {
        let is_old = id.is_multiple_of(2);
        let value = near(if is_old { 5.0 } else { 1.0 }, id);
        (value, vec![("kernel", if is_old { "6.8" } else { "6.12" })])
    };
    let of = |direction| judged(&machines("kernel", direction, (0..16).map(one)));
    let (found, sentence) = of(ClaimDirection::Greater);
    assert_eq!(found.outcome, Outcome::Supported, "{sentence}");
    assert!(sentence.contains("6.8 over 6.12 is "), "{sentence}");
    let (found, sentence) = of(ClaimDirection::Less);
    assert_eq!(found.outcome, Outcome::Refuted, "{sentence}");
    assert!(sentence.contains("6.12 over 6.8 is 0.2"), "{sentence}");
}

#[test]
fn levels_are_compared_among_machines_alike_in_what_explains() {
    // Guests take ten times as long, and most of them have zfs.
    let one = |id: usize| {
        let (is_guest, is_zfs) = (id < 20, (id < 20) != (id % 5 == 4));
        let facts = vec![
            ("file system", if is_zfs { "zfs" } else { "ext4" }),
            ("virtualization", if is_guest { "KVM" } else { "none" }),
        ];
        (near(if is_guest { 10.0 } else { 1.0 }, id), facts)
    };
    let fleet = machines("file system", ClaimDirection::Greater, (0..40).map(one));
    let (found, sentence) = judged(&fleet);
    assert_eq!(found.alike_in, ["virtualization"]);
    assert_eq!(found.outcome, Outcome::Refuted, "{sentence}");
    assert!(
        sentence.starts_with("refuted: among machines alike in virtualization, "),
        "{sentence}"
    );
}

#[test]
fn a_claim_is_seldom_decided_where_levels_lie_as_far_apart_as_claimed() {
    const RUNS: usize = 300;
    let mut rng = Rng::new(7);
    let mut decided = [0, 0];
    for _ in 0..RUNS {
        let one = |id: usize| {
            let is_zfs = id.is_multiple_of(2);
            let own = if is_zfs { 2.0 } else { 1.0 } * (0.1 * rng.normal()).exp();
            (own, vec![("file system", ["ext4", "zfs"][id % 2])])
        };
        let fleet = machines("file system", ClaimDirection::Greater, (0..14).map(one));
        match judged(&fleet).0.outcome {
            Outcome::Supported => decided[0] += 1,
            Outcome::Refuted => decided[1] += 1,
            _ => {}
        }
    }
    // Each end errs in 2.5 % of runs, plus three standard deviations of a binomial.
    let most = RUNS as f64 * 0.025 + 3.0 * (RUNS as f64 * 0.025 * 0.975).sqrt();
    assert!(
        decided.iter().all(|one| f64::from(*one) <= most),
        "{decided:?}"
    );
    assert!(decided != [0, 0], "the noise is large enough to err");
}

fn platform(name: &str, facts: &[(&str, &str)]) -> Platform {
    let texts = |pairs: &[(&str, &str)]| {
        let pairs = pairs.iter();
        let pairs = pairs.map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
        pairs.collect::<BTreeMap<String, String>>()
    };
    Platform {
        name: name.to_owned(),
        report: "paper".to_owned(),
        facts: texts(facts),
        concluded: texts(&[("write.fs-order", "slow")]),
    }
}

#[test]
fn published_platforms_count_nowhere_and_are_held_to_the_rules_for_machines() {
    let on = |file_system, os| [("file system", file_system), ("operating system", os)];
    let mut fleet = of_file_systems(8, 5.0);
    let measured = judged(&fleet);
    let all = [
        platform("a", &on("ext4", "Ubuntu")),
        platform("b", &on("ext4", "Ubuntu")),
        platform("c", &on("zfs", "GhostBSD")),
    ];
    for machine in &mut fleet {
        machine.platforms = all.to_vec();
    }
    assert_eq!(judged(&fleet), measured);
    let found = report(&fleet);
    assert_eq!(found.published_platforms, all);
    assert_eq!(found.claims[0].counts.total(), 16);
    assert_eq!(
        found.claims[0].published,
        [
            "the 3 platforms of paper cannot show a difference: fewer than two levels of file \
             system have 2 platforms each, and file system cannot be told from operating system"
        ]
    );
    let crossed = [
        on("ext4", "Ubuntu"),
        on("ext4", "GhostBSD"),
        on("zfs", "Ubuntu"),
        on("zfs", "GhostBSD"),
    ];
    fleet[0].platforms = crossed.map(|facts| platform("x", &facts)).to_vec();
    fleet.truncate(1);
    assert_eq!(
        report(&fleet).claims[0].published,
        ["paper describes 4 platforms"]
    );
}

#[test]
fn the_platforms_of_timewrite_cannot_tell_file_systems_or_kernels_apart() {
    let builtin = builtin::find("write").expect("it comes with the program");
    let experiment = parse(builtin.toml, builtin.name, "quick").expect("it can be read");
    assert_eq!(experiment.platforms.len(), 5);
    let mut actual = Vec::new();
    for (claim, fact) in [
        ("write.fs-order", "file system"),
        ("write.old-kernel", "kernel"),
    ] {
        let mut fleet = machines(fact, ClaimDirection::Greater, [(1.0, Vec::new())]);
        fleet[0].platforms.clone_from(&experiment.platforms);
        claim.clone_into(&mut fleet[0].verdicts[0].claim);
        actual.extend(report(&fleet).claims.remove(0).published);
    }
    assert_eq!(
        actual,
        [
            "the 5 platforms of timewrite cannot show a difference: fewer than two levels of file \
             system have 2 platforms each, and file system cannot be told from operating system",
            "the 5 platforms of timewrite cannot show a difference: fewer than two levels of kernel \
             have 2 platforms each"
        ]
    );
}
