//! The life of a guest.

use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::time::{Duration, Instant};

use toll_wire::guest::{
    GuestAction, GuestEvent, GuestFacts, GuestRequest, GuestTrial, decode_guest_answer,
};
use toll_wire::{Failure, FailureKind, MESSAGE_BYTES_MAX, Outcome};

use super::accelerator::{self, TRIAL_PATIENCE};
use super::arguments;
use super::boot::{Boot, Card};
use super::counting::Counting;
use super::disk::{GuestDisk, INITRAMFS};
use super::initramfs;
use super::log::{Stop, last_words, names_panic};
use super::machine::{self, Machine, Ports};
use super::port::{LinePort, PortEnd, Wait};
use super::spec::{Accelerator, AcceleratorChoice, GuestSpec};

/// Time after a trial's own limit within which the guest must answer. The init enforces the trial's
/// limit; this time is only for a guest that hangs.
pub(super) const ANSWER_GRACE: Duration = Duration::from_secs(30);

/// Longest wait for a guest to power itself off.
const END_PATIENCE: Duration = Duration::from_secs(10);

/// Longest wait for QEMU to end after it closed a port.
const DEATH_PATIENCE: Duration = Duration::from_secs(20);

/// Why a guest is not up, or the end of its command is unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GuestFailure {
    /// The caller was asked to stop.
    Interrupted,
    /// QEMU or something else is missing on this machine.
    Missing(String),
    /// The guest did not come up, could not start a command, or died. The text is the reason, with
    /// the last lines of the guest's log.
    Failed(String),
}

impl std::fmt::Display for GuestFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Interrupted => f.write_str("cannot boot a guest: interrupted"),
            Self::Missing(message) | Self::Failed(message) => f.write_str(message),
        }
    }
}

/// A running guest. The guest is killed at once when this value is dropped, or when the thread that
/// booted it ends.
#[derive(Debug)]
pub struct Guest {
    pub(super) machine: Machine,
    pub(super) requests: LinePort,
    pub(super) output: UnixStream,
    pub(super) error: UnixStream,
    /// The partner's end of the cable, until the partner takes it.
    pub(super) cable: Option<UnixStream>,
    accelerator: Accelerator,
    counting: Option<Counting>,
    /// Whether the guest accepts requests. Once it is gone it stays gone, and QEMU is killed.
    is_alive: bool,
    facts: GuestFacts,
}

