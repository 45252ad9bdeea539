//! Commands around the trials: set-up and clean-up.

use std::collections::BTreeSet;
use std::time::Duration;

use toll_wire::Outcome;

use super::{Interrupt, Session, SessionError, TrialRequest};

impl Session<'_> {
    /// Runs the set-up once for each treatment that runs, noting which did;
    /// `Some` signal if it was interrupted.
    pub(super) fn set_up(&self, done: &mut BTreeSet<usize>) -> Result<Option<i32>, SessionError> {
        let Some(template) = &self.experiment.workload.setup else {
            // Clean-up makes sense without a set-up too.
            let running = self.plan.treatments.iter().filter(|t| t.skipped.is_none());
            done.extend(running.map(|treatment| treatment.index));
            return Ok(None);
        };
        let mut seen = BTreeSet::new();
        for treatment in self.plan.treatments.iter().filter(|t| t.skipped.is_none()) {
            // Noted before: a set-up that fails half-way leaves things too.
            done.insert(treatment.index);
            match self.side_command(template, treatment.index, &mut seen, self.interrupt) {
                Some(Ok(())) => {}
                Some(Err(message)) => return Err(SessionError::Setup(message)),
                None => return Ok(self.interrupt.signal()),
            }
        }
        Ok(None)
    }

    /// Runs the clean-up for each treatment whose set-up ran, all of them
    /// though one fails. The signal that ended the run does not end this too;
    /// one that comes now does, and is given.
    pub(super) fn clean_up(&self, set_up: &BTreeSet<usize>) -> Result<Option<i32>, SessionError> {
        let Some(template) = &self.experiment.workload.cleanup else {
            return Ok(None);
        };
        self.interrupt.forget();
        let mut seen = BTreeSet::new();
        let mut first_error = None;
        for &index in set_up {
            match self.side_command(template, index, &mut seen, self.interrupt) {
                Some(Ok(())) => {}
                Some(Err(message)) => {
                    first_error = first_error.or(Some(SessionError::Cleanup(message)));
                }
                None => return Ok(self.interrupt.signal()),
            }
        }
        first_error.map_or(Ok(None), Err)
    }

    /// Runs a command beside the trials, unless the same one ran already: twins,
    /// and treatments that the template does not tell apart, share it. `None`
    /// if it was interrupted.
    fn side_command(
        &self,
        template: &str,
        index: usize,
        seen: &mut BTreeSet<String>,
        interrupt: &Interrupt,
    ) -> Option<Result<(), String>> {
        let trial = TrialRequest::new(self.experiment, &self.plan.treatments[index]);
        let request = trial.side_command(template, self.workspace);
        if !seen.insert(toll_wire::encode(&request)) {
            return Some(Ok(()));
        }
        let timeout = Duration::from_secs_f64(self.experiment.run.trial_timeout_s);
        Some(match self.probe.run(&request, 0, timeout, interrupt)? {
            Outcome::Completed(_) => Ok(()),
            Outcome::Failed(failure) => Err(failure.message),
        })
    }
}
