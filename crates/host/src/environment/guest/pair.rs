//! A single guest, or two guests that are joined by a network.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

use rustix::event::PollFlags;
use toll_wire::guest::{GuestTrial, PairSide};
use toll_wire::{Failure, FailureKind, Outcome};

use super::boot::{Boot, Card};
use super::disk::GuestDisk;
use super::life::{ANSWER_GRACE, Guest, GuestFailure};
use super::port::{PortEnd, Wait, wait_for_any};
use super::spec::{AcceleratorChoice, GuestSpec};

/// Both sides, in the order that all lists of both sides have.
const SIDES: [PairSide; 2] = [PairSide::Main, PairSide::Partner];

/// A guest, or two guests of the same kind that are joined by one virtio network card each. Nobody
/// else is on that network, not even the host. When one guest ends, both end: otherwise its peer
/// would wait for ever.
#[derive(Debug)]
pub struct GuestGroup {
    guests: Vec<Guest>,
}

impl GuestGroup {
    /// Boots a guest on each disk, the main one first. If one guest does not come up, neither
    /// leaves anything behind.
    pub fn boot(
        spec: &GuestSpec,
        disks: &[&GuestDisk],
        interrupted: &dyn Fn() -> bool,
    ) -> Result<Self, GuestFailure> {
        let [main, partner] = disks else {
            let guests = vec![Guest::boot(spec, disks[0], interrupted)?];
            return Ok(Self { guests });
        };
        let boot = |spec, disk, card| {
            let boot = Boot {
                spec,
                disk,
                log: None,
                card,
                interrupted,
            };
            Guest::start(&boot)
        };
        let mut main = boot(spec, main, Card::Main)?;
        let cable = main.cable.take();
        let cable = cable.expect("the main guest of a pair has a cable");
        // The accelerator is chosen once for both guests.
        let spec = GuestSpec {
            accelerator: AcceleratorChoice::Only(main.accelerator()),
            counts_functions: false,
            has_shared_directory: false,
            ..spec.clone()
        };
        let partner =
            boot(&spec, partner, Card::Partner(&cable)).map_err(|failure| match failure {
                GuestFailure::Failed(why) => {
                    GuestFailure::Failed(format!("cannot boot the partner: {why}"))
                }
                other => other,
            })?;
        let guests = vec![main, partner];
        Ok(Self { guests })
    }

    pub fn main(&self) -> &Guest {
        &self.guests[0]
    }

    pub fn partner(&self) -> Option<&Guest> {
        self.guests.get(1)
    }

    /// Whether all guests still accept requests.
    pub fn is_alive(&self) -> bool {
        self.guests.iter().all(Guest::is_alive)
    }

    /// Runs a trial that has one part in each guest, all at once. Returns `None` if an interrupt
    /// ended the trial and the guests.
    ///
    /// The outcome is the main guest's if both parts complete. Otherwise it is the failure with its
    /// side; of two failures, the one that explains the other. Once a part has failed, the other
    /// part has `ANSWER_GRACE` left to notice. If that part does not end in time, or a guest dies,
    /// both guests are killed.
    pub fn trial(
        &mut self,
        parts: &[GuestTrial],
        interrupted: &dyn Fn() -> bool,
    ) -> Option<Outcome> {
        if let ([guest], [part]) = (&mut self.guests[..], parts) {
            return guest.trial(part, interrupted);
        }
        let answers = self.answers(parts, interrupted);
        if !self.is_alive() {
            self.guests.iter_mut().for_each(Guest::give_up);
        }
        answers.map(joined)
    }