impl Guest {
    /// Starts a guest and waits until it accepts requests. A guest that does not come up
    /// leaves nothing behind.
    pub fn boot(
        spec: &GuestSpec,
        disk: &GuestDisk,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<Self, GuestFailure> {
        Self::boot_logged(spec, disk, None, interrupted)
    }

    /// Boots as [`Self::boot`] does, and writes the kernel's log to a file as it
    /// arrives.
    pub fn boot_logged(
        spec: &GuestSpec,
        disk: &GuestDisk,
        log: Option<&Path>,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<Self, GuestFailure> {
        let boot = Boot {
            spec,
            disk,
            log,
            card: Card::None,
            interrupted,
        };
        Self::start(&boot)
    }

    /// Boots under the accelerator that the specification chooses. Tries KVM first if nothing is
    /// known about KVM on this machine, and remembers the result.
    pub(super) fn start(boot: &Boot<'_>) -> Result<Self, GuestFailure> {
        let failed = GuestFailure::Failed;
        let program = machine::program().map_err(GuestFailure::Missing)?;
        initramfs::write(boot.spec, &boot.disk.directory().join(INITRAMFS)).map_err(failed)?;
        let kernel = boot.spec.kernel.name.as_str();
        let accelerator = match boot.spec.accelerator {
            AcceleratorChoice::Only(accelerator) => Some(accelerator),
            AcceleratorChoice::Auto => accelerator::choose(&program, kernel).map_err(failed)?,
        };
        if let Some(accelerator) = accelerator {
            return Self::under(boot, &program, accelerator);
        }
        let (guest, obstacle) = match Self::within(boot, &program, Accelerator::Kvm, TRIAL_PATIENCE)
        {
            // The same guest would not come up under TCG, either, so nothing is known about KVM.
            Err(GuestFailure::Failed(why)) => {
                (Self::under(boot, &program, Accelerator::Tcg)?, Some(why))
            }
            booted => (booted?, None),
        };
        accelerator::remember(&program, kernel, obstacle);
        Ok(guest)
    }

    fn under(
        boot: &Boot<'_>,
        program: &Path,
        accelerator: Accelerator,
    ) -> Result<Self, GuestFailure> {
        let patience = boot_patience(boot.spec, accelerator);
        Self::within(boot, program, accelerator, patience)
    }

    fn within(
        boot: &Boot<'_>,
        program: &Path,
        accelerator: Accelerator,
        patience: Duration,
    ) -> Result<Self, GuestFailure> {
        let wait = Wait {
            deadline: Instant::now() + patience,
            interrupted: boot.interrupted,
        };
        let cannot = |why: &dyn std::fmt::Display| {
            GuestFailure::Failed(format!(
                "cannot boot a guest with kernel {} under {}: {why}",
                boot.spec.kernel.release,
                accelerator.word()
            ))
        };
        if boot.spec.swap_bytes > 0 {
            let made = boot.disk.make_swap(boot.spec.swap_bytes);
            made.map_err(GuestFailure::Failed)?;
        }
        let started = Machine::start(program, boot, accelerator);
        let (machine, ports) = started.map_err(|error| cannot(&error))?;
        let mut guest = Self::new(machine, ports, accelerator).map_err(|error| cannot(&error))?;
        if boot.spec.has_plugin(accelerator) {
            guest.counting = Some(Counting::new(boot));
        }
        let facts = match guest.event(&wait) {
            Ok(GuestEvent::Ready(facts)) => *facts,
            Ok(GuestEvent::Refused(reason)) => return Err(cannot(&reason)),
            Ok(_) => return Err(cannot(&"it replied before any request")),
            Err(Gone::Interrupted) => return Err(GuestFailure::Interrupted),
            Err(Gone::Dead(why)) => return Err(cannot(&why)),
            Err(Gone::Silent(why)) => {
                let patience = patience.as_secs();
                return Err(cannot(&format!("it was not up after {patience} s; {why}")));
            }
        };
        let vcpus = arguments::vcpus(boot.spec, accelerator);
        if facts.cpus_online != vcpus {
            return Err(cannot(&format!(
                "it found {} of {vcpus} CPUs; choose another kernel, or fewer CPUs",
                facts.cpus_online
            )));
        }
        guest.is_alive = true;
        guest.facts = facts;
        Ok(guest)
    }

    pub(super) fn new(
        machine: Machine,
        ports: Ports,
        accelerator: Accelerator,
    ) -> std::io::Result<Self> {
        ports.output.set_nonblocking(true)?;
        ports.error.set_nonblocking(true)?;
        Ok(Self {
            machine,
            requests: LinePort::new(ports.requests)?,
            output: ports.output,
            error: ports.error,
            cable: ports.cable,
            accelerator,
            counting: None,
            is_alive: false,
            facts: GuestFacts::default(),
        })
    }

    pub fn facts(&self) -> &GuestFacts {
        &self.facts
    }

    pub fn accelerator(&self) -> Accelerator {
        self.accelerator
    }

    pub fn process_id(&self) -> u32 {
        self.machine.process_id()
    }

    /// Whether the guest still accepts requests.
    pub fn is_alive(&self) -> bool {
        self.is_alive
    }

    /// The kernel's log so far. Of a long log, only the last part.
    pub fn log(&self) -> String {
        self.machine.console.text()
    }

    /// Runs one trial. Returns `None` if an interrupt ended the trial and the guest.
    ///
    /// If the guest dies or no longer answers, the trial fails with the last lines of the guest's
    /// log, and the guest is not alive any more.
    pub fn trial(&mut self, trial: &GuestTrial, interrupted: &dyn Fn() -> bool) -> Option<Outcome> {
        let limit = self.answer_limit(trial);
        let wait = Wait {
            deadline: Instant::now() + limit,
            interrupted,
        };
        let answer = self.ask(trial, &wait).and_then(|()| self.event(&wait));
        match answer {
            Err(Gone::Silent(_)) if self.accelerator == Accelerator::Icount => {
                Some(Outcome::Failed(Failure::of_time_limit(limit)))
            }
            answer => self.outcome(answer),
        }
    }

    /// Requests a trial. Also requests the kernel's functions if they are needed and not known.
    pub(super) fn ask(&mut self, trial: &GuestTrial, wait: &Wait<'_>) -> Result<(), Gone> {
        let mut trial = trial.clone();
        trial.wants_symbols = self.counting.as_ref().is_some_and(Counting::lacks_symbols);
        self.send(GuestAction::Trial(Box::new(trial)), wait)
    }

    /// Longest time until a trial is answered. A guest whose clock counts instructions enforces no
    /// limit of its own. So this limit is then the trial's, and ends the guest.
    pub(super) fn answer_limit(&self, trial: &GuestTrial) -> Duration {
        let limit = Duration::from_millis(trial.timeout_ms);
        match self.accelerator {
            Accelerator::Icount => limit,
            Accelerator::Kvm | Accelerator::Tcg => limit.saturating_add(ANSWER_GRACE),
        }
    }

    /// Turns an answer to a trial, or its absence, into an outcome. `None` if the caller is to
    /// stop.
    pub(super) fn outcome(&mut self, answer: Result<GuestEvent, Gone>) -> Option<Outcome> {
        let failed = |kind, message| Some(Outcome::Failed(Failure { kind, message }));
        match answer {
            Ok(GuestEvent::Trial { outcome, symbols }) => match &mut self.counting {
                Some(counting) => Some(counting.add_to(outcome, symbols)),
                None => Some(outcome),
            },
            Ok(GuestEvent::Refused(reason)) => failed(FailureKind::Instrument, reason),
            Ok(_) => {
                self.give_up();
                let message = "unexpected reply from the guest".into();
                failed(FailureKind::Crashed, message)
            }
            Err(Gone::Interrupted) => None,
            Err(Gone::Dead(why)) => failed(FailureKind::Crashed, why),
            Err(Gone::Silent(why)) => failed(
                FailureKind::TimedOut,
                format!("the guest no longer answers: {why}"),
            ),
        }
    }

    pub(super) fn send(&mut self, action: GuestAction, wait: &Wait<'_>) -> Result<(), Gone> {
        if !self.is_alive {
            return Err(Gone::Dead("the guest has already ended".into()));
        }
        let line = toll_wire::encode(&GuestRequest::new(action));
        let sent = self.requests.send(&line, wait);
        sent.map_err(|end| self.gone(end))
    }

    /// Waits for the init's next event.
    pub(super) fn event(&mut self, wait: &Wait<'_>) -> Result<GuestEvent, Gone> {
        let console = self.machine.console.clone();
        let wait = Wait {
            interrupted: &|| (wait.interrupted)() || console.stop().is_some(),
            ..*wait
        };
        let line = self.requests.line(&wait).map_err(|end| self.gone(end))?;
        self.decode(&line)
    }

    /// Decodes a line from the init. A guest that sends nonsense is killed.
    pub(super) fn decode(&mut self, line: &str) -> Result<GuestEvent, Gone> {
        decode_guest_answer(line)
            .map(|answer| answer.event)
            .map_err(|error| {
                self.give_up();
                Gone::Dead(format!("the guest died: {error}"))
            })
    }

    /// Kills the guest after the end of a port, and returns what that end means.
    pub(super) fn gone(&mut self, end: PortEnd) -> Gone {
        let status = match end {
            PortEnd::Closed => self.machine.ended_by(Instant::now() + DEATH_PATIENCE),
            _ => None,
        };
        self.give_up();
        let words = self.last_words();
        if let Some(stop) = self.stop() {
            return Gone::Dead(format!("{stop} before its command ended"));
        }
        let died = |how: &str| Gone::Dead(format!("the guest died: {how}; {words}"));
        match (end, status) {
            (PortEnd::Interrupted, _) => Gone::Interrupted,
            (PortEnd::Deadline, _) => Gone::Silent(words),
            (PortEnd::TooLong, _) => died(&format!(
                "it sent a message longer than {} MiB",
                MESSAGE_BYTES_MAX >> 20
            )),
            (PortEnd::Closed, Some(status)) if status.signal() == Some(libc::SIGKILL) => died(
                "QEMU was killed (SIGKILL), maybe by a user or by this machine for lack of memory",
            ),
            (PortEnd::Closed, Some(status)) if !status.success() => {
                died(&format!("QEMU ended with {status}"))
            }
            (PortEnd::Closed, _) if names_panic(&self.log()) => died("its kernel panicked"),
            (PortEnd::Closed, _) => died("QEMU ended"),
        }
    }

    /// How the guest's kernel was stopped from within, if it was.
    pub fn stop(&self) -> Option<Stop> {
        self.machine.console.stop()
    }

    fn last_words(&self) -> String {
        let qemu = self.machine.words.complete_text();
        let qemu = match qemu.trim() {
            "" => String::new(),
            _ => format!("; QEMU said: {}", last_words(&qemu)),
        };
        format!(
            "the end of its log: {}{qemu}",
            last_words(&self.machine.console.complete_text())
        )
    }

    /// Kills the guest at once.
    pub(super) fn give_up(&mut self) {
        self.machine.kill();
        self.is_alive = false;
    }

    /// Makes the guest unmount its disks and shut down; kills it if it does not. Returns the
    /// kernel's log.
    pub fn end(mut self) -> String {
        let deadline = Instant::now() + END_PATIENCE;
        let wait = Wait {
            deadline,
            interrupted: &|| false,
        };
        if self.send(GuestAction::End, &wait).is_ok() {
            self.machine.ended_by(deadline);
        }
        self.give_up();
        self.machine.console.complete_text()
    }
}

/// Longest time that a guest may take to boot: several times the usual time on a busy machine. The
/// limit only prevents a guest that hangs from blocking the run.
fn boot_patience(spec: &GuestSpec, accelerator: Accelerator) -> Duration {
    let seconds = match accelerator {
        Accelerator::Kvm => 60,
        Accelerator::Tcg => 300,
        Accelerator::Icount => 900,
    };
    // A kernel that checks itself is four times as slow.
    let factor = if spec.kernel.checks_itself { 4 } else { 1 };
    Duration::from_secs(seconds * factor)
}

/// Why a guest no longer answers.
#[derive(Debug)]
pub(super) enum Gone {
    /// The caller is to stop.
    Interrupted,
    /// The guest ended, or sent nonsense; the sentence says so.
    Dead(String),
    /// The guest sent nothing for too long.
    Silent(String),
}
