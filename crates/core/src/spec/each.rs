//! One claim of a file for each combination of some factors' levels.

use std::collections::BTreeMap;

use super::claims::{ClaimTable, claim_of};
use super::expression::Expression;
use super::{Claim, Factor, Level, Selector, Test};

/// What levels there are, and which of them go together.
pub(super) struct Space<'a> {
    pub factors: &'a [Factor],
    pub constraints: &'a [String],
    /// Parameters that are held fixed.
    pub fixed: &'a BTreeMap<String, Level>,
}

/// The claims that a statement of a file makes.
pub(super) fn claims_of(
    table: &ClaimTable,
    metric: &str,
    report: Option<&str>,
    space: &Space<'_>,
) -> Result<Vec<Claim>, String> {
    let claim = claim_of(table, metric, report)?;
    match table.each.is_empty() {
        true => Ok(vec![claim]),
        false => claims_for_each(&claim, &table.each, space),
    }
}

/// A claim for each combination of the levels of `each` that the experiment has.
/// A side of the contrast that names a factor itself keeps its level.
fn claims_for_each(
    claim: &Claim,
    each: &[String],
    space: &Space<'_>,
) -> Result<Vec<Claim>, String> {
    let mut all = vec![Selector::new()];
    for name in each {
        let factor = space.factors.iter().find(|factor| factor.name == *name);
        let factor = factor.ok_or_else(|| {
            format!(
                "cannot use claim {}: each names {name}, which is no factor",
                claim.id
            )
        })?;
        let with = |at: &Selector, level: &Level| {
            let mut at = at.clone();
            at.insert(name.clone(), level.clone());
            at
        };
        all = all
            .iter()
            .flat_map(|at| factor.levels.iter().map(move |level| with(at, level)))
            .collect();
    }
    let constraints = space.constraints.iter();
    let constraints = constraints.map(|text| Expression::parse(text));
    let constraints = constraints.collect::<Result<Vec<_>, _>>()?;
    let mut claims = Vec::new();
    for at in all {
        if let Some(claim) = claim_at(claim, &at, &constraints, space.fixed)? {
            claims.push(claim);
        }
    }
    Ok(claims)
}

/// The claim at one combination; none if it would compare a treatment with
/// itself, or one that a constraint leaves out.
fn claim_at(
    claim: &Claim,
    at: &Selector,
    constraints: &[Expression],
    fixed: &BTreeMap<String, Level>,
) -> Result<Option<Claim>, String> {
    let mut claim = claim.clone();
    for (name, level) in at {
        for text in [&mut claim.id, &mut claim.text] {
            *text = text.replace(&format!("{{{name}}}"), &level.text);
        }
    }
    let Test::Ratio(contrast) = &mut claim.test else {
        return Err(format!(
            "cannot use claim {}: each needs of and to",
            claim.id
        ));
    };
    let second = contrast.per.iter_mut().flat_map(|(of, to)| [of, to]);
    for side in [&mut contrast.of, &mut contrast.to]
        .into_iter()
        .chain(second)
    {
        for (name, level) in at {
            side.entry(name.clone()).or_insert_with(|| level.clone());
        }
        for constraint in constraints {
            let level = |name: &str| side.get(name).or_else(|| fixed.get(name));
            if !constraint.holds(&level)? {
                return Ok(None);
            }
        }
    }
    Ok((contrast.of != contrast.to).then_some(claim))
}
