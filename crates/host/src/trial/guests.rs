//! The guests of a session. Each block boots the guests that its trials need.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Instant;

use toll_system::interrupt::Interrupt;
use toll_wire::guest::{GuestTrial, Knob, PairSide};
use toll_wire::{Failure, FailureKind, Outcome};

use super::Probe;
use super::files::LAID_FOR_GUESTS;
use super::machines;
use crate::environment::Workspace;
use crate::environment::guest::{GuestDisk, GuestFailure, GuestGroup, GuestSpec, guest_obstacle};
use crate::environment::kernel::{self, Kernel};
use crate::plan::{Boot, Plan, Treatment, TreatmentParameters};
use crate::spec::Experiment;
use crate::spec::guest::GuestParameters;
use crate::store::BootRecord;

/// Message for levels of a boot that are known to be valid.
const CHECKED: &str = "the levels of guests are checked when an experiment is read";

/// A trial in a guest.
pub(super) struct TrialInGuest {
    pub block: u32,
    pub boot: Boot,
    pub asked: GuestTrial,
    /// Seed of QEMU's random numbers for the guest.
    pub seed: u64,
}

/// Guests of a session that run one after another.
pub struct Guests<'a> {
    probe: &'a Probe,
    interrupt: &'a Interrupt,
    /// Whether instructions are counted by function, too.
    counts_functions: bool,
    /// Space that trials need on the work disk, in bytes.
    disk_bytes: u64,
    /// Whether the guests have a host directory over 9p.
    has_shared_directory: bool,
    /// The directory that is copied to the work disk.
    laid: Option<PathBuf>,
    /// The directory of the disks.
    directory: PathBuf,
    current: Option<Current>,
    finished: Vec<BootRecord>,
}

struct Current {
    /// The guest, or why there is none.
    guest: Result<GuestGroup, Failure>,
    /// The record of the boot, with its block and levels.
    record: BootRecord,
}

impl<'a> Guests<'a> {
    /// Prepares the guests of a plan whose trials need `disk_bytes` of space on the work disk.
    pub fn new(
        (experiment, plan): (&Experiment, &Plan),
        workspace: &Workspace,
        probe: &'a Probe,
        interrupt: &'a Interrupt,
        disk_bytes: u64,
    ) -> Self {
        let laid = workspace.directory(LAID_FOR_GUESTS);
        Self {
            probe,
            interrupt,
            // The functions explain how a treatment differs from the reference.
            counts_functions: experiment.reference.is_some(),
            disk_bytes,
            has_shared_directory: shares_directory(experiment, plan),
            laid: laid.ok().map(Path::to_owned),
            directory: workspace.root().join("guest"),
            current: None,
            finished: Vec::new(),
        }
    }

    /// Returns further guests of the same kind, which run in parallel with the first ones on
    /// separate disks.
    pub(super) fn beside(&self, number: usize) -> Self {
        Self {
            laid: self.laid.clone(),
            directory: self.directory.with_extension(number.to_string()),
            current: None,
            finished: Vec::new(),
            ..*self
        }
    }

    /// Returns why a guest of this boot is not available here; `None` if it is.
    pub fn obstacle(boot: &Boot) -> Option<String> {
        kernel_of(boot).err().or_else(guest_obstacle)
    }

    /// Runs one trial. Boots its guest first unless the guest is up. Returns `None` if an interrupt
    /// ended the trial.
    pub(super) fn trial(&mut self, trial: &TrialInGuest) -> Option<Outcome> {
        if !self.is_up(trial.block, &trial.boot) {
            self.end();
            self.current = Some(self.boot(trial)?);
        }
        let current = self.current.as_mut()?;
        let guest = match &mut current.guest {
            Ok(guest) => guest,
            Err(failure) => return Some(Outcome::Failed(failure.clone())),
        };
        let interrupt = self.interrupt;
        let outcome = machines::run(guest, &trial.asked, &|| interrupt.signal().is_some());
        if !guest.is_alive() {
            current.record.error = match &outcome {
                Some(Outcome::Failed(failure)) => Some(failure.message.clone()),
                _ => Some("it ended too early".into()),
            };
        }
        outcome
    }

    /// Whether this guest is already running, or is known not to boot in this block. A guest that
    /// died is booted again: only the trial that killed it has failed, and the others may still
    /// succeed.
    pub(super) fn is_up(&self, block: u32, boot: &Boot) -> bool {
        self.current.as_ref().is_some_and(|current| {
            let is_usable = current.guest.as_ref().map_or(true, GuestGroup::is_alive);
            is_usable && current.record.block == block && current.record.levels == *boot
        })
    }

    fn boot(&self, trial: &TrialInGuest) -> Option<Current> {
        let begin = Instant::now();
        let mut record = BootRecord {
            block: trial.block,
            started_at: jiff::Timestamp::now().to_string(),
            levels: trial.boot.clone(),
            ..BootRecord::default()
        };
        let guest = self.booted(&trial.boot, trial.seed);
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
        let spec = GuestSpec {
            counts_functions: self.counts_functions,
            has_shared_directory: self.has_shared_directory,
            ..spec_of(boot, seed, self.probe.path()).map_err(GuestFailure::Missing)?
        };
        match std::fs::remove_dir_all(&self.directory) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                let message = format!("cannot use {}: {error}", self.directory.display());
                return Err(GuestFailure::Failed(message));
            }
            _ => {}
        }
        // Each boot gets new disks: what a trial left behind, or a crash wrote partially, must not
        // reach the next guest.
        let disk = |side: PairSide, content| {
            let directory = self.directory.join(side.word());
            GuestDisk::create(&directory, self.disk_bytes, content).map_err(GuestFailure::Failed)
        };
        let interrupted = || self.interrupt.signal().is_some();
        let mut disks = vec![disk(PairSide::Main, self.laid.as_deref())?];
        if self.has_shared_directory {
            let shared = disks[0].share(self.laid.as_deref());
            shared.map_err(GuestFailure::Failed)?;
        }
        if GuestParameters::read(boot).expect(CHECKED).has_partner() {
            disks.push(disk(PairSide::Partner, None)?);
        }
        let disks: Vec<&GuestDisk> = disks.iter().collect();
        GuestGroup::boot(&spec, &disks, &interrupted)
    }

    /// Ends the running guest, if there is one.
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

/// Whether trials in guests find their files in a host directory.
fn shares_directory(experiment: &Experiment, plan: &Plan) -> bool {
    let in_guests = plan.treatments.iter().filter(|one| one.boot().is_some());
    let mut parameters = in_guests.filter_map(|one| TreatmentParameters::new(experiment, one).ok());
    parameters.any(|one| one.file_system() == "foreign")
}

fn kernel_of(boot: &Boot) -> Result<Kernel, String> {
    kernel::find(name_of(boot))
}

/// Returns the size of the kernel image that a guest boots, in bytes.
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

/// Returns the kernels that guests of a plan need and that are not built, each once.
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

/// Returns the settings of the guest's kernel for a treatment.
pub(super) fn knobs(experiment: &Experiment, treatment: &Treatment) -> Vec<Knob> {
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
