//! The treatments of an experiment, and what each of their trials draws.

use toll_stats::Rng;

use super::combinations::combinations;
use super::{Treatment, claimed, questions};
use crate::spec::constraints::Constraints;
use crate::spec::guest::GuestParameters;
use crate::spec::{Experiment, Selector, WorkloadKind};

/// Maximum number of treatments of one experiment. A block runs all of them, so more would make
/// even a single block endless.
pub const TREATMENTS_MAX: usize = 10_000;

/// The treatments of an experiment and the order of every block.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// All treatments, A/A twins last.
    pub treatments: Vec<Treatment>,
    pub(super) seed: u64,
    /// Whether all trials of a block draw the same numbers.
    shares_draws: bool,
    /// Treatments of each question that a run has to answer.
    pub(super) compared: Vec<Vec<usize>>,
}

impl Plan {
    /// Makes the plan of an experiment.
    pub fn new(experiment: &Experiment, seed: u64) -> Result<Self, String> {
        let constraints = Constraints::new(experiment, &experiment.constraints)?;
        let mut treatments = Vec::new();
        for levels in combinations(experiment) {
            if constraints.against(&levels)?.is_some() {
                continue;
            }
            if treatments.len() == TREATMENTS_MAX {
                return Err(format!(
                    "cannot plan {}: over {TREATMENTS_MAX} treatments; use fewer levels or a \
                     constraint",
                    experiment.name
                ));
            }
            let mut levels = levels;
            if let Some(guest) = &experiment.guest {
                levels.extend(guest.parameters.clone());
            }
            let factors = experiment.factors_at(&levels);
            let treatment = Treatment::new(treatments.len(), &factors, levels);
            if let Some(boot) = treatment.boot()
                && let Some(why) = GuestParameters::read(&boot)?.contradiction()
            {
                return Err(why.into());
            }
            treatments.push(treatment);
        }
        if treatments.is_empty() {
            return Err(format!(
                "cannot plan {}: no combination of levels meets the constraints",
                experiment.name
            ));
        }
        if experiment.run.claims_only {
            treatments = claimed::keep(experiment, treatments);
        }
        let mut plan = Self {
            treatments,
            seed,
            // The time to count primes depends on the numbers, so treatments are compared
            // within a block on the same numbers.
            shares_draws: experiment.workload.kind == WorkloadKind::Primes,
            compared: Vec::new(),
        };
        plan.compared = questions::compared(experiment, &plan.treatments);
        if !experiment.without_twin {
            plan.add_twins(experiment)?;
        }
        if experiment.run.regression_limit.is_some() && experiment.claims.is_empty() {
            plan.run_twins_along();
        }
        Ok(plan)
    }

    /// Adds each twin to the compared groups that have its original.
    fn run_twins_along(&mut self) {
        for group in &mut self.compared {
            let twins = self.treatments.iter().filter(|one| {
                let original = one.twin_of;
                original.is_some_and(|original| group.contains(&original))
            });
            let twins: Vec<usize> = twins.map(|twin| twin.index).collect();
            group.extend(twins);
        }
    }

    fn add_twins(&mut self, experiment: &Experiment) -> Result<(), String> {
        let first = [Selector::new()];
        let selectors = match experiment.twins.as_slice() {
            [] => &first[..],
            twins => twins,
        };
        for selector in selectors {
            // A twin that a profile's levels or constraints leave out falls back to the first
            // treatment, so that every run has a twin.
            let found = self
                .treatments
                .iter()
                .find(|treatment| treatment.matches(selector));
            let original = found.unwrap_or(&self.treatments[0]).clone();
            if self
                .treatments
                .iter()
                .any(|t| t.twin_of == Some(original.index))
            {
                continue;
            }
            let index = self.treatments.len();
            self.treatments.push(original.twin(index));
        }
        Ok(())
    }

    /// Length of the padding in the environment of one trial, in bytes. The size of the environment
    /// decides where the stack starts, and so whether hot data straddles cache lines. So the length
    /// is drawn anew for each trial (Mytkowicz et al., ASPLOS 2009).
    pub fn padding_bytes(&self, block: u32, treatment: usize) -> usize {
        let stream = (u64::from(block) << 32) | (1 << 31) | treatment as u64;
        Rng::new(self.seed).fork(stream).below(4096)
    }

    /// Seed of the numbers that a trial draws itself, such as the order of a chase. Trials of a
    /// block share the seed if all of them have to count the same numbers.
    pub fn trial_seed(&self, block: u32, treatment: usize) -> u64 {
        let drawn_for = if self.shares_draws {
            0
        } else {
            treatment as u64
        };
        let stream = (u64::from(block) << 32) | (1 << 30) | drawn_for;
        Rng::new(self.seed).fork(stream).next_u64()
    }

    /// Returns whether two treatments are the same, or twins of one another.
    pub fn are_twins(&self, one: usize, other: usize) -> bool {
        let original = |index: usize| self.treatments[index].twin_of.unwrap_or(index);
        original(one) == original(other)
    }

    /// The seed that the plan was made from.
    pub fn seed(&self) -> u64 {
        self.seed
    }
}
