//! Two guests that are joined by a network.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use toll_wire::guest::{GuestAction, GuestEvent, GuestTrial, PairSide};
use toll_wire::{Failure, FailureKind, Outcome};

use super::disk::GuestDisk;
use super::life::{ANSWER_GRACE, BootFailure, Gone, Guest};
use super::machine::Card;
use super::port::{PortEnd, Wait};
use super::spec::{Accelerator, AcceleratorChoice, GuestSpec};

/// Longest wait between looks whether the caller is to stop.
const NAP: Duration = Duration::from_millis(100);

/// Both sides, in the order of everything that is of both.
const SIDES: [PairSide; 2] = [PairSide::Main, PairSide::Partner];

/// Two guests of the same kind, joined by a virtio network card each. Nobody else
/// is on that network, the host neither. Both end with the first of them: what one
/// waits for would never come.
#[derive(Debug)]
pub struct GuestPair {
    guests: [Guest; 2],
}

impl GuestPair {
    /// Boots both, the main one first, on a disk each.
    ///
    /// # Errors
    /// As [`Guest::boot`]; nothing is left of either then.
    pub fn boot(
        spec: &GuestSpec,
        disks: [&GuestDisk; 2],
        interrupted: &dyn Fn() -> bool,
    ) -> Result<Self, BootFailure> {
        let mut main = Guest::boot_with_card(spec, disks[0], (None, Card::Main), interrupted)?;
        let cable = main
            .cable
            .take()
            .expect("the main guest of a pair has a cable");
        // What the choice came to is the same for both.
        let spec = GuestSpec {
            accelerator: match main.accelerator() {
                Accelerator::Kvm => AcceleratorChoice::Kvm,
                Accelerator::Tcg => AcceleratorChoice::Tcg,
                Accelerator::Icount => AcceleratorChoice::Icount,
            },
            ..spec.clone()
        };
        let card = Card::Partner(&cable);
        let partner = Guest::boot_with_card(&spec, disks[1], (None, card), interrupted);
        let partner = partner.map_err(|failure| match failure {
            BootFailure::Failed(why) => {
                BootFailure::Failed(format!("cannot boot the partner: {why}"))
            }
            other => other,
        })?;
        let guests = [main, partner];
        Ok(Self { guests })
    }

    /// One of the two.
    pub fn guest(&self, side: PairSide) -> &Guest {
        match side {
            PairSide::Main => &self.guests[0],
            PairSide::Partner => &self.guests[1],
        }
    }

    fn guest_mut(&mut self, side: PairSide) -> &mut Guest {
        match side {
            PairSide::Main => &mut self.guests[0],
            PairSide::Partner => &mut self.guests[1],
        }
    }

    /// Whether both can be asked still.
    pub fn is_alive(&self) -> bool {
        self.guests.iter().all(Guest::is_alive)
    }

    /// Runs a trial that has one part in each guest, both at once. `None` if an
    /// interrupt ended it, and the guests with it.
    ///
    /// The outcome is the main guest's if both parts come to an end. Otherwise it is
    /// the failure that explains the other one, if there are two, and says which
    /// side's it is. Once a part has failed, the other one has a few seconds left
    /// to notice; if it does not, or a guest dies, both guests are ended.
    pub fn trial(
        &mut self,
        parts: &[GuestTrial; 2],
        interrupted: &dyn Fn() -> bool,
    ) -> Option<Outcome> {
        let outcome = self.both(parts, interrupted);
        if !self.is_alive() {
            self.guests.iter_mut().for_each(Guest::give_up);
        }
        outcome
    }

    fn both(&mut self, parts: &[GuestTrial; 2], interrupted: &dyn Fn() -> bool) -> Option<Outcome> {
        let guests = self.guests.iter().zip(parts);
        let limit = guests.map(|(guest, part)| guest.answer_limit(part)).max();
        let mut deadline = Instant::now() + limit.expect("there are two");
        let mut answers = Answers::default();
        for (index, part) in parts.iter().enumerate() {
            let wait = Wait {
                deadline,
                interrupted,
            };
            let guest = &mut self.guests[index];
            if let Err(gone) = guest.send(GuestAction::Trial(Box::new(part.clone())), &wait) {
                answers.add(SIDES[index], guest.outcome(Err(gone))?);
                return Some(answers.joined());
            }
        }
        while self.is_alive() && !answers.missing().is_empty() {
            let missing = answers.missing();
            self.wait_for_something(&missing);
            let end = match interrupted() {
                true => Some(PortEnd::Interrupted),
                false => (Instant::now() > deadline).then_some(PortEnd::Deadline),
            };
            for side in missing {
                if let Some(answer) = self.answer(side, end) {
                    answers.add(side, self.guest_mut(side).outcome(answer)?);
                }
            }
            if answers.has_failure() {
                deadline = deadline.min(Instant::now() + ANSWER_GRACE);
            }
        }
        Some(answers.joined())
    }

