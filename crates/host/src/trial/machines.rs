//! The machines of a boot: a guest, or two guests that are joined.

use std::collections::BTreeMap;

use toll_wire::guest::{GuestFacts, GuestTrial, PairSide};
use toll_wire::{Failure, FailureKind, Outcome, TransferPart, TransferRequest, Workload};

use crate::environment::guest::GuestGroup;
use crate::spec::guest::NOT_TWO_ENDS;
use crate::store::{BootRecord, PartnerRecord};

/// Runs one trial, with one end in each guest of a pair. Returns `None` if an interrupt ended the
/// trial.
pub(super) fn run(
    guests: &mut GuestGroup,
    trial: &GuestTrial,
    interrupted: &dyn Fn() -> bool,
) -> Option<Outcome> {
    let parts = match guests.partner() {
        None => Ok(vec![trial.clone()]),
        Some(_) => ends(trial),
    };
    match parts {
        Ok(parts) => guests.trial(&parts, interrupted),
        Err(failure) => Some(Outcome::Failed(failure)),
    }
}

/// Adds to a record what was booted.
pub(super) fn describe(guests: &GuestGroup, record: &mut BootRecord) {
    record.accelerator = Some(guests.main().accelerator().word().to_owned());
    record.facts = known_facts(guests.main().facts());
    record.partner = guests.partner().map(|partner| PartnerRecord {
        facts: known_facts(partner.facts()),
        log: String::new(),
    });
}

/// Records the kernels' logs so far.
pub(super) fn keep_logs(guests: &GuestGroup, record: &mut BootRecord) {
    record.set_log(&guests.main().log());
    if let (Some(guest), Some(partner)) = (guests.partner(), &mut record.partner) {
        partner.set_log(&guest.log());
    }
}

/// Makes the two ends of a trial: the main guest sends, since it has the files, and its partner
/// receives.
fn ends(trial: &GuestTrial) -> Result<Vec<GuestTrial>, Failure> {
    let mut receiver = trial.clone();
    match &mut receiver.request.workload {
        Workload::Transfer(TransferRequest {
            part: part @ TransferPart::Sender { .. },
            ..
        }) => {
            *part = TransferPart::Receiver {
                connect: PairSide::Main.ipv4().into(),
            };
            Ok(vec![trial.clone(), receiver])
        }
        _ => Err(Failure {
            kind: FailureKind::Unsupported,
            message: NOT_TWO_ENDS.into(),
        }),
    }
}

/// Formats facts for the record.
fn known_facts(facts: &GuestFacts) -> BTreeMap<String, String> {
    let known = |fact: &Option<String>| fact.clone().unwrap_or_default();
    let known_facts = [
        ("kernel release", facts.kernel_release.clone()),
        ("kernel version", facts.kernel_version.clone()),
        ("kernel command line", facts.command_line.clone()),
        ("CPU", facts.cpu_model.clone()),
        ("CPUs online", facts.cpus_online.to_string()),
        ("memory, bytes", facts.memory_bytes.to_string()),
        ("swap, bytes", facts.swap_bytes.to_string()),
        ("clock source", known(&facts.clock_source)),
        ("clock read, ns", format!("{:.1}", facts.clock_read_ns)),
        ("page, bytes", facts.page_bytes.to_string()),
        (
            "address-space randomisation",
            known(&facts.randomize_va_space),
        ),
        ("transparent huge pages", known(&facts.transparent_hugepage)),
        ("multi-generational LRU", known(&facts.multi_gen_lru)),
    ];
    let known_facts = known_facts
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value));
    let mitigations = facts.mitigations.iter();
    let mitigations =
        mitigations.map(|(name, state)| (format!("mitigation of {name}"), state.clone()));
    let all = known_facts.chain(mitigations);
    all.filter(|(_, value)| !value.is_empty()).collect()
}
