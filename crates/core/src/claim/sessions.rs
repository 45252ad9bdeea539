//! How far runs of the same thing lie apart.
//!
//! What changes between two runs as wholes (memory layout, neighbours, temperature) is
//! the same in all trials of each, so no interval of one run or of two shows it
//! (Kalibera and Jones, "Rigorous benchmarking in reasonable time", ISMM (2013)). Runs
//! of the same thing at different times do.

use toll_stats::{mean, standard_deviation, student_quantile};

use super::model::Sessions;
use super::work::different_work;
use super::{CONFIDENCE, Run};
use crate::run::RunStatus;

/// Fewest runs whose differences are taken for those of sessions.
pub const SESSIONS_MIN: usize = 3;

impl Run {
    /// Whether another run did the same work on the same system, to its end.
    fn is_session_of(&self, other: &Run) -> bool {
        let machines = [self, other].map(|run| &run.stored.run.machine);
        let systems = machines.map(|it| (&it.hostname, &it.cpu_model, &it.kernel_version));
        let names = [self, other].map(|run| &run.stored.run.experiment);
        let is_complete = |run: &Run| run.stored.run.status == RunStatus::Complete;
        systems[0] == systems[1]
            && names[0] == names[1]
            && is_complete(self)
            && is_complete(other)
            && different_work(&[&self.stored.experiment, &other.stored.experiment]).is_empty()
    }
}

/// What a store's other runs show of how far sessions of an old run lie apart, in a
/// metric. A new run beside it is one more session, so 95 % of two of them differ by
/// less than t·√2 standard deviations of their medians, which all treatments share.
pub(super) fn of(old: &Run, others: &[Run], metric: &str) -> Sessions {
    let further = others.iter().filter(|run| run.is_session_of(old));
    let runs: Vec<&Run> = std::iter::once(old).chain(further).collect();
    let medians_of = |levels| {
        let treatments = runs.iter().filter_map(|run| {
            let mut own = run.own();
            own.find(|treatment| treatment.levels == levels)
        });
        let estimates = treatments.filter_map(|one| one.estimates.get(metric));
        let logs = estimates.map(|one| one.median.value.ln());
        logs.filter(|log| log.is_finite()).collect::<Vec<f64>>()
    };
    let of_treatments = old
        .own()
        .map(|treatment| medians_of(treatment.levels.clone()));
    let known = of_treatments.filter(|logs| logs.len() == runs.len());
    let variances: Vec<f64> = known
        .map(|logs| standard_deviation(&logs).powi(2))
        .collect();
    let is_enough = runs.len() >= SESSIONS_MIN && !variances.is_empty();
    Sessions {
        runs: runs.len(),
        shift: is_enough.then(|| {
            let deviation = (2.0 * mean(&variances)).sqrt();
            (student_quantile(CONFIDENCE, runs.len() - 1) * deviation).exp_m1()
        }),
    }
}
