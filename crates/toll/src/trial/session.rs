//! The loop over blocks and trials.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use toll_wire::{Failure, FailureKind, Numbering, Outcome, Request, Workload};

use super::guests::InGuest;
use super::probe::ProbeOptions;
use super::request::{self, parse_metric};
use super::{Event, Guests, Interrupt, Observer, PrestartedProbe, Probe, SessionEnd, SessionError};
use crate::environment::Workspace;
use crate::plan::{Plan, TreatmentParameters};
use crate::spec::{Experiment, OutputStream};
use crate::store::{BootRecord, RunStatus, Store, TrialRecord};

/// One session of a run: from its first trial, or from where an earlier one ended.
pub struct Session<'a> {
    pub store: &'a mut Store,
    pub run_id: i64,
    pub experiment: &'a Experiment,
    /// Its plan; skips are noted here as well as in the store.
    pub plan: &'a mut Plan,
    pub workspace: &'a Workspace,
    pub probe: &'a Probe,
    pub guests: Guests<'a>,
    pub interrupt: &'a Interrupt,
    /// Trials recorded by earlier sessions; grows.
    pub trials: Vec<TrialRecord>,
    /// Boots of guests recorded by earlier sessions; grows.
    pub boots: Vec<BootRecord>,
    /// Time in pauses, which is no time of the run; grows.
    pub paused: Duration,
    /// Processes that the set-up left running for the trials.
    pub servers: BTreeSet<i32>,
    /// The probe of the next trial, if it was started already.
    pub prestarted: Option<PrestartedProbe>,
    /// When the claims are judged again for the progress line.
    pub next_peek: Instant,
    /// The treatments that each open question needs, as the latest look found them;
    /// absent before the first look.
    pub open: Option<Vec<Vec<usize>>>,
}

/// Where a trial stands in a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct TrialPlace {
    block: u32,
    /// Position in the block.
    position: usize,
    /// Its block is a warm-up, which is thrown away; those have numbers of their own.
    is_warmup: bool,
}

