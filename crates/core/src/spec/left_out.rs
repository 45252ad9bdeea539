//! Claims whose levels a profile leaves out, by its factors or its constraints.

use std::collections::BTreeMap;

use super::constraints::Constraints;
use super::{Claim, Experiment, Level, Selector, Test};

/// Returns the claims whose levels are not all in this profile. Each claim comes with the first of
/// some other profiles that has all of its levels.
pub(super) fn by_profile<'a>(
    experiment: &Experiment,
    others: impl Iterator<Item = &'a &'static str>,
    read: impl Fn(&str) -> Option<Experiment>,
) -> BTreeMap<String, String> {
    let mut left: Vec<&Claim> = experiment.claims.iter().collect();
    left.retain(|claim| !has_levels(experiment, claim));
    let mut left_to = BTreeMap::new();
    for other in others {
        if left.is_empty() {
            break;
        }
        let Some(other_experiment) = read(other) else {
            continue;
        };
        left.retain(|claim| {
            let has = has_levels(&other_experiment, claim);
            if has {
                left_to.insert(claim.id.clone(), (*other).to_owned());
            }
            !has
        });
    }
    left_to
}

fn has_levels(experiment: &Experiment, claim: &Claim) -> bool {
    let has = |name: &str, level: &Level| {
        let factor = experiment.factor(name);
        factor.is_none_or(|factor| factor.find(level).is_some())
    };
    let has_all = |selector: &Selector| selector.iter().all(|(name, level)| has(name, level));
    match claim.test() {
        Test::Ratio(contrast) => {
            // Constraints that cannot be read or evaluated are refused elsewhere.
            let constraints = Constraints::new(experiment, &experiment.constraints).ok();
            let is_left_out = |side: &Selector| {
                let against = constraints.as_ref().map(|all| all.against(side));
                matches!(against, Some(Ok(Some(_))))
            };
            let mut sides = contrast.sides();
            sides.all(|side| has_all(side) && !is_left_out(side))
        }
        Test::Derived(id) => {
            let derived = experiment.derived.iter().find(|one| one.id == id);
            derived.is_none_or(|one| {
                let mut sides = one.kind.sides();
                let level = one.kind.level();
                has_all(&one.at)
                    && sides.all(has_all)
                    && level.is_none_or(|level| has(&one.factor, level))
            })
        }
        Test::Never(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use crate::spec::parse;

    const EXPERIMENT: &str = "
format = 1
name = 't'
[workload]
kind = 'write'
input = '1MiB'
[[factor]]
name = 'durability'
levels = ['none', 'fsync', 'o-sync']
[[factor]]
name = 'buffer'
levels = ['4KiB', '8KiB']
[profile.quick]
factors = { durability = ['none'] }
require = ['buffer != 8KiB']
[profile.standard]
factors = { durability = ['none', 'fsync'] }
[[claim]]
id = 'fsync'
text = 'x'
of = { durability = 'fsync' }
to = { durability = 'none' }
at = { buffer = '4KiB' }
direction = 'greater'
[[claim]]
id = 'o-sync'
text = 'x'
of = { durability = 'o-sync' }
to = { durability = 'none' }
at = { buffer = '4KiB' }
direction = 'greater'
[[claim]]
id = 'constraint'
text = 'x'
of = { buffer = '8KiB' }
to = { buffer = '4KiB' }
at = { durability = 'none' }
direction = 'greater'
";

    #[test]
    fn a_claim_is_left_to_the_first_profile_that_has_its_levels() {
        let left_to = |profile| parse(EXPERIMENT, "t", profile).unwrap().left_to;
        let of = |profile| left_to(profile).into_iter().collect::<Vec<_>>();
        let left = |claim: &str, profile: &str| (claim.to_owned(), profile.to_owned());
        assert_eq!(
            of("quick"),
            [
                left("constraint", "standard"),
                left("fsync", "standard"),
                left("o-sync", "full")
            ]
        );
        assert_eq!(of("standard"), [left("o-sync", "full")]);
        assert_eq!(of("full"), []);
    }
}
