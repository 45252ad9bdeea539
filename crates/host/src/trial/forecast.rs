//! Estimates whether a run has the time for any verdict.

use std::time::Duration;

use crate::claim;
use crate::plan::Treatment;
use crate::spec::Experiment;
use crate::store::{BootRecord, TrialRecord};

/// The factor by which a run may exceed its budget for verdicts.
const STRETCH: f64 = 1.25;

/// Estimated time of the verdicts of a run, from the durations of its blocks. The estimate ignores
/// measured values, so it biases no verdict.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Forecast {
    /// Blocks after which there can be a verdict.
    pub blocks: u32,
    /// Time that these blocks take.
    pub time: Duration,
    /// Blocks after which claims can be decided together, and the time that these blocks take.
    together: (u32, Duration),
    /// Time that the run has.
    budget: Duration,
}

impl Forecast {
    /// Makes a forecast. `None` before the end of the first block, or if no claim can be tested.
    /// Also `None` if the run's limit allows fewer blocks than a verdict needs.
    pub fn from_trials(
        experiment: &Experiment,
        treatments: &[Treatment],
        trials: &[TrialRecord],
        boots: &[BootRecord],
    ) -> Option<Self> {
        let last = trials.iter().map(|trial| trial.block).max()?;
        let needed = claim::deciding_blocks(experiment, treatments, trials, boots)?;
        let allowed = |blocks: usize| {
            let blocks = u32::try_from(blocks).ok();
            blocks.filter(|blocks| *blocks <= experiment.run.max_blocks)
        };
        let blocks = allowed(needed.in_sequence)?;
        let first_s = end_s(trials, 0);
        let later_s = match last {
            // Treatments that are skipped from now on take no more time.
            0 => first_s * share_left(treatments, trials),
            more => (end_s(trials, more) - first_s) / f64::from(more),
        };
        let time = |blocks: u32| {
            let time_s = first_s + later_s * f64::from(blocks.saturating_sub(1));
            Duration::from_secs_f64(time_s.max(0.0))
        };
        let together = allowed(needed.together).unwrap_or(blocks);
        Some(Self {
            blocks,
            time: time(blocks),
            together: (together, time(together)),
            budget: Duration::from_secs_f64(experiment.run.time_budget_s),
        })
    }

    /// Returns a sufficient budget in minutes, with a reserve of a quarter.
    pub fn budget_minutes(&self) -> u64 {
        self.time.mul_f64(STRETCH).as_secs() / 60 + 1
    }

    /// Whether the run ends before there can be a verdict.
    pub fn is_hopeless(&self) -> bool {
        !self.is_affordable(self.time)
    }

    /// Blocks up to which the run may exceed its budget.
    pub fn stretched_to(&self) -> u32 {
        let all = [(self.blocks, self.time), self.together];
        let affordable = all
            .into_iter()
            .filter(|(_, time)| self.is_affordable(*time));
        affordable
            .map(|(blocks, _)| blocks)
            .max()
            .unwrap_or_default()
    }

    fn is_affordable(&self, time: Duration) -> bool {
        time <= self.budget.mul_f64(STRETCH)
    }
}

/// When a block's last trial ended, in seconds since the run began.
fn end_s(trials: &[TrialRecord], block: u32) -> f64 {
    let of_block = trials.iter().filter(|trial| trial.block == block);
    let end_ns = of_block.map(|trial| trial.run_ns).max();
    Duration::from_nanos(end_ns.unwrap_or_default()).as_secs_f64()
}

