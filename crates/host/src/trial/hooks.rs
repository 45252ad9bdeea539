//! Commands around the trials: set-up and clean-up.

use std::collections::BTreeSet;

use toll_system::children;
use toll_wire::{Outcome, Request};

use super::probe::ProbeOptions;
use super::{Session, SessionError, request};

/// Which processes a hook may leave running.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Leaves {
    /// The hook may leave servers for the trials.
    Servers,
    Nothing,
}

impl Session<'_> {
    /// Runs the set-up once for each treatment that runs, and adds these treatments to `done`.
    /// Returns the signal that interrupted the set-up, if one did.
    pub(super) fn set_up(
        &mut self,
        done: &mut BTreeSet<usize>,
    ) -> Result<Option<i32>, SessionError> {
        let Some(template) = self.experiment.workload.setup.as_deref() else {
            // Clean-up makes sense without a set-up, too.
            let running = self.plan.treatments.iter().filter(|t| t.skipped.is_none());
            done.extend(running.map(|treatment| treatment.index));
            return Ok(None);
        };
        let mut seen = BTreeSet::new();
        for index in 0..self.plan.treatments.len() {
            if self.plan.treatments[index].skipped.is_some() {
                continue;
            }
            // Added before the set-up runs, since a set-up that fails half-way leaves things
            // behind, too.
            done.insert(index);
            let before = children::of_this_process();
            let ran = self.hook(template, index, Leaves::Servers, &mut seen);
            self.note_servers(&before);
            match ran {
                Some(Ok(())) => {}
                Some(Err(message)) => return Err(SessionError::Setup(message)),
                None => return Ok(self.interrupt.signal()),
            }
        }
        Ok(None)
    }

    /// Runs the clean-up for each treatment whose set-up ran, even after a clean-up fails. The
    /// signal that ended the run does not end the clean-up. A new signal does, and is returned.
    pub(super) fn clean_up(&self, set_up: &BTreeSet<usize>) -> Result<Option<i32>, SessionError> {
        let Some(template) = &self.experiment.workload.cleanup else {
            return Ok(None);
        };
        self.interrupt.forget();
        let mut seen = BTreeSet::new();
        let mut first_error = None;
        for &index in set_up {
            match self.hook(template, index, Leaves::Nothing, &mut seen) {
                Some(Ok(())) => {}
                Some(Err(message)) => {
                    first_error = first_error.or(Some(SessionError::Cleanup(message)));
                }
                None => return Ok(self.interrupt.signal()),
            }
        }
        first_error.map_or(Ok(None), Err)
    }

    /// Records the processes that a set-up left running for the trials. The next start kills them
    /// if this program is killed.
    fn note_servers(&mut self, before: &BTreeSet<i32>) {
        let left = &children::of_this_process() - before;
        self.servers.extend(&left);
        // A set-up whose servers are not recorded is still better than none.
        let _ = self.workspace.note_processes(&left);
    }

    /// Kills the processes that the set-up left running.
    pub(super) fn end_servers(&mut self) {
        if self.servers.is_empty() {
            return;
        }
        // Guests are children, too, and are ended elsewhere.
        let others = &children::of_this_process() - &std::mem::take(&mut self.servers);
        children::end_all_but(&others);
    }

    /// Runs a hook, unless the same command has already run. Twins share a hook, and so do
    /// treatments that the template does not distinguish. Returns `None` if a signal interrupted
    /// the hook.
    fn hook(
        &self,
        template: &str,
        index: usize,
        leaves: Leaves,
        seen: &mut BTreeSet<String>,
    ) -> Option<Result<(), String>> {
        let treatment = &self.plan.treatments[index];
        let request = match request::hook(self.experiment, treatment, template, self.workspace) {
            Ok(request) => Request {
                may_leave_processes: leaves == Leaves::Servers,
                ..request
            },
            Err(message) => return Some(Err(message)),
        };
        if !seen.insert(toll_wire::encode(&request)) {
            return Some(Ok(()));
        }
        let options = ProbeOptions {
            admit: &|_| Ok(()),
            padding_bytes: 0,
            next_padding_bytes: None,
            timeout: self.experiment.run.trial_timeout(false),
        };
        let outcome = self
            .probe
            .run(&request, &options, &mut None, self.interrupt)?;
        Some(match outcome {
            Outcome::Completed(_) => Ok(()),
            Outcome::Failed(failure) => Err(failure.message),
        })
    }
}