    /// What one says to its part, if it has said something. One that has not does
    /// not get another chance if there is an `end`.
    fn answer(&mut self, side: PairSide, end: Option<PortEnd>) -> Option<Result<GuestEvent, Gone>> {
        let guest = self.guest_mut(side);
        match (guest.requests.line_now(), end) {
            (Ok(Some(line)), _) => Some(guest.decode(&line)),
            (Ok(None), None) => None,
            (Ok(None), Some(end)) | (Err(end), _) => Some(Err(guest.gone(end))),
        }
    }

    fn wait_for_something(&self, waiting: &[PairSide]) {
        let ports = waiting.iter().map(|side| &self.guest(*side).requests);
        let mut watched: Vec<PollFd<'_>> = ports
            .map(|port| PollFd::from_borrowed_fd(port.as_fd(), PollFlags::IN))
            .collect();
        let nap = Timespec::try_from(NAP).expect("short");
        // A signal is no reason to give up; the next look is soon.
        let _ = poll(&mut watched, Some(&nap));
    }

    /// Has both bring their disks to rest and switch themselves off.
    pub fn end(self) {
        self.guests.into_iter().for_each(Guest::end);
    }
}

/// How the parts of a trial ended, in the order in which that was known.
#[derive(Debug, Default)]
struct Answers(Vec<(PairSide, Outcome)>);

impl Answers {
    fn add(&mut self, side: PairSide, outcome: Outcome) {
        self.0.push((side, outcome));
    }

    /// The sides whose part has not ended.
    fn missing(&self) -> Vec<PairSide> {
        let is_missing = |side: &PairSide| self.0.iter().all(|(known, _)| known != side);
        SIDES.into_iter().filter(is_missing).collect()
    }

    fn failures(&self) -> impl Iterator<Item = (PairSide, &Failure)> {
        self.0.iter().filter_map(|(side, outcome)| match outcome {
            Outcome::Failed(failure) => Some((*side, failure)),
            Outcome::Completed(_) => None,
        })
    }

    fn has_failure(&self) -> bool {
        self.failures().next().is_some()
    }

    /// One outcome of all: of several failures the one that explains the others,
    /// otherwise what the main guest says.
    fn joined(self) -> Outcome {
        let cause = self
            .failures()
            .min_by_key(|(_, failure)| rank(failure.kind));
        if let Some((side, failure)) = cause {
            let whose = match side {
                PairSide::Main => "main guest",
                PairSide::Partner => "partner",
            };
            return Outcome::Failed(Failure {
                kind: failure.kind,
                message: format!("{whose}: {}", failure.message),
            });
        }
        let of_main = self.0.into_iter().find(|(side, _)| *side == PairSide::Main);
        of_main.expect("both have answered").1
    }
}

/// The less, the more likely a failure is the cause of the other side's: who loses
/// its other end fails by that, and who waits for it in vain is out of time.
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

    fn joined(answers: &[(PairSide, Outcome)]) -> Outcome {
        Answers(answers.to_vec()).joined()
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
        assert_eq!(joined(&answers), of_main);
    }

    #[test]
    fn of_two_failures_the_one_that_explains_the_other_is_told() {
        let late = (PairSide::Main, failed(FailureKind::TimedOut, "too late"));
        let refused = (PairSide::Partner, failed(FailureKind::Failed, "refused"));
        let expected = failed(FailureKind::Failed, "partner: refused");
        assert_eq!(joined(&[late.clone(), refused.clone()]), expected);
        // Of two of a kind, the first.
        let lost = (PairSide::Main, failed(FailureKind::Failed, "lost"));
        assert_eq!(joined(&[refused, lost]), expected);
        let completed = (PairSide::Partner, Outcome::Completed(Box::default()));
        let expected = failed(FailureKind::TimedOut, "main guest: too late");
        assert_eq!(joined(&[completed, late]), expected);
    }
}
