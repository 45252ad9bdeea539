//! Skips treatments that cannot run, or can no longer run.

use super::{Event, Guests, Observer, Session, SessionError};
use crate::claim::emulation;
use crate::environment::Fault;
use crate::plan::TreatmentParameters;
use crate::reason::Reason;
use crate::store::{TrialRecord, TrialState};

/// A treatment is given up after this many failures in a row. Its errors are kept, and the time
/// goes to treatments that work.
const FAILURES_IN_A_ROW_MAX: usize = 3;

impl Session<'_> {
    /// Skips treatments whose file system or memory is not available.
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
                self.skip(index, reason.into(), observer)?;
            }
        }
        Ok(())
    }

    /// Whether a trial does not count because its file system is gone, which is not the treatment's
    /// fault. Skips all treatments on that file system. Without the work directory the session
    /// ends, and the trial is repeated when the run continues.
    pub(super) fn is_of_a_lost_file_system(
        &mut self,
        trial: &TrialRecord,
        observer: &mut dyn Observer,
    ) -> Result<bool, SessionError> {
        let own = self.file_system(trial.treatment);
        let is_there = own
            .as_ref()
            .is_none_or(|own| self.workspace.is_mounted(own));
        if trial.state == TrialState::Completed && is_there {
            return Ok(false);
        }
        let is_used = |name: &str| !self.those_on(name).is_empty();
        match self.workspace.fault(&is_used) {
            None => Ok(false),
            Some(Fault::WorkDirectory(why)) => Err(SessionError::WorkDirectory(why)),
            Some(Fault::FileSystem { name, why }) => {
                let reason = format!("its file system was lost during the run: {why}");
                for index in self.those_on(&name) {
                    self.skip(index, reason.clone().into(), observer)?;
                }
                Ok(self.plan.treatments[trial.treatment].skipped.is_some())
            }
        }
    }

    /// Treatments that still run on a file system.
    fn those_on(&self, file_system: &str) -> Vec<usize> {
        let treatments = self.plan.treatments.iter();
        let running = treatments.filter(|treatment| treatment.skipped.is_none());
        let all = running.map(|treatment| treatment.index);
        all.filter(|index| self.file_system(*index).as_deref() == Some(file_system))
            .collect()
    }

    /// The file system of a treatment on this machine, by its name in the work directory.
    fn file_system(&self, treatment: usize) -> Option<String> {
        let treatment = &self.plan.treatments[treatment];
        let parameters = TreatmentParameters::new(self.experiment, treatment);
        let parameters = parameters.ok().filter(|one| one.guest.is_none());
        parameters.map(|parameters| parameters.file_system())
    }

    fn skip(
        &mut self,
        index: usize,
        reason: Reason,
        observer: &mut dyn Observer,
    ) -> Result<(), SessionError> {
        self.store.skip_treatment(self.run_id, index, &reason)?;
        let treatment = &mut self.plan.treatments[index];
        observer.notice(&Event::Skipped {
            label: &treatment.label,
            reason: &reason.to_string(),
        });
        treatment.skipped = Some(reason);
        Ok(())
    }

    /// If only claims matter, skips the emulated treatments whose counts no claim judges. The
    /// caller does so at the end of a block, so each of these treatments has run once, and its
    /// times can be shown.
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
                self.skip(index, Reason::Emulated, observer)?;
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
            return self.skip(treatment, message.into(), observer);
        }
        let all_failed = recent
            .iter()
            .all(|trial| trial.state != TrialState::Completed);
        if recent.len() == FAILURES_IN_A_ROW_MAX && all_failed {
            let reason = Reason::GivenUp {
                failures: FAILURES_IN_A_ROW_MAX,
                message,
            };
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
        let reason = reasons.first().map_or_else(String::new, Reason::to_string);
        Err(if self.trials.iter().any(was_possible) {
            SessionError::EverythingFailed(reason)
        } else {
            SessionError::NothingRuns(reason)
        })
    }
}
