//! Decides when a run ends, and which treatments it continues with.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use toll_document::plural;

use super::{Event, Forecast, Observer, Session, TimeLimit};
use crate::claim::{self, Question};
use crate::spec::{ComparisonGoal, Experiment};
use crate::store::TrialRecord;

/// Limits the time spent on judging claims between looks, for the progress line: at most one part
/// in `PEEK_EVERY` of the run's time.
const PEEK_EVERY: u32 = 100;

/// Number of first blocks after each of which the time for a verdict is estimated. The first block
/// also runs treatments that later blocks leave out.
const FORECAST_BLOCKS: u32 = 2;

/// Time after which a comparison ends even if undecided, unless the user set one.
pub const COMPARISON: Duration = Duration::from_secs(3);

/// Returns when comparisons end even if undecided, if no time is set for them.
pub fn comparison_time(experiment: &Experiment, questions: &[Question]) -> Option<Duration> {
    let ends = |one: &Question| one.outcome.is_none() && !one.must_be_decided;
    let count = u32::try_from(questions.len()).unwrap_or(u32::MAX);
    let is_quick = experiment.run.comparison_goal == ComparisonGoal::QuickAnswer;
    (is_quick && questions.iter().all(ends)).then(|| COMPARISON.saturating_mul(count))
}

impl Session<'_> {
    /// Whether the run may end after this many blocks because of its results.
    pub(super) fn is_look(&self, blocks: u32) -> bool {
        self.experiment.run.looks().is_look(blocks as usize)
    }

    /// Counts the leading blocks in which every planned treatment has an outcome. Repeats each look
    /// of an earlier session on the trials that were recorded before it.
    pub(super) fn complete_blocks(&mut self, done: &BTreeSet<(u32, usize)>) -> u32 {
        let mut blocks = 0;
        while blocks < self.experiment.run.max_blocks {
            if blocks > 0 && self.is_look(blocks) {
                let mut before = self.trials.clone();
                before.retain(|trial| trial.block < blocks);
                let questions = self.questions(&before);
                self.open = self.open(&questions, &before);
                self.comparison_time = comparison_time(self.experiment, &questions);
            }
            let order = self.plan.block_order(blocks, self.open.as_deref());
            let is_skipped = |treatment: usize| self.plan.treatments[treatment].skipped.is_some();
            let is_done = |one: &usize| is_skipped(*one) || done.contains(&(blocks, *one));
            if !order.iter().all(is_done) {
                break;
            }
            blocks += 1;
        }
        blocks
    }

    fn questions(&self, trials: &[TrialRecord]) -> Vec<Question> {
        claim::questions(self.experiment, &self.plan.treatments, trials, &self.boots)
    }

    /// Returns the treatments that the next blocks need; without questions, all treatments. Uses
    /// the recorded time, so that a resumed run finds the same treatments.
    fn open(&self, questions: &[Question], trials: &[TrialRecord]) -> Option<Vec<Vec<usize>>> {
        let spent_ns = trials.iter().map(|trial| trial.run_ns).max();
        let spent = Duration::from_nanos(spent_ns.unwrap_or_default());
        let count = u32::try_from(questions.len()).unwrap_or(u32::MAX);
        let goal = self.experiment.run.comparison_goal;
        let is_early = spent < COMPARISON.saturating_mul(count);
        let open = questions
            .iter()
            .filter(|one| !one.is_settled(goal, is_early));
        let needed = open.map(|one| one.treatments.clone());
        (!questions.is_empty()).then(|| needed.collect())
    }

    /// Returns why the run ends after some blocks; `None` if it continues.
    pub(super) fn stop_reason(
        &mut self,
        blocks: u32,
        elapsed: Duration,
        observer: &mut dyn Observer,
    ) -> Option<String> {
        let is_look = self.is_look(blocks);
        if is_look || observer.wants_looks() && self.next_peek <= Instant::now() {
            let begin = Instant::now();
            let questions = self.questions(&self.trials);
            self.next_peek = Instant::now() + begin.elapsed() * PEEK_EVERY;
            observer.notice(&Event::Look(&questions));
            if is_look {
                self.open = self.open(&questions, &self.trials);
                if questions.is_empty() {
                    return Some(format!(
                        "nothing was left to decide, after {}",
                        in_words(blocks)
                    ));
                }
                self.comparison_time = comparison_time(self.experiment, &questions);
                if self.open.as_ref().is_some_and(Vec::is_empty) {
                    return Some(format!(
                        "everything is decided, or as precise as asked for, after {}",
                        in_words(blocks)
                    ));
                }
            }
        }
        self.limit_reached(blocks, elapsed)
    }

    /// The limit of blocks or time that ends the run, if one is reached.
    fn limit_reached(&self, blocks: u32, elapsed: Duration) -> Option<String> {
        let settings = self.experiment.run;
        if blocks >= settings.max_blocks {
            return Some(format!(
                "the limit of {} is reached",
                in_words(settings.max_blocks)
            ));
        }
        // Does not wait for the next look, which may be a quarter of the blocks later.
        if let Some(time) = self.comparison_time.filter(|time| elapsed >= *time) {
            let time_s = time.as_secs();
            return Some(format!(
                "the {time_s} s of a comparison are over, after {}; --time-budget gives more",
                in_words(blocks)
            ));
        }
        // A block that would probably end past the budget is not begun.
        let expected = elapsed + elapsed / blocks;
        let is_over = expected > Duration::from_secs_f64(settings.time_budget_s);
        let is_early = blocks <= FORECAST_BLOCKS && self.time_limit == TimeLimit::OrGivenUp;
        let asks = is_early || is_over && self.time_limit != TimeLimit::Fixed;
        let forecast = asks.then(|| self.forecast()).flatten();
        let budget_s = (settings.time_budget_s * 100.0).round() / 100.0;
        match forecast {
            Some(forecast) if is_early && forecast.is_hopeless() => Some(format!(
                "the time budget of {budget_s} s is too short for any verdict, which takes {} \
                 blocks",
                forecast.blocks
            )),
            Some(forecast) if blocks < forecast.stretched_to() => None,
            _ => is_over.then(|| {
                let made = in_words(blocks);
                format!("the time budget of {budget_s} s is used up, after {made}")
            }),
        }
    }

    fn forecast(&self) -> Option<Forecast> {
        let treatments = &self.plan.treatments;
        Forecast::from_trials(self.experiment, treatments, &self.trials, &self.boots)
    }
}
fn in_words(blocks: u32) -> String {
    plural(blocks as usize, "block")
}
