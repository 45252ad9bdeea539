//! How claims share one error.

use super::*;

/// A claim that holds clearly.
const HOLDS: &str = "direction = 'greater'";

fn claims(count: usize, rest: &str) -> String {
    let all = (0..count).map(|place| claim(&format!("c{place}"), "o-sync", "none", rest));
    all.collect()
}

/// Outcomes of a run that ends after some blocks, with its first look after others.
fn outcomes(toml: &str, blocks: u32, first_look: u32) -> Vec<Outcome> {
    let mut stored = run(toml, blocks, cost);
    stored.experiment.run.min_blocks = first_look;
    let verdicts = analyse(&stored).verdicts;
    verdicts.iter().map(|one| one.outcome).collect()
}

#[test]
fn before_the_first_look_only_claims_that_so_few_blocks_can_decide_count() {
    // A spread over four levels has twelve intervals, so nine blocks cannot decide it.
    let spread = "[[derived]]\nid = 's'\ntext = 'x'\nkind = 'spread'\nfactor = 'buffer'\n\
                  [[claim]]\nid = 'd'\ntext = 'x'\nderived = 's'\nbetween = [1, 1.5]\n";
    let toml =
        claims(13, HOLDS) + &spread.replace("'x'\nkind", "'x'\nat = { durability = 'none' }\nkind");
    let outcomes = |blocks, first_look| outcomes(&toml, blocks, first_look);
    let found = outcomes(9, 10);
    assert_eq!(found[..13], [Outcome::Supported; 13]);
    // A look there may have ended the run, so its errors add to those of others.
    assert_eq!(outcomes(9, 9)[..13], [Outcome::Inconclusive; 13]);
}

#[test]
fn where_no_block_more_is_to_be_had_claims_are_tested_one_after_another() {
    let toml = claims(13, HOLDS) + &claim("wide", "o-sync", "none", "between = [5, 10]");
    let found = outcomes(&toml, 5, 10);
    assert_eq!(found[..13], [Outcome::Supported; 13]);
    assert_eq!(
        found[13],
        Outcome::Inconclusive,
        "two borders take six blocks"
    );
    assert_eq!(outcomes(&toml, 6, 10), [Outcome::Supported; 14]);
    assert_eq!(outcomes(&toml, 4, 10), [Outcome::Inconclusive; 14]);
}

#[test]
fn the_claim_whose_blocks_are_nearest_to_its_border_is_tested_last() {
    // In one of six blocks `fsync` is no slower, by less than the others are.
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
    assert_eq!(found[0].outcome, Outcome::Inconclusive);
    assert!(
        found[1..]
            .iter()
            .all(|one| one.outcome == Outcome::Supported)
    );
}

#[test]
fn whoever_interrupts_a_run_may_have_seen_its_progress() {
    let mut stored = run(&claims(13, HOLDS), 9, cost);
    assert_eq!(analyse(&stored).verdicts[0].outcome, Outcome::Supported);
    stored.run.status = RunStatus::Unfinished;
    assert_eq!(analyse(&stored).verdicts[0].outcome, Outcome::Inconclusive);
}
