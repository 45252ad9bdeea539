//! The loop over blocks and trials.

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use std::time::{Duration, Instant};

use toll_system::interrupt::Interrupt;
use toll_wire::guest::GuestTrial;
use toll_wire::{Failure, FailureKind, Numbering, Outcome, Request, Workload};

use super::guests::{self, TrialInGuest};
use super::planned::{PlannedTrial, RunningTrial};
use super::probe::ProbeOptions;
use super::request::{self, parse_metric};
use super::{Event, Guests, Observer, PrestartedProbe, Probe, RunTime, SessionEnd, SessionError};
use crate::environment::{MemoryLimit, Workspace};
use crate::plan::{Plan, TreatmentParameters};
use crate::spec::{Experiment, OutputStream};
use crate::store::{BootRecord, RunStatus, Store, TrialRecord};

/// Minimum interval between saves of ended trials to the store. A save takes half a millisecond,
/// which is as much as a short trial. Until the next save, the trials are only in memory, so a
/// measured fsync never has to flush data of the store.
const SAVE_INTERVAL: Duration = Duration::from_millis(100);

/// How strictly a run keeps its time budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeLimit {
    /// No block begins that would end past the budget. The user set the budget, or wants no
    /// verdict.
    Fixed,
    /// The block that decides may exceed the budget by a quarter.
    Stretched,
    /// Like `Stretched`, but a run ends early if even that is too short for any verdict.
    OrGivenUp,
}

/// One session of a run: from its first trial, or from where an earlier session ended.
pub struct Session<'a> {
    pub store: &'a mut Store,
    pub run_id: i64,
    pub experiment: &'a Experiment,
    /// The plan of the run. Skips are recorded here as well as in the store.
    pub plan: &'a mut Plan,
    pub workspace: &'a Workspace,
    pub probe: &'a Probe,
    pub guests: Guests<'a>,
    pub interrupt: &'a Interrupt,
    pub time_limit: TimeLimit,
    /// Trials recorded by earlier sessions, then also by this session.
    pub trials: Vec<TrialRecord>,
    /// How many of the trials are in the store, and when they were last saved.
    pub saved: (usize, Instant),
    /// Boots of guests recorded by earlier sessions, then also by this session.
    pub boots: Vec<BootRecord>,
    pub time: RunTime,
    /// Processes that the set-up left running for the trials.
    pub servers: BTreeSet<i32>,
    /// The probe of the next trial, if it was already started.
    pub prestarted: Option<PrestartedProbe>,
    /// When the claims are judged again for the progress line.
    pub next_peek: Instant,
    /// The treatments that each open question needs, as of the latest look;
    /// `None` before the first look.
    pub open: Option<Vec<Vec<usize>>>,
    /// When comparisons end, if no time is set for them.
    pub comparison_time: Option<Duration>,
}