impl Session<'_> {
    /// Runs blocks until the stopping rule, the time budget or a signal ends
    /// the run.
    pub fn run(&mut self, observer: &mut dyn Observer) -> Result<SessionEnd, SessionError> {
        self.skip_impossible(observer)?;
        self.require_some_treatment()?;
        let mut set_up = BTreeSet::new();
        let outcome = match self.set_up(&mut set_up) {
            Ok(None) => self.blocks_with_pauses(observer),
            Ok(Some(signal)) => Ok(SessionEnd::Interrupted(signal)),
            Err(error) => Err(error),
        };
        if let Ok(SessionEnd::Complete(reason)) = &outcome {
            self.store
                .set_status(self.run_id, RunStatus::Complete, Some(reason))?;
        }
        // What set-up made is cleaned up whatever happened in between, and
        // before any error is told.
        let cleaned = self.clean_up(&set_up);
        self.end_servers();
        match (outcome?, cleaned) {
            (end, Ok(None)) => Ok(end),
            (_, Ok(Some(signal))) => Ok(SessionEnd::Interrupted(signal)),
            (SessionEnd::Complete(_), Err(error)) => Err(error),
            (SessionEnd::Interrupted(signal), Err(error)) => {
                observer.notice(&Event::Trouble(&error.to_string()));
                Ok(SessionEnd::Interrupted(signal))
            }
        }
    }

    /// Runs blocks; if the program is to pause, it does so between two trials.
    fn blocks_with_pauses(
        &mut self,
        observer: &mut dyn Observer,
    ) -> Result<SessionEnd, SessionError> {
        self.interrupt.defer_pauses();
        let end = self.blocks(observer);
        self.prestarted = None;
        self.pause_if_asked(observer);
        self.interrupt.let_pauses();
        end
    }

    fn pause_if_asked(&mut self, observer: &mut dyn Observer) {
        if self.interrupt.wants_pause() && self.interrupt.signal().is_none() {
            observer.notice(&Event::Pauses);
            self.paused += self.interrupt.pause();
            observer.notice(&Event::Continues);
        }
    }

    /// Runs blocks from the first that is not complete.
    fn blocks(&mut self, observer: &mut dyn Observer) -> Result<SessionEnd, SessionError> {
        let earlier: u64 = self.trials.iter().map(|trial| trial.wall_ns).sum();
        let begin = Instant::now();
        let elapsed = |session: &Self| {
            let here = begin.elapsed().saturating_sub(session.paused);
            here + Duration::from_nanos(earlier)
        };
        let done: BTreeSet<(u32, usize)> = self
            .trials
            .iter()
            .map(|trial| (trial.block, trial.treatment))
            .collect();
        if done.is_empty()
            && let Some(signal) = self.warm_up(observer)
        {
            return Ok(SessionEnd::Interrupted(signal));
        }
        let mut blocks = self.complete_blocks(&done);
        loop {
            // Asked before a block and not after one, so that a run which was
            // killed between its last trial and its end stops where it would
            // have stopped.
            if blocks > 0 {
                let elapsed = elapsed(self);
                let reason = self.stop_reason(blocks, elapsed, observer);
                observer.notice(&Event::BlockEnds { blocks, elapsed });
                if let Some(reason) = reason {
                    return Ok(SessionEnd::Complete(reason));
                }
            }
            if let Some(signal) = self.block(blocks, &done, observer)? {
                return Ok(SessionEnd::Interrupted(signal));
            }
            self.require_some_treatment()?;
            blocks += 1;
        }
    }

    /// Runs one block; `Some` signal if it was interrupted.
    fn block(
        &mut self,
        block: u32,
        done: &BTreeSet<(u32, usize)>,
        observer: &mut dyn Observer,
    ) -> Result<Option<i32>, SessionError> {
        let order = self.plan.block_order(block, self.open.as_deref());
        let runs = |treatment: &&usize| self.plan.treatments[**treatment].skipped.is_none();
        let of = order.iter().filter(runs).count();
        let mut ran = 0;
        for (position, treatment) in order.iter().copied().enumerate() {
            if done.contains(&(block, treatment))
                || self.plan.treatments[treatment].skipped.is_some()
            {
                continue;
            }
            let label = &self.plan.treatments[treatment].label;
            observer.notice(&Event::TrialStarts {
                done: ran,
                of,
                label,
            });
            let boot = self.plan.treatments[treatment].boot();
            if boot.is_some_and(|boot| !self.guests.is_up(block, &boot)) {
                observer.notice(&Event::GuestBoots);
            }
            let next = self.next_padding_bytes(block, &order[position + 1..], done);
            let place = TrialPlace {
                block,
                position,
                is_warmup: false,
            };
            let trial = self.unpaused_trial(place, treatment, next, observer);
            self.keep_boots()?;
            let Some(trial) = trial else {
                return Ok(Some(self.interrupt.signal().unwrap_or_default()));
            };
            if self.is_of_a_lost_file_system(&trial, observer)? {
                continue;
            }
            self.store.add_trial(self.run_id, &trial)?;
            observer.notice(&Event::TrialEnds(&trial));
            self.trials.push(trial);
            self.give_up_if_hopeless(treatment, observer)?;
            ran += 1;
        }
        self.guests.end();
        self.keep_boots()?;
        self.skip_unjudged(observer)?;
        Ok(None)
    }

    /// Records the guests that have ended.
    fn keep_boots(&mut self) -> Result<(), SessionError> {
        for boot in self.guests.take_finished() {
            self.store.add_boot(self.run_id, &boot)?;
            self.boots.push(boot);
        }
        Ok(())
    }

    /// Runs one trial; one that a pause ended is measured anew. `None` if an
    /// interrupt ended it.
    fn unpaused_trial(
        &mut self,
        place: TrialPlace,
        treatment: usize,
        next_padding_bytes: Option<usize>,
        observer: &mut dyn Observer,
    ) -> Option<TrialRecord> {
        loop {
            self.pause_if_asked(observer);
            let trial = self.trial(place, treatment, next_padding_bytes);
            if trial.is_some() || !self.interrupt.wants_pause() {
                return trial;
            }
            if self.interrupt.signal().is_some() {
                return None;
            }
        }
    }

    /// Padding of the trial that comes after one, if it has a probe here: of the
    /// rest of its block, or of the next block, which is begun unless the run ends.
    fn next_padding_bytes(
        &self,
        block: u32,
        rest: &[usize],
        done: &BTreeSet<(u32, usize)>,
    ) -> Option<usize> {
        let runs = |block: u32, treatment: &&usize| {
            let is_skipped = self.plan.treatments[**treatment].skipped.is_some();
            !is_skipped && !done.contains(&(block, **treatment))
        };
        let (block, treatment) = match rest.iter().find(|treatment| runs(block, treatment)) {
            Some(treatment) => (block, *treatment),
            // At a look the run may end, and what it goes on with may change.
            None if self.is_look(block + 1) => return None,
            None => {
                let order = self.plan.block_order(block + 1, self.open.as_deref());
                let first = order.iter().find(|treatment| runs(block + 1, treatment));
                (block + 1, *first?)
            }
        };
        match self.plan.treatments[treatment].boot() {
            Some(_) => None,
            None => Some(self.plan.padding_bytes(block, treatment)),
        }
    }

    fn trial(
        &mut self,
        place: TrialPlace,
        treatment: usize,
        next_padding_bytes: Option<usize>,
    ) -> Option<TrialRecord> {
        let block = place.block;
        let started_at = jiff::Timestamp::now().to_string();
        let begin = Instant::now();
        let seed = self.plan.trial_seed(block, treatment);
        let padding_bytes = self.plan.padding_bytes(block, treatment);
        let boot = self.plan.treatments[treatment].boot();
        let outcome = match (self.numbered_request(place, treatment, seed), boot) {
            (Ok(request), None) => {
                let limit_bytes = self.memory_limit_bytes(treatment);
                let options = ProbeOptions {
                    limit: limit_bytes.and_then(|bytes| self.workspace.memory_limit(bytes).ok()),
                    padding_bytes,
                    next_padding_bytes,
                    timeout: self.experiment.run.trial_timeout(false),
                };
                self.probe
                    .run(&request, &options, &mut self.prestarted, self.interrupt)?
            }
            (Ok(request), Some(boot)) => {
                // Started for a trial that was skipped meanwhile.
                self.prestarted = None;
                self.guests.trial(
                    &boot,
                    InGuest {
                        treatment: &self.plan.treatments[treatment],
                        block,
                        request,
                        padding_bytes,
                        seed,
                    },
                )?
            }
            (Err(message), _) => Outcome::Failed(Failure {
                kind: FailureKind::Unsupported,
                message,
            }),
        };
        let mut trial = TrialRecord {
            block,
            position: u32::try_from(place.position).expect("plans are limited"),
            treatment,
            started_at,
            ..TrialRecord::default()
        };
        trial.take_outcome(self.with_parsed_metrics(outcome));
        trial.wall_ns = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        Some(trial)
    }

    /// The request for a trial. It numbers the iterations of a command.
    fn numbered_request(
        &self,
        place: TrialPlace,
        treatment: usize,
        seed: u64,
    ) -> Result<Request, String> {
        let mut request = self.request(treatment, seed)?;
        if let Workload::Command(command) = &mut request.workload {
            command.numbering = Some(self.numbering(place, treatment));
        }
        Ok(request)
    }

    /// Numbers of the iterations of one trial, so that those of a command are counted
    /// from 0 without a gap, its twin's among them.
    fn numbering(&self, place: TrialPlace, treatment: usize) -> Numbering {
        let run = &self.experiment.run;
        let [warmups, iterations] = [run.warmup_iterations, run.iterations].map(u64::from);
        let is_twin = |other: &usize| self.plan.are_twins(treatment, *other);
        let count = |range: std::ops::Range<usize>| range.filter(is_twin).count() as u64;
        let in_warmup_block = count(0..self.plan.treatments.len());
        if place.is_warmup {
            let before = u64::from(place.block) * in_warmup_block + count(0..treatment);
            return Numbering {
                warmups_before: before * (warmups + iterations),
                iterations_before: None,
            };
        }
        let thrown_away = u64::from(run.warmup_blocks) * in_warmup_block;
        let recorded = self.trials.iter().map(|trial| trial.treatment);
        let before = recorded.filter(is_twin).count() as u64;
        Numbering {
            warmups_before: thrown_away * (warmups + iterations) + before * warmups,
            iterations_before: Some(before * iterations),
        }
    }

    pub(super) fn request(&self, treatment: usize, seed: u64) -> Result<Request, String> {
        let treatment = &self.plan.treatments[treatment];
        request::request(self.experiment, treatment, self.workspace, seed)
    }

    fn memory_limit_bytes(&self, treatment: usize) -> Option<u64> {
        let parameters =
            TreatmentParameters::new(self.experiment, &self.plan.treatments[treatment]);
        parameters.ok()?.memory_limit()
    }

    /// Adds metrics parsed from a command's output to its samples.
    fn with_parsed_metrics(&self, outcome: Outcome) -> Outcome {
        let Outcome::Completed(mut data) = outcome else {
            return outcome;
        };
        for sample in &mut data.samples {
            for (name, metric) in &self.experiment.parsed_metrics {
                let output = if metric.stream == OutputStream::Stderr {
                    &sample.stderr
                } else {
                    &sample.stdout
                };
                let output = output.as_deref().unwrap_or_default();
                match parse_metric(name, &metric.pattern, output) {
                    Ok(value) => {
                        sample.metrics.insert(name.clone(), value);
                    }
                    Err(message) => {
                        let kind = FailureKind::Failed;
                        return Outcome::Failed(Failure { kind, message });
                    }
                }
            }
        }
        Outcome::Completed(data)
    }

    /// Whole blocks whose results are thrown away.
    fn warm_up(&mut self, observer: &mut dyn Observer) -> Option<i32> {
        let of = self.plan.treatments.len();
        for block in 0..self.experiment.run.warmup_blocks {
            for treatment in 0..of {
                if self.plan.treatments[treatment].skipped.is_some() {
                    continue;
                }
                let label = format!("warm-up: {}", self.plan.treatments[treatment].label);
                let starts = Event::TrialStarts {
                    done: treatment,
                    of,
                    label: &label,
                };
                observer.notice(&starts);
                let place = TrialPlace {
                    block,
                    position: treatment,
                    is_warmup: true,
                };
                let trial = self.unpaused_trial(place, treatment, None, observer);
                if trial.is_none() {
                    return self.interrupt.signal();
                }
            }
        }
        None
    }
}
