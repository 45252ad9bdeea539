//! The guests of a session: each block boots what its trials need, one at a
//! time.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Instant;

use toll_wire::guest::{GuestTrial, Knob, PairSide};
use toll_wire::{Failure, FailureKind, Outcome, Request};

use super::machines;
use super::{Interrupt, Probe};
use crate::environment::Workspace;
use crate::environment::guest::{GuestDisk, GuestFailure, GuestGroup, GuestSpec, guest_obstacle};
use crate::environment::kernel::{self, Kernel};
use crate::plan::{Boot, Plan, Treatment};
use crate::spec::Experiment;
use crate::spec::guest::GuestParameters;
use crate::store::BootRecord;

/// Why the levels of a boot are what they have to be.
const CHECKED: &str = "the levels of guests are checked when an experiment is read";

/// What a trial in a guest is given.
pub(super) struct InGuest<'a> {
    pub treatment: &'a Treatment,
    pub block: u32,
    pub request: Request,
    pub padding_bytes: usize,
    /// Seed of what QEMU draws for the guest.
    pub seed: u64,
}

/// The guests of a session.
pub struct Guests<'a> {
    experiment: &'a Experiment,
    workspace: &'a Workspace,
    probe: &'a Probe,
    interrupt: &'a Interrupt,
    /// Room that trials need on the work disk, in bytes.
    disk_bytes: u64,
    current: Option<Current>,
    finished: Vec<BootRecord>,
}

struct Current {
    /// The guest, or why there is none.
    guest: Result<GuestGroup, Failure>,
    /// With the block and the levels that it was booted for.
    record: BootRecord,
}

impl<'a> Guests<'a> {
    /// The guests of an experiment, whose trials need `disk_bytes` of room on
    /// the work disk.
    pub fn new(
        experiment: &'a Experiment,
        workspace: &'a Workspace,
        probe: &'a Probe,
        interrupt: &'a Interrupt,
        disk_bytes: u64,
    ) -> Self {
        Self {
            experiment,
            workspace,
            probe,
            interrupt,
            disk_bytes,
            current: None,
            finished: Vec::new(),
        }
    }

    /// Why no guest of this boot can be had here, if so.
    pub fn obstacle(boot: &Boot) -> Option<String> {
        kernel_of(boot).err().or_else(guest_obstacle)
    }

