//! The claims that a statement of an experiment file makes.

use std::collections::BTreeMap;

use super::{Claim, Test};
use crate::spec::constraints::Constraints;
use crate::spec::selector::join;
use crate::spec::{Experiment, Level, Selector, published};

/// Maximum number of combinations of levels for which one statement makes claims, before
/// constraints.
const EACH_MAX: usize = 10_000;

impl Claim {
    /// Returns the claims that a statement of a file makes: one, or one for each combination of the
    /// levels of `each` in any profile. Combinations that the file's own constraints leave out make
    /// no claim; constraints of a profile only leave claims to other profiles.
    pub(in crate::spec) fn finished(
        mut self,
        experiment: &Experiment,
        levels: &BTreeMap<String, Vec<Level>>,
        constraints: &Constraints<'_>,
    ) -> Result<Vec<Self>, String> {
        self.check()?;
        if self.metric.is_empty() {
            self.metric.clone_from(&experiment.metric);
        }
        if self.report.is_none() && self.corrects.is_none() {
            self.report.clone_from(&experiment.report);
        }
        self.report = self.report.filter(|report| !report.is_empty());
        let filled = |text: &Option<String>| text.as_deref().map(published::filled).transpose();
        let texts = [&self.contradicted, &self.not_testable].map(filled);
        let [contradicted, not_testable] = texts;
        self.contradicted = contradicted.map_err(|why| self.wrong(&why))?;
        self.not_testable = not_testable.map_err(|why| self.wrong(&why))?;
        let at = std::mem::take(&mut self.at);
        self.sides_mut().for_each(|side| join(side, &at));
        let each = std::mem::take(&mut self.each);
        let claims = if each.is_empty() {
            vec![self.clone()]
        } else {
            self.for_each(&each, experiment, levels)?
        };
        let mut kept = Vec::new();
        let mut why_left_out = "it compares each treatment with itself".to_owned();
        for claim in claims {
            match claim.why_untestable(constraints)? {
                None => kept.push(claim),
                Some(why) => why_left_out = why,
            }
        }
        if kept.is_empty() {
            Err(self.wrong(&format!(
                "no treatment has its levels: {why_left_out}; name other levels"
            )))
        } else {
            Ok(kept)
        }
    }

    /// Returns the claim at each combination of the levels of some factors.
    fn for_each(
        &self,
        each: &[String],
        experiment: &Experiment,
        levels: &BTreeMap<String, Vec<Level>>,
    ) -> Result<Vec<Self>, String> {
        if !matches!(self.test(), Test::Ratio(_)) {
            return Err(self.wrong("`each` needs `of` and `to`"));
        }
        if let Some(name) = each.iter().find(|name| experiment.factor(name).is_none()) {
            return Err(self.wrong(&format!("`each` names {name}, which is not a factor")));
        }
        let mut all = vec![Selector::new()];
        for name in each {
            let with = |at: &Selector, level: &Level| {
                let mut at = at.clone();
                at.insert(name.clone(), level.clone());
                at
            };
            let mut distinct: Vec<&Level> = Vec::new();
            for level in levels.get(name).into_iter().flatten() {
                let is_known = distinct.iter().any(|other| other.same(level));
                if !is_known && distinct.len() <= EACH_MAX {
                    distinct.push(level);
                }
            }
            if all.len() * distinct.len() > EACH_MAX {
                let why = format!("`each` has over {EACH_MAX} combinations; remove factors");
                return Err(self.wrong(&why));
            }
            let along = |at| distinct.iter().map(move |level| with(at, level));
            all = all.iter().flat_map(along).collect();
        }
        let claims = all.iter().map(|at| self.at_combination(at));
        Ok(claims.filter(|claim| claim.of != claim.to).collect())
    }

    /// Returns why a treatment that a ratio compares cannot exist in any profile.
    fn why_untestable(&self, constraints: &Constraints<'_>) -> Result<Option<String>, String> {
        let Test::Ratio(contrast) = self.test() else {
            return Ok(None);
        };
        for side in contrast.sides() {
            if let Some(why) = constraints.why_none(side)? {
                return Ok(Some(why));
            }
        }
        Ok(None)
    }

    fn sides_mut(&mut self) -> impl Iterator<Item = &mut Selector> {
        let sides = [
            &mut self.of,
            &mut self.to,
            &mut self.per_of,
            &mut self.per_to,
        ];
        sides.into_iter().flatten()
    }

    /// Returns the claim at one combination. A side that names a factor itself keeps its
    /// own level.
    fn at_combination(&self, at: &Selector) -> Self {
        let mut claim = self.clone();
        for (name, level) in at {
            let corrects = claim.corrects.iter_mut();
            for text in [&mut claim.id, &mut claim.text].into_iter().chain(corrects) {
                *text = text.replace(&format!("{{{name}}}"), &level.text);
            }
        }
        claim.sides_mut().for_each(|side| join(side, at));
        claim
    }
}
