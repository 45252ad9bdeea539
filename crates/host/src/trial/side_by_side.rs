//! Trials in two guests at the same time.
//!
//! If clocks count instructions, a second guest does not change the counts of the first. A guest
//! whose times are measured runs alone.

use std::ops::Range;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{available_parallelism, scope};

use toll_wire::{Failure, Outcome};

use super::guests::TrialInGuest;
use super::planned::{PlannedTrial, RunningTrial};
use super::{Event, Guests, Observer, Session, SessionError};
use crate::environment::memory_obstacle;
use crate::spec::guest::GuestParameters;
use crate::store::BootRecord;

/// The session's view of one of two guests.
struct Side {
    /// Trials that the guest has not been sent yet.
    rest: Range<usize>,
    /// Sends requests to the guest, which ends once this sender is dropped.
    ask: Option<Sender<Result<TrialInGuest, Failure>>>,
    running: Option<RunningTrial>,
}

/// A message from one of two guests.
struct Answer {
    side: usize,
    /// The trial's outcome. `None` if an interrupt ended the trial, or there was no trial.
    outcome: Option<Outcome>,
    /// Boots that have ended.
    boots: Vec<BootRecord>,
}

impl Session<'_> {
    /// Whether the guests of two parts of a block may run at the same time, and fit into the
    /// machine's CPUs and memory.
    pub(super) fn may_run_side_by_side(
        &self,
        todo: &[PlannedTrial],
        one: &Range<usize>,
        other: &Range<usize>,
    ) -> bool {
        let guest = |part: &Range<usize>| {
            let boot = self.plan.treatments[todo[part.start].treatment].boot()?;
            let guest = GuestParameters::read(&boot).ok();
            guest.filter(GuestParameters::counts_instructions)
        };
        let (Some(one), Some(other)) = (guest(one), guest(other)) else {
            return false;
        };
        let memory_bytes = one.memory_bytes.saturating_add(other.memory_bytes);
        available_parallelism().is_ok_and(|cpus| cpus.get() > 1)
            && memory_obstacle(memory_bytes, "none").is_none()
    }

    /// Runs the trials of two guests at the same time, and the trials of each guest one after
    /// another. Returns the signal that interrupted the trials, if one did.
    pub(super) fn side_by_side(
        &mut self,
        todo: &[PlannedTrial],
        parts: [Range<usize>; 2],
        observer: &mut dyn Observer,
    ) -> Result<Option<i32>, SessionError> {
        self.prestarted = None;
        self.guests.end();
        let ended = self.guests.take_finished();
        self.keep_boots(ended)?;
        let (first, count) = (parts[0].start, parts[0].len() + parts[1].len());
        let ran = scope(|scope| {
            let (answer, answers) = channel();
            // A guest ends with the thread that booted it. So each guest has its own thread.
            let begin = |(number, rest): (usize, Range<usize>)| {
                let (ask, asked) = channel();
                let (guests, answer) = (self.guests.beside(number), answer.clone());
                scope.spawn(move || serve(guests, number, &asked, &answer));
                Side {
                    rest,
                    ask: Some(ask),
                    running: None,
                }
            };
            let mut sides: Vec<Side> = parts.into_iter().enumerate().map(begin).collect();
            // The answers end when both threads have ended.
            drop(answer);
            let mut ran = 0;
            self.pause_if_asked(observer);
            for side in &mut sides {
                self.ask_next(side, todo, first, observer);
            }
            observer.notice(&Event::GuestBoots);
            for answer in answers {
                self.keep_boots(answer.boots)?;
                let running = sides[answer.side].running.take();
                if let (Some(running), Some(outcome)) = (running, answer.outcome) {
                    let trial = self.ended(running, outcome);
                    self.keep_trial(trial, observer)?;
                    ran += 1;
                }
                let are_at_rest = sides.iter().all(|side| side.running.is_none());
                if are_at_rest {
                    self.pause_if_asked(observer);
                }
                if are_at_rest || !self.interrupt.wants_pause() {
                    for side in sides.iter_mut().filter(|side| side.running.is_none()) {
                        self.ask_next(side, todo, first + ran, observer);
                    }
                }
            }
            Ok::<usize, SessionError>(ran)
        })?;
        Ok((ran < count).then(|| self.interrupt.signal().unwrap_or_default()))
    }

    /// Sends a guest its next trial, or makes it end.
    fn ask_next(
        &self,
        side: &mut Side,
        todo: &[PlannedTrial],
        ran: usize,
        observer: &mut dyn Observer,
    ) {
        let next = match self.interrupt.signal() {
            None => side.rest.next(),
            Some(_) => None,
        };
        let (Some(number), Some(ask)) = (next, &side.ask) else {
            side.ask = None;
            return;
        };
        let planned = todo[number];
        observer.notice(&Event::TrialStarts {
            done: ran,
            of: todo.len(),
            label: &self.plan.treatments[planned.treatment].label,
        });
        side.running = Some(RunningTrial::begin(planned));
        let request = self.numbered_request(planned);
        let asked = request.map(|request| self.in_guest(planned, request));
        // The guest's thread receives until the sender is dropped.
        let _ = ask.send(asked);
    }
}

/// Runs the trials that are requested, in order.
fn serve(
    mut guests: Guests<'_>,
    side: usize,
    asked: &Receiver<Result<TrialInGuest, Failure>>,
    answer: &Sender<Answer>,
) {
    let say = |outcome, boots| {
        // Nobody receives the answer if the session cannot continue.
        let _ = answer.send(Answer {
            side,
            outcome,
            boots,
        });
    };
    for trial in asked {
        let outcome = match trial {
            Ok(trial) => guests.trial(&trial),
            Err(failure) => Some(Outcome::Failed(failure)),
        };
        let is_interrupted = outcome.is_none();
        say(outcome, guests.take_finished());
        if is_interrupted {
            return;
        }
    }
    guests.end();
    say(None, guests.take_finished());
}