    /// Runs one trial, booting its guest first unless it is up. `None` if an
    /// interrupt ended it.
    pub(super) fn trial(&mut self, boot: &Boot, trial: InGuest<'_>) -> Option<Outcome> {
        if !self.is_up(trial.block, boot) {
            self.end();
            self.current = Some(self.boot(boot, &trial)?);
        }
        let current = self.current.as_mut()?;
        let guest = match &mut current.guest {
            Ok(guest) => guest,
            Err(failure) => return Some(Outcome::Failed(failure.clone())),
        };
        let timeout = self.experiment.run.trial_timeout(true);
        let request = GuestTrial {
            request: trial.request,
            padding_bytes: u32::try_from(trial.padding_bytes).unwrap_or(u32::MAX),
            timeout_ms: u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX),
            knobs: knobs(self.experiment, trial.treatment),
        };
        let interrupt = self.interrupt;
        let outcome = machines::run(guest, &request, &|| interrupt.signal().is_some());
        if !guest.is_alive() {
            current.record.error = match &outcome {
                Some(Outcome::Failed(failure)) => Some(failure.message.clone()),
                _ => Some("it ended before its time".into()),
            };
        }
        outcome
    }

    /// Whether this guest runs already, or is known not to boot in this block.
    /// One that died is booted anew: the trial that killed it has its failure,
    /// and the others have a right to theirs.
    pub(super) fn is_up(&self, block: u32, boot: &Boot) -> bool {
        self.current.as_ref().is_some_and(|current| {
            let is_usable = current.guest.as_ref().map_or(true, GuestGroup::is_alive);
            is_usable && current.record.block == block && current.record.levels == *boot
        })
    }

    fn boot(&self, boot: &Boot, trial: &InGuest<'_>) -> Option<Current> {
        let begin = Instant::now();
        let mut record = BootRecord {
            block: trial.block,
            started_at: jiff::Timestamp::now().to_string(),
            levels: boot.clone(),
            ..BootRecord::default()
        };
        let guest = self.booted(boot, trial.seed);
        record.boot_ns = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let guest = guest.map_err(|failure| match failure {
            GuestFailure::Interrupted => None,
            GuestFailure::Missing(message) => Some((FailureKind::Unsupported, message)),
            GuestFailure::Failed(message) => Some((FailureKind::Failed, message)),
        });
        let guest = match guest {
            Ok(guest) => {
                machines::describe(&guest, &mut record);
                Ok(guest)
            }
            Err(failure) => {
                let (kind, message) = failure?;
                record.error = Some(message.clone());
                Err(Failure { kind, message })
            }
        };
        Some(Current { guest, record })
    }

    fn booted(&self, boot: &Boot, seed: u64) -> Result<GuestGroup, GuestFailure> {
        let spec = spec_of(boot, seed, self.probe.path()).map_err(GuestFailure::Missing)?;
        let directory = self.workspace.root().join("guest");
        match std::fs::remove_dir_all(&directory) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                let message = format!("cannot use {}: {error}", directory.display());
                return Err(GuestFailure::Failed(message));
            }
            _ => {}
        }
        let laid = self.workspace.directory(super::files::LAID_FOR_GUESTS).ok();
        // As new: what a trial left behind, or a crash half wrote, must not reach
        // the next.
        let disk = |side: PairSide, content| {
            let directory = directory.join(side.word());
            GuestDisk::create(&directory, self.disk_bytes, content).map_err(GuestFailure::Failed)
        };
        let interrupted = || self.interrupt.signal().is_some();
        let mut disks = vec![disk(PairSide::Main, laid)?];
        if GuestParameters::read(boot).expect(CHECKED).has_partner() {
            disks.push(disk(PairSide::Partner, None)?);
        }
        let disks: Vec<&GuestDisk> = disks.iter().collect();
        GuestGroup::boot(&spec, &disks, &interrupted)
    }

    /// Ends the guest that runs, if one does.
    pub(super) fn end(&mut self) {
        if let Some(mut current) = self.current.take() {
            if let Ok(guest) = current.guest {
                machines::keep_logs(&guest, &mut current.record);
                guest.end();
            }
            self.finished.push(current.record);
        }
    }

    /// Records of the guests that have ended since the last call.
    pub(super) fn take_finished(&mut self) -> Vec<BootRecord> {
        std::mem::take(&mut self.finished)
    }
}

fn kernel_of(boot: &Boot) -> Result<Kernel, String> {
    kernel::find(name_of(boot))
}

/// Size of the kernel's image that a guest boots.
pub(super) fn image_bytes(boot: &Boot) -> Result<u64, String> {
    let image = kernel_of(boot)?.image;
    let found = std::fs::metadata(&image);
    found
        .map(|image| image.len())
        .map_err(|error| format!("cannot read {}: {error}", image.display()))
}

fn name_of(boot: &Boot) -> &str {
    boot.get("kernel").map_or("toll", String::as_str)
}

/// Kernels that guests of a plan need and that are not built, each once.
pub fn missing_kernels(plan: &Plan) -> BTreeSet<String> {
    let boots = plan.treatments.iter().filter_map(Treatment::boot);
    let needed = boots.map(|boot| name_of(&boot).to_owned());
    needed.filter(|name| kernel::find(name).is_err()).collect()
}

fn spec_of(boot: &Boot, seed: u64, probe: &Path) -> Result<GuestSpec, String> {
    let parameters = GuestParameters::read(boot).expect(CHECKED);
    Ok(GuestSpec {
        memory_bytes: parameters.memory_bytes,
        vcpus: parameters.vcpus,
        swap_bytes: parameters.swap_bytes,
        command_line: parameters.command_line,
        accelerator: parameters.accelerator.into(),
        seed,
        ..GuestSpec::new(kernel_of(boot)?, probe.to_owned())
    })
}

/// What is set in the guest's kernel for a treatment.
fn knobs(experiment: &Experiment, treatment: &Treatment) -> Vec<Knob> {
    let Some(guest) = &experiment.guest else {
        return Vec::new();
    };
    let set = guest.knobs.iter().filter_map(|(name, knob)| {
        let chosen = treatment.levels.get(name);
        let value = match chosen {
            Some(level) => knob.written_for(&level.text)?,
            None => knob.value.as_ref()?.text.as_str(),
        };
        Some(Knob {
            path: knob.path.clone().into(),
            value: value.to_owned(),
        })
    });
    set.collect()
}