impl<'a> Session<'a> {
    /// Limit on the memory of the probe and everything that it starts.
    pub(super) fn memory_limit(&self, treatment: usize) -> Option<&'a MemoryLimit> {
        let treatment = &self.plan.treatments[treatment];
        let parameters = TreatmentParameters::new(self.experiment, treatment).ok()?;
        self.workspace.memory_limit(parameters.memory_limit()?).ok()
    }
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
        // The clean-up runs whatever happened before, and before any error is reported.
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

    /// Runs blocks. A requested pause takes place between two trials.
    fn blocks_with_pauses(
        &mut self,
        observer: &mut dyn Observer,
    ) -> Result<SessionEnd, SessionError> {
        self.interrupt.defer_pauses();
        let end = self.blocks(observer);
        let saved = self.save_trials();
        self.prestarted = None;
        self.pause_if_asked(observer);
        self.interrupt.let_pauses();
        let end = end?;
        saved.map(|()| end)
    }

    pub(super) fn pause_if_asked(&mut self, observer: &mut dyn Observer) {
        if self.interrupt.wants_pause() && self.interrupt.signal().is_none() {
            observer.notice(&Event::Pauses);
            let pause = self.interrupt.pause();
            self.time.leave_out(pause);
            observer.notice(&Event::Continues);
        }
    }

    /// Runs blocks from the first incomplete one.
    fn blocks(&mut self, observer: &mut dyn Observer) -> Result<SessionEnd, SessionError> {
        self.time = RunTime::after(&self.trials);
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
            // Checked before a block, not after one. So a run that was killed between its last
            // trial and its end stops where it would have stopped.
            if blocks > 0 {
                let elapsed = self.time.elapsed();
                let reason = self.stop_reason(blocks, elapsed, observer);
                observer.notice(&Event::BlockEnds { blocks });
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

    /// Runs one block. Returns the signal that interrupted the block, if one did.
    fn block(
        &mut self,
        block: u32,
        done: &BTreeSet<(u32, usize)>,
        observer: &mut dyn Observer,
    ) -> Result<Option<i32>, SessionError> {
        let order = self.plan.block_order(block, self.open.as_deref());
        let is_left = |treatment: usize| {
            self.plan.treatments[treatment].skipped.is_none() && !done.contains(&(block, treatment))
        };
        let planned = |(position, treatment): (usize, usize)| PlannedTrial {
            block,
            position,
            treatment,
            is_warmup: false,
        };
        let all = order.into_iter().enumerate().map(planned);
        let todo: Vec<PlannedTrial> = all.filter(|trial| is_left(trial.treatment)).collect();
        let mut parts = self.by_boot(&todo);
        while let Some(part) = parts.pop_front() {
            let may_run_beside = |other| self.may_run_side_by_side(&todo, &part, other);
            let beside = parts.iter().position(may_run_beside);
            let interrupted = match beside.and_then(|place| parts.remove(place)) {
                Some(beside) => self.side_by_side(&todo, [part, beside], observer)?,
                None => self.one_by_one(&todo, part, done, observer)?,
            };
            if interrupted.is_some() {
                return Ok(interrupted);
            }
        }
        self.guests.end();
        let ended = self.guests.take_finished();
        self.keep_boots(ended)?;
        self.skip_unjudged(observer)?;
        Ok(None)
    }

    /// Splits a block into parts. The trials of a part share a boot, or none of them is in a guest.
    fn by_boot(&self, todo: &[PlannedTrial]) -> VecDeque<Range<usize>> {
        let boot = |trial: &PlannedTrial| self.plan.treatments[trial.treatment].boot();
        let mut end = 0;
        let parts = todo.chunk_by(|one, next| boot(one) == boot(next));
        parts
            .map(|part| {
                end += part.len();
                end - part.len()..end
            })
            .collect()
    }

    /// Runs some trials of a block. Returns the signal that interrupted them, if one did.
    fn one_by_one(
        &mut self,
        todo: &[PlannedTrial],
        part: Range<usize>,
        done: &BTreeSet<(u32, usize)>,
        observer: &mut dyn Observer,
    ) -> Result<Option<i32>, SessionError> {
        for number in part {
            let planned = todo[number];
            let treatment = &self.plan.treatments[planned.treatment];
            if treatment.skipped.is_some() {
                continue;
            }
            observer.notice(&Event::TrialStarts {
                done: number,
                of: todo.len(),
                label: &treatment.label,
            });
            let boot = treatment.boot();
            if boot.is_some_and(|boot| !self.guests.is_up(planned.block, &boot)) {
                observer.notice(&Event::GuestBoots);
            }
            let next = self.next_padding_bytes(planned.block, &todo[number + 1..], done);
            let trial = self.unpaused_trial(planned, next, observer);
            let ended = self.guests.take_finished();
            self.keep_boots(ended)?;
            let Some(trial) = trial else {
                return Ok(Some(self.interrupt.signal().unwrap_or_default()));
            };
            self.keep_trial(trial, observer)?;
        }
        Ok(None)
    }

    /// Records a trial, unless its file system was lost.
    pub(super) fn keep_trial(
        &mut self,
        trial: TrialRecord,
        observer: &mut dyn Observer,
    ) -> Result<(), SessionError> {
        if self.is_of_a_lost_file_system(&trial, observer)? {
            return Ok(());
        }
        let treatment = trial.treatment;
        observer.notice(&Event::TrialEnds(&trial));
        self.trials.push(trial);
        if self.saved.1.elapsed() >= SAVE_INTERVAL {
            self.save_trials()?;
        }
        self.give_up_if_hopeless(treatment, observer)
    }

    /// Saves the trials that are not in the store yet.
    fn save_trials(&mut self) -> Result<(), SessionError> {
        let new = &self.trials[self.saved.0..];
        if !new.is_empty() {
            self.store.add_trials(self.run_id, new)?;
        }
        self.saved = (self.trials.len(), Instant::now());
        Ok(())
    }

    /// Records guests that have ended.
    pub(super) fn keep_boots(&mut self, boots: Vec<BootRecord>) -> Result<(), SessionError> {
        for boot in boots {
            self.store.add_boot(self.run_id, &boot)?;
            self.boots.push(boot);
        }
        Ok(())
    }

    /// Runs one trial, and repeats it if a pause ended it. Returns `None` if an interrupt ended the
    /// trial.
    fn unpaused_trial(
        &mut self,
        planned: PlannedTrial,
        next_padding_bytes: Option<usize>,
        observer: &mut dyn Observer,
    ) -> Option<TrialRecord> {
        loop {
            self.pause_if_asked(observer);
            let trial = self.trial(planned, next_padding_bytes);
            if trial.is_some() || !self.interrupt.wants_pause() {
                return trial;
            }
            if self.interrupt.signal().is_some() {
                return None;
            }
        }
    }

    /// Returns the padding for the probe of the next trial, if it runs on this machine. The next
    /// trial is in this block or in the next one, which begins unless the run ends.
    fn next_padding_bytes(
        &self,
        block: u32,
        rest: &[PlannedTrial],
        done: &BTreeSet<(u32, usize)>,
    ) -> Option<usize> {
        let runs = |treatment: usize| self.plan.treatments[treatment].skipped.is_none();
        let (block, treatment) = match rest.iter().find(|next| runs(next.treatment)) {
            Some(next) => (block, next.treatment),
            // At a look the run may end, or continue with other treatments.
            None if self.is_look(block + 1) => return None,
            None => {
                let order = self.plan.block_order(block + 1, self.open.as_deref());
                let is_left = |next: &usize| runs(*next) && !done.contains(&(block + 1, *next));
                (block + 1, order.into_iter().find(is_left)?)
            }
        };
        match self.plan.treatments[treatment].boot() {
            Some(_) => None,
            None => Some(self.plan.padding_bytes(block, treatment)),
        }
    }

    fn trial(
        &mut self,
        planned: PlannedTrial,
        next_padding_bytes: Option<usize>,
    ) -> Option<TrialRecord> {
        let running = RunningTrial::begin(planned);
        let PlannedTrial {
            block, treatment, ..
        } = planned;
        let is_in_guest = self.plan.treatments[treatment].boot().is_some();
        let outcome = match self.numbered_request(planned) {
            Err(failure) => Outcome::Failed(failure),
            Ok(request) if is_in_guest => {
                // The probe was started for a trial that was skipped meanwhile.
                self.prestarted = None;
                self.guests.trial(&self.in_guest(planned, request))?
            }
            Ok(request) => {
                let limit = self.memory_limit(treatment);
                let options = ProbeOptions {
                    admit: &|probe| limit.map_or(Ok(()), |limit| limit.admit(probe)),
                    padding_bytes: self.plan.padding_bytes(block, treatment),
                    next_padding_bytes,
                    timeout: self.experiment.run.trial_timeout(false),
                };
                self.probe
                    .run(&request, &options, &mut self.prestarted, self.interrupt)?
            }
        };
        Some(self.ended(running, outcome))
    }

    /// Builds the request to the guest in which a trial is planned.
    pub(super) fn in_guest(&self, planned: PlannedTrial, request: Request) -> TrialInGuest {
        let PlannedTrial {
            block, treatment, ..
        } = planned;
        let boot = self.plan.treatments[treatment].boot();
        let padding_bytes = self.plan.padding_bytes(block, treatment);
        let timeout = self.experiment.run.trial_timeout(true);
        TrialInGuest {
            block,
            boot: boot.expect("it is planned in a guest"),
            asked: GuestTrial {
                request,
                padding_bytes: u32::try_from(padding_bytes).unwrap_or(u32::MAX),
                timeout_ms: u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX),
                knobs: guests::knobs(self.experiment, &self.plan.treatments[treatment]),
                wants_symbols: false,
            },
            seed: self.plan.trial_seed(block, treatment),
        }
    }

    /// Builds the record of a trial that has an outcome.
    pub(super) fn ended(&self, running: RunningTrial, outcome: Outcome) -> TrialRecord {
        let planned = running.planned;
        let mut trial = TrialRecord {
            block: planned.block,
            position: u32::try_from(planned.position).expect("plans are limited"),
            treatment: planned.treatment,
            started_at: running.started_at,
            ..TrialRecord::default()
        };
        trial.take_outcome(self.with_parsed_metrics(outcome));
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        trial.wall_ns = ns(running.begin.elapsed());
        trial.run_ns = ns(self.time.elapsed());
        trial
    }

    /// Builds the request for a trial, and numbers the iterations of a command.
    pub(super) fn numbered_request(&self, planned: PlannedTrial) -> Result<Request, Failure> {
        let seed = self.plan.trial_seed(planned.block, planned.treatment);
        let unsupported = |message| Failure {
            kind: FailureKind::Unsupported,
            message,
        };
        let mut request = self.request(planned.treatment, seed).map_err(unsupported)?;
        if let Workload::Command(command) = &mut request.workload {
            command.numbering = Some(self.numbering(planned));
        }
        Ok(request)
    }

    /// Numbers the iterations of one trial. A command's iterations, including its twin's, are
    /// counted from 0 without gaps.
    fn numbering(&self, planned: PlannedTrial) -> Numbering {
        let treatment = planned.treatment;
        let run = &self.experiment.run;
        let [warmups, iterations] = [run.warmup_iterations, run.iterations].map(u64::from);
        let is_twin = |other: &usize| self.plan.are_twins(treatment, *other);
        let count = |range: std::ops::Range<usize>| range.filter(is_twin).count() as u64;
        let in_warmup_block = count(0..self.plan.treatments.len());
        if planned.is_warmup {
            let before = u64::from(planned.block) * in_warmup_block + count(0..treatment);
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

    /// Adds metrics parsed from a command's output to the trial's samples.
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

    /// Runs whole blocks whose results are thrown away.
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
                let planned = PlannedTrial {
                    block,
                    position: treatment,
                    treatment,
                    is_warmup: true,
                };
                let trial = self.unpaused_trial(planned, None, observer);
                if trial.is_none() {
                    return self.interrupt.signal();
                }
            }
        }
        None
    }
}