/// Share of the trials' time that was spent on treatments that still run.
fn share_left(treatments: &[Treatment], trials: &[TrialRecord]) -> f64 {
    let runs = |trial: &TrialRecord| treatments[trial.treatment].skipped.is_none();
    let (mut all, mut left) = (0.0, 0.0);
    for trial in trials {
        all += trial.wall_ns as f64;
        left += if runs(trial) {
            trial.wall_ns as f64
        } else {
            0.0
        };
    }
    match all {
        0.0 => 1.0,
        all => left / all,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;
    use std::collections::BTreeMap;

    /// Thirteen claims with one border each: 13·2⁻⁸ is over 0.05, 13·2⁻⁹ under it.
    fn experiment(budget_s: u32) -> Experiment {
        let claim = |number: u32| {
            format!(
                "[[claim]]\nid = 't.{number}'\ntext = 'x'\nof = {{ sink = 'pipe' }}\n\
                 to = {{ sink = 'null' }}\ndirection = 'less'\n"
            )
        };
        let toml = format!(
            "format = 1\nname = 't'\ntitle = 't'\n[workload]\nkind = 'copy'\nsource = 'zero'\n\
             buffer = '4KiB'\nmethod = 'page'\nsize = '1MiB'\n[[factor]]\nname = 'sink'\n\
             levels = ['null', 'pipe']\n[run]\nmin_blocks = 10\nmax_blocks = 10\n\
             time_budget = '{budget_s}s'\n{}",
            (0..13).map(claim).collect::<String>()
        );
        crate::spec::parse(&toml, "t", "quick").unwrap()
    }

    /// Blocks whose last trials end at these seconds.
    fn trials(ends_s: &[u64], plan: &Plan) -> Vec<TrialRecord> {
        let blocks = (0_u32..).zip(ends_s);
        let of_block = |(block, end_s): (u32, &u64)| {
            let all = plan.treatments.iter();
            let end_ns = end_s * 1_000_000_000;
            all.map(move |treatment| TrialRecord {
                block,
                treatment: treatment.index,
                run_ns: end_ns,
                wall_ns: 1_000,
                samples: BTreeMap::from([("duration_ns".into(), vec![100.0])]),
                ..TrialRecord::default()
            })
            .collect::<Vec<_>>()
        };
        blocks.flat_map(of_block).collect()
    }

    fn forecast(budget_s: u32, ends_s: &[u64]) -> Forecast {
        let experiment = experiment(budget_s);
        let plan = Plan::new(&experiment, 1).unwrap();
        let trials = trials(ends_s, &plan);
        Forecast::from_trials(&experiment, &plan.treatments, &trials, &[]).unwrap()
    }

    #[test]
    fn a_run_exceeds_its_budget_a_little_for_the_block_that_decides() {
        // Five blocks decide one claim after another, nine all together.
        let after_one = forecast(150, &[18]);
        assert_eq!((after_one.blocks, after_one.time.as_secs()), (5, 90));
        assert_eq!(after_one.stretched_to(), 9, "162 s of 150 s");
        assert_eq!(forecast(129, &[18]).stretched_to(), 5);
    }

    #[test]
    fn a_run_that_cannot_decide_within_its_budget_is_hopeless_after_its_first_block() {
        assert!(
            !forecast(72, &[18]).is_hopeless(),
            "a verdict is worth a quarter more"
        );
        assert!(forecast(71, &[18]).is_hopeless());
        assert_eq!(forecast(71, &[18]).stretched_to(), 0);
    }

    #[test]
    fn later_blocks_tell_what_a_block_takes() {
        // The first block ran treatments that are left out from then on.
        let after_three = forecast(150, &[60, 70, 80]);
        assert_eq!(after_three.time.as_secs(), 100);
        assert_eq!(after_three.stretched_to(), 9);
    }

    #[test]
    fn treatments_that_are_skipped_after_the_first_block_take_no_more_time() {
        let experiment = experiment(100);
        let mut plan = Plan::new(&experiment, 1).unwrap();
        let trials = trials(&[30], &plan);
        let of = |plan: &Plan| {
            Forecast::from_trials(&experiment, &plan.treatments, &trials, &[]).unwrap()
        };
        assert_eq!(of(&plan).time.as_secs(), 5 * 30);
        let twin = plan.treatments.iter_mut().find(|one| one.twin_of.is_some());
        twin.unwrap().skipped = Some("not judged".into());
        assert_eq!(of(&plan).time.as_secs(), 30 + 4 * 20);
    }

    #[test]
    fn there_is_no_forecast_without_a_block() {
        let mut experiment = experiment(100);
        let plan = Plan::new(&experiment, 1).unwrap();
        assert_eq!(
            Forecast::from_trials(&experiment, &plan.treatments, &[], &[]),
            None
        );
        // Blocks are missing, not time.
        (experiment.run.min_blocks, experiment.run.max_blocks) = (4, 4);
        let trials = trials(&[100], &plan);
        assert_eq!(
            Forecast::from_trials(&experiment, &plan.treatments, &trials, &[]),
            None
        );
    }
}
