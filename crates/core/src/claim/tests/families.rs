//! How claims share one error rate.

use super::*;
use model::ErrorRate;

/// A claim that holds clearly.
const HOLDS: &str = "direction = 'greater'";

fn claims(count: usize, rest: &str) -> String {
    let all = (0..count).map(|place| claim(&format!("c{place}"), "o-sync", "none", rest));
    all.collect()
}

/// Returns whether each claim has a family-wise verdict, in a run of some blocks with its
/// first look after `first_look`.
fn guarded(toml: &str, blocks: u32, first_look: u32) -> Vec<bool> {
    let mut stored = run(toml, blocks, cost);
    stored.experiment.run.min_blocks = first_look;
    let verdicts = analyse(&stored).verdicts;
    verdicts.iter().map(Verdict::is_family_wise).collect()
}

#[test]
fn before_the_first_look_only_claims_that_so_few_blocks_can_decide_count() {
    // A spread over four levels has twelve intervals, so nine blocks cannot decide it.
    let spread = "[[derived]]\nid = 's'\ntext = 'x'\nkind = 'spread'\nfactor = 'buffer'\n\
                  [[claim]]\nid = 'd'\ntext = 'x'\nderived = 's'\nbetween = [1, 1.5]\n";
    let toml =
        claims(13, HOLDS) + &spread.replace("'x'\nkind", "'x'\nat = { durability = 'none' }\nkind");
    let guarded = |blocks, first_look| guarded(&toml, blocks, first_look);
    assert_eq!(guarded(9, 10)[..13], [true; 13]);
    // A look at this block may have ended the run, so its errors add to those of others.
    assert_eq!(guarded(9, 9)[..13], [false; 13]);
}

#[test]
fn where_no_block_more_is_to_be_had_claims_are_tested_one_after_another() {
    let toml = claims(13, HOLDS) + &claim("wide", "o-sync", "none", "between = [5, 10]");
    let found = guarded(&toml, 5, 10);
    assert_eq!(found[..13], [true; 13]);
    assert!(!found[13], "two borders take six blocks");
    assert_eq!(guarded(&toml, 6, 10), [true; 14]);
    assert_eq!(guarded(&toml, 4, 10), [false; 14]);
}

#[test]
fn the_claim_whose_blocks_are_nearest_to_its_border_is_tested_last() {
    // In one of five blocks `fsync` is not slower; it is always nearer to the border than
    // the rest.
    let near = |durability: &str, buffer: f64, block: u32| {
        let value = cost("none", buffer, block)?;
        Some(match (durability, block) {
            ("fsync", 3) => value,
            ("fsync", _) => 1.2 * value,
            ("o-sync", _) => 9.0 * value,
            _ => value,
        })
    };
    let toml = claim("near", "fsync", "none", HOLDS) + &claims(6, HOLDS);
    let mut stored = run(&toml, 5, near);
    stored.experiment.run.min_blocks = 10;
    let found = analyse(&stored).verdicts;
    assert_eq!(found[0].outcome, Outcome::Undecided);
    assert!(
        found[1..]
            .iter()
            .all(|one| one.outcome == Outcome::Supported)
    );
}

#[test]
fn whoever_interrupts_a_run_may_have_seen_its_progress() {
    let mut stored = run(&claims(13, HOLDS), 9, cost);
    stored.experiment.run.min_blocks = 10;
    assert!(analyse(&stored).verdicts[0].is_family_wise());
    stored.run.status = RunStatus::Unfinished;
    assert!(!analyse(&stored).verdicts[0].is_family_wise());
}

#[test]
fn few_blocks_with_looks_have_few_wrong_verdicts_before_they_have_none() {
    let rates = |blocks| {
        let mut stored = run(&claims(13, HOLDS), blocks, cost);
        stored.experiment.run.min_blocks = 8;
        let verdicts = analyse(&stored).verdicts;
        let rates: Vec<_> = verdicts.iter().map(|one| one.error_rate).collect();
        assert!(verdicts.iter().all(|one| one.outcome == Outcome::Supported));
        assert!(rates.iter().all(|one| *one == rates[0]));
        let measured = verdicts[0].measured.unwrap();
        (rates[0].unwrap(), measured.confidence)
    };
    let (rate, confidence) = rates(8);
    // 13·2·2⁻⁸ is over 5 %; each 2·2⁻⁸ is under it, and so are all.
    assert_eq!(rate, ErrorRate::FalseDiscovery);
    assert!((0.9..0.98).contains(&confidence), "{confidence}");
    let (rate, confidence) = rates(14);
    assert_eq!(rate, ErrorRate::FamilyWise);
    assert!(confidence > 0.99, "{confidence}");
}

#[test]
fn a_run_goes_on_until_no_verdict_of_its_family_is_wrong_but_by_chance() {
    let mut stored = run(&claims(13, HOLDS), 8, cost);
    stored.experiment.run.target_ci = 1e-9;
    let open = questions(&stored.experiment, &stored.treatments, &stored.trials, &[]);
    let decided: Vec<_> = open
        .iter()
        .map(|one| (one.outcome, one.is_decided))
        .collect();
    assert_eq!(decided, [(Some(Outcome::Supported), false); 13]);
}
