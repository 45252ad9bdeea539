//! All combinations of an experiment's levels.

use std::collections::BTreeMap;

use crate::spec::{Experiment, Factor, Level, ROW};

/// Returns the levels of all treatments before constraints, with the fixed parameters of
/// each.
pub(super) fn combinations(
    experiment: &Experiment,
) -> Box<dyn Iterator<Item = BTreeMap<String, Level>> + '_> {
    let with = |fixed: &BTreeMap<String, Level>, varied: BTreeMap<&str, &Level>| {
        let mut levels = fixed.clone();
        let varied = varied.into_iter();
        levels.extend(varied.map(|(name, level)| (name.to_owned(), level.clone())));
        levels
    };
    let Some(rows) = experiment
        .factor(ROW)
        .filter(|_| !experiment.rows.is_empty())
    else {
        let fixed = &experiment.workload.parameters;
        let all = Combinations::new(experiment.factors.iter().collect());
        return Box::new(all.map(move |varied| with(fixed, varied)));
    };
    Box::new(rows.levels.iter().flat_map(move |name| {
        let row = experiment.rows.iter().find(|row| row.name == name.text);
        let row = row.expect("the experiment was checked");
        let all = Combinations::new(experiment.factors_of(row).collect());
        all.map(move |mut varied| {
            varied.insert(ROW, name);
            with(&row.parameters, varied)
        })
    }))
}

/// All combinations of levels, the last factor varying fastest.
struct Combinations<'a> {
    factors: Vec<&'a Factor>,
    next: Option<Vec<usize>>,
}

impl<'a> Combinations<'a> {
    fn new(factors: Vec<&'a Factor>) -> Self {
        Self {
            next: Some(vec![0; factors.len()]),
            factors,
        }
    }
}

impl<'a> Iterator for Combinations<'a> {
    type Item = BTreeMap<&'a str, &'a Level>;

    fn next(&mut self) -> Option<Self::Item> {
        let current = self.next.take()?;
        let levels = self.factors.iter().zip(&current);
        let item = levels
            .map(|(factor, i)| (factor.name.as_str(), &factor.levels[*i]))
            .collect();
        let mut following = current;
        for (place, factor) in self.factors.iter().enumerate().rev() {
            following[place] += 1;
            if following[place] < factor.levels.len() {
                self.next = Some(following);
                break;
            }
            following[place] = 0;
        }
        Some(item)
    }
}
