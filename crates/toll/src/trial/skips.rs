//! Treatments that cannot run, or not any more.

use super::{Event, Guests, Observer, Session, SessionError};
use crate::claim::emulation;
use crate::store::{TrialRecord, TrialState};

/// After this many failures in a row a treatment is given up: its errors are
/// kept, and the time goes to those that work.
const FAILURES_IN_A_ROW_MAX: usize = 3;

impl Session<'_> {
    /// Skips treatments whose file system or memory cannot be had.
    pub(super) fn skip_impossible(
        &mut self,
        observer: &mut dyn Observer,
    ) -> Result<(), SessionError> {
        for index in 0..self.plan.treatments.len() {
            let treatment = &self.plan.treatments[index];
            let boot = treatment.boot();
            let reason = match boot.as_ref().and_then(Guests::obstacle) {
                Some(reason) => Err(reason),
                None => self.request(index, 0),
            };
            if treatment.skipped.is_none()
                && let Err(reason) = reason
            {
                self.skip(index, reason, observer)?;
            }
        }
        Ok(())
    }

    fn skip(
        &mut self,
        index: usize,
        reason: String,
        observer: &mut dyn Observer,
    ) -> Result<(), SessionError> {
        self.store.skip_treatment(self.run_id, index, &reason)?;
        let treatment = &mut self.plan.treatments[index];
        treatment.skipped = Some(reason);
        observer.notice(&Event::Skipped {
            label: &treatment.label,
            reason: treatment.skipped.as_deref().unwrap_or_default(),
        });
        Ok(())
    }

    /// Where only claims matter, one block is enough of times that none judges.
    pub(super) fn skip_unjudged(
        &mut self,
        observer: &mut dyn Observer,
    ) -> Result<(), SessionError> {
        if !self.experiment.run.claims_only {
            return Ok(());
        }
        let treatments = &self.plan.treatments;
        for index in emulation::unjudged(self.experiment, treatments, &self.boots) {
            if self.plan.treatments[index].skipped.is_none() {
                self.skip(index, emulation::NOTE.into(), observer)?;
            }
        }
        Ok(())
    }

    pub(super) fn give_up_if_hopeless(
        &mut self,
        treatment: usize,
        observer: &mut dyn Observer,
    ) -> Result<(), SessionError> {
        let of_treatment = self
            .trials
            .iter()
            .rev()
            .filter(|t| t.treatment == treatment);
        let recent: Vec<_> = of_treatment.take(FAILURES_IN_A_ROW_MAX).collect();
        let Some(last) = recent.first() else {
            return Ok(());
        };
        let message = last.message.clone().unwrap_or_default();
        if last.state == TrialState::Unsupported {
            return self.skip(treatment, message, observer);
        }
        let all_failed = recent
            .iter()
            .all(|trial| trial.state != TrialState::Completed);
        if recent.len() == FAILURES_IN_A_ROW_MAX && all_failed {
            let reason = format!("given up after {FAILURES_IN_A_ROW_MAX} failures: {message}");
            return self.skip(treatment, reason, observer);
        }
        Ok(())
    }

    pub(super) fn require_some_treatment(&self) -> Result<(), SessionError> {
        let mut reasons = Vec::new();
        for treatment in &self.plan.treatments {
            match &treatment.skipped {
                None => return Ok(()),
                Some(reason) => reasons.push(reason.clone()),
            }
        }
        let was_possible = |trial: &TrialRecord| trial.state != TrialState::Unsupported;
        let reason = reasons.into_iter().next().unwrap_or_default();
        Err(match self.trials.iter().any(was_possible) {
            true => SessionError::EverythingFailed(reason),
            false => SessionError::NothingRuns(reason),
        })
    }
}