    /// Returns how the parts ended, in the order in which their ends became known.
    fn answers(
        &mut self,
        parts: &[GuestTrial],
        interrupted: &dyn Fn() -> bool,
    ) -> Option<Vec<(PairSide, Outcome)>> {
        let guests = self.guests.iter().zip(parts);
        let limit = guests.map(|(guest, part)| guest.answer_limit(part)).max();
        let mut deadline = Instant::now() + limit.expect("there are two");
        let mut answers: Vec<(PairSide, Outcome)> = Vec::new();
        for ((guest, part), side) in self.guests.iter_mut().zip(parts).zip(SIDES) {
            let wait = Wait {
                deadline,
                interrupted,
            };
            if let Err(gone) = guest.ask(part, &wait) {
                answers.push((side, guest.outcome(Err(gone))?));
                return Some(answers);
            }
        }
        while self.is_alive() && answers.len() < SIDES.len() {
            let is_missing = |side: &PairSide| answers.iter().all(|(known, _)| known != side);
            let missing: Vec<PairSide> = SIDES.into_iter().filter(is_missing).collect();
            let ports: Vec<BorrowedFd<'_>> = missing
                .iter()
                .map(|side| self.guests[*side as usize].requests.as_fd())
                .collect();
            wait_for_any(&ports, PollFlags::IN, ANSWER_GRACE);
            let end = if interrupted() {
                Some(PortEnd::Interrupted)
            } else {
                (Instant::now() > deadline).then_some(PortEnd::Deadline)
            };
            for side in missing {
                // A guest that has sent nothing by the deadline gets no other chance.
                let guest = &mut self.guests[side as usize];
                let answer = match (guest.requests.line_now(), end) {
                    (Ok(Some(line)), _) => guest.decode(&line),
                    (Ok(None), None) => continue,
                    (Ok(None), Some(end)) | (Err(end), _) => Err(guest.gone(end)),
                };
                answers.push((side, guest.outcome(answer)?));
            }
            if failures(&answers).next().is_some() {
                deadline = deadline.min(Instant::now() + ANSWER_GRACE);
            }
        }
        Some(answers)
    }

    /// Makes all guests unmount their disks and shut down.
    pub fn end(self) {
        self.guests.into_iter().for_each(|guest| drop(guest.end()));
    }
}

fn failures(answers: &[(PairSide, Outcome)]) -> impl Iterator<Item = (PairSide, &Failure)> {
    answers.iter().filter_map(|(side, outcome)| match outcome {
        Outcome::Failed(failure) => Some((*side, failure)),
        Outcome::Completed(_) => None,
    })
}

/// Combines all outcomes: the failure that explains the others, if there is one,
/// otherwise the main guest's outcome.
fn joined(answers: Vec<(PairSide, Outcome)>) -> Outcome {
    if let Some((side, failure)) = failures(&answers).min_by_key(|(_, failure)| rank(failure.kind))
    {
        let whose = match side {
            PairSide::Main => "main guest",
            PairSide::Partner => "partner",
        };
        return Outcome::Failed(Failure {
            kind: failure.kind,
            message: format!("{whose}: {}", failure.message),
        });
    }
    let of_main = answers
        .into_iter()
        .find(|(side, _)| *side == PairSide::Main);
    of_main.expect("both have answered").1
}

/// Ranks the failure of one side: the lower the rank, the more likely the failure caused the other
/// side's failure. A side fails if it loses its peer. It runs out of time if the peer never
/// answers.
fn rank(kind: FailureKind) -> u8 {
    match kind {
        FailureKind::Crashed => 0,
        FailureKind::Unsupported => 1,
        FailureKind::Failed | FailureKind::Instrument => 2,
        FailureKind::TimedOut => 3,
    }
}

#[cfg(test)]
mod tests {
    use toll_wire::TrialData;

    use super::*;

    fn failed(kind: FailureKind, message: &str) -> Outcome {
        let message = message.into();
        Outcome::Failed(Failure { kind, message })
    }

    #[test]
    fn the_main_guests_samples_are_the_trials() {
        let of_main = Outcome::Completed(Box::new(TrialData {
            notes: vec!["main".into()],
            ..TrialData::default()
        }));
        let of_partner = Outcome::Completed(Box::default());
        let answers = [
            (PairSide::Partner, of_partner),
            (PairSide::Main, of_main.clone()),
        ];
        assert_eq!(joined(answers.to_vec()), of_main);
    }

    #[test]
    fn of_two_failures_the_one_that_explains_the_other_is_told() {
        let late = (PairSide::Main, failed(FailureKind::TimedOut, "too late"));
        let refused = (PairSide::Partner, failed(FailureKind::Failed, "refused"));
        let expected = failed(FailureKind::Failed, "partner: refused");
        assert_eq!(joined(vec![late.clone(), refused.clone()]), expected);
        // The first of two failures of one kind counts.
        let lost = (PairSide::Main, failed(FailureKind::Failed, "lost"));
        assert_eq!(joined(vec![refused, lost]), expected);
        let completed = (PairSide::Partner, Outcome::Completed(Box::default()));
        let expected = failed(FailureKind::TimedOut, "main guest: too late");
        assert_eq!(joined(vec![completed, late]), expected);
    }
}
