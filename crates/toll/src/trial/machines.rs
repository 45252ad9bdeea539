//! What a boot starts: a guest, or two that are joined.

use std::collections::BTreeMap;
use std::path::Path;

use toll_wire::guest::{GuestFacts, GuestTrial, PairSide};
use toll_wire::{Failure, FailureKind, Outcome, TransferPart, TransferRequest, Workload};

use crate::environment::guest::{BootFailure, Guest, GuestDisk, GuestPair, GuestSpec};
use crate::spec::guest::NOT_TWO_ENDS;
use crate::store::{BootRecord, PartnerRecord};

/// Where the disks of a boot are made.
pub(super) struct DiskPlace<'a> {
    /// A directory for nothing else.
    pub directory: &'a Path,
    /// Size of a work disk in bytes.
    pub bytes: u64,
    /// What is laid on the main guest's work disk.
    pub content: Option<&'a Path>,
}

impl DiskPlace<'_> {
    /// Makes a guest's disks as new: what a trial left behind, or a crash half
    /// wrote, must not reach the next.
    fn disk(&self, side: PairSide) -> Result<GuestDisk, BootFailure> {
        let directory = self.directory.join(side.word());
        let content = match side {
            PairSide::Main => self.content,
            PairSide::Partner => None,
        };
        GuestDisk::create(&directory, self.bytes, content).map_err(BootFailure::Failed)
    }
}

/// What a boot started.
pub(super) enum Machines {
    Alone(Box<Guest>),
    Pair(Box<GuestPair>),
}

impl Machines {
    pub fn boot(
        spec: &GuestSpec,
        place: &DiskPlace<'_>,
        has_partner: bool,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<Self, BootFailure> {
        let main = place.disk(PairSide::Main)?;
        if !has_partner {
            let guest = Guest::boot(spec, &main, interrupted)?;
            return Ok(Self::Alone(Box::new(guest)));
        }
        let partner = place.disk(PairSide::Partner)?;
        let pair = GuestPair::boot(spec, [&main, &partner], interrupted)?;
        Ok(Self::Pair(Box::new(pair)))
    }

    fn main(&self) -> &Guest {
        match self {
            Self::Alone(guest) => guest,
            Self::Pair(pair) => pair.guest(PairSide::Main),
        }
    }

    fn partner(&self) -> Option<&Guest> {
        match self {
            Self::Alone(_) => None,
            Self::Pair(pair) => Some(pair.guest(PairSide::Partner)),
        }
    }

    pub fn is_alive(&self) -> bool {
        match self {
            Self::Alone(guest) => guest.is_alive(),
            Self::Pair(pair) => pair.is_alive(),
        }
    }

    /// Runs one trial, of a pair with one end in each guest. `None` if an
    /// interrupt ended it.
    pub fn trial(&mut self, trial: &GuestTrial, interrupted: &dyn Fn() -> bool) -> Option<Outcome> {
        match self {
            Self::Alone(guest) => guest.trial(trial, interrupted),
            Self::Pair(pair) => match ends(trial) {
                Ok(ends) => pair.trial(&ends, interrupted),
                Err(failure) => Some(Outcome::Failed(failure)),
            },
        }
    }

    /// Notes what was booted.
    pub fn describe(&self, record: &mut BootRecord) {
        record.accelerator = Some(self.main().accelerator().word().to_owned());
        record.facts = told(self.main().facts());
        record.partner = self.partner().map(|partner| PartnerRecord {
            facts: told(partner.facts()),
            log: String::new(),
        });
    }

    /// Keeps the kernels' logs so far.
    pub fn keep_logs(&self, record: &mut BootRecord) {
        record.set_log(&self.main().log());
        if let (Some(guest), Some(partner)) = (self.partner(), &mut record.partner) {
            partner.set_log(&guest.log());
        }
    }

    pub fn end(self) {
        match self {
            Self::Alone(guest) => guest.end(),
            Self::Pair(pair) => pair.end(),
        }
    }
}

/// A trial's two ends: the main guest sends, as it has the files, and its partner
/// receives.
fn ends(trial: &GuestTrial) -> Result<[GuestTrial; 2], Failure> {
    let mut receiver = trial.clone();
    match &mut receiver.request.workload {
        Workload::Transfer(TransferRequest {
            part: part @ TransferPart::Sender { .. },
            ..
        }) => {
            *part = TransferPart::Receiver {
                connect: PairSide::Main.ipv4().into(),
            };
            Ok([trial.clone(), receiver])
        }
        _ => Err(Failure {
            kind: FailureKind::Unsupported,
            message: NOT_TWO_ENDS.into(),
        }),
    }
}

/// Facts in words, for the record.
fn told(facts: &GuestFacts) -> BTreeMap<String, String> {
    let mut told = BTreeMap::new();
    let mut tell = |name: &str, value: String| {
        if !value.is_empty() {
            told.insert(name.to_owned(), value);
        }
    };
    tell("kernel release", facts.kernel_release.clone());
    tell("kernel version", facts.kernel_version.clone());
    tell("kernel command line", facts.command_line.clone());
    tell("CPU", facts.cpu_model.clone());
    tell("CPUs online", facts.cpus_online.to_string());
    tell("memory, bytes", facts.memory_bytes.to_string());
    tell("swap, bytes", facts.swap_bytes.to_string());
    tell(
        "clock source",
        facts.clock_source.clone().unwrap_or_default(),
    );
    tell("clock read, ns", format!("{:.1}", facts.clock_read_ns));
    tell("page, bytes", facts.page_bytes.to_string());
    tell(
        "address-space randomisation",
        facts.randomize_va_space.clone().unwrap_or_default(),
    );
    tell(
        "transparent huge pages",
        facts.transparent_hugepage.clone().unwrap_or_default(),
    );
    tell(
        "multi-generational LRU",
        facts.multi_gen_lru.clone().unwrap_or_default(),
    );
    for (name, state) in &facts.mitigations {
        tell(&format!("mitigation of {name}"), state.clone());
    }
    told
}
