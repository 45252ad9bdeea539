//! Parameters of a treatment, read from its levels.

use toll_wire::guest::PairSide;
use toll_wire::{
    Channel, Competitor, CompetitorUses, LIMIT_BYTES_MIN, Pressure, Surroundings, TransferPart,
    Workload,
};

use super::Treatment;
use crate::spec::Experiment;
use crate::spec::guest::GuestParameters;

/// The parameters of a treatment.
#[derive(Debug, Clone)]
pub struct TreatmentParameters {
    /// The request to the probe, without directories, files and seeds.
    pub workload: Workload,
    /// The conditions around the trial.
    pub surroundings: Surroundings,
    /// Boot parameters of the treatment's guest; `None` on this machine.
    pub guest: Option<GuestParameters>,
}

impl TreatmentParameters {
    /// Reads the levels of a treatment.
    pub fn new(experiment: &Experiment, treatment: &Treatment) -> Result<Self, String> {
        let kind = experiment.kind(&treatment.levels);
        let levels = treatment.levels.iter();
        let levels: Vec<(&str, &str)> = levels
            .map(|(name, level)| (name.as_str(), level.text.as_str()))
            .collect();
        let boot = treatment.boot();
        let guest = boot.as_ref().map(GuestParameters::read).transpose()?;
        let mut parameters = Self {
            workload: kind.request(&levels)?,
            surroundings: kind.surroundings_of(&levels)?,
            guest,
        };
        let competitor = parameters.competitor();
        match &mut parameters.workload {
            Workload::Memory(memory) => memory.competitor = competitor,
            // The request goes to the main guest; its partner is the other end.
            Workload::Transfer(transfer)
                if parameters
                    .guest
                    .as_ref()
                    .is_some_and(GuestParameters::has_partner) =>
            {
                transfer.part = TransferPart::Sender {
                    listen: PairSide::Main.ipv4().into(),
                };
            }
            _ => {}
        }
        Ok(parameters)
    }

    /// Memory limit of a trial on this machine, in bytes, if it has one. A guest is limited
    /// by its memory.
    pub fn memory_limit(&self) -> Option<u64> {
        let Surroundings {
            pressure,
            limit_bytes,
            ..
        } = self.surroundings;
        match &self.workload {
            _ if self.guest.is_some() => None,
            // As in the report, the machine has twice the memory of the buffer.
            Workload::Memory(memory) if pressure != Pressure::None => {
                Some(limit_bytes.unwrap_or((2 * memory.buffer_bytes).max(LIMIT_BYTES_MIN)))
            }
            Workload::Reclaim(_) => limit_bytes,
            _ => None,
        }
    }

    /// Returns the process that competes for memory. As in the report, it uses as much memory as
    /// the trial may have.
    fn competitor(&self) -> Option<Competitor> {
        let uses = match self.surroundings.pressure {
            Pressure::None => return None,
            Pressure::Competing => CompetitorUses::Random,
            Pressure::Sweeping => CompetitorUses::Sweep,
        };
        let of_guest = self.guest.as_ref().map(|guest| guest.memory_bytes);
        let bytes = self.memory_limit().or(of_guest)?;
        Some(Competitor { bytes, uses })
    }

    /// Returns the name of the file system that holds the trial's files, in the form that names of
    /// work directories have.
    pub fn file_system(&self) -> String {
        let Surroundings {
            fs,
            mount_cache,
            round_trip_ms,
            ..
        } = &self.surroundings;
        let mut name = toll_wire::word(fs);
        if fs.is_served() {
            name.extend(
                mount_cache
                    .iter()
                    .map(|cache| format!(":{}", toll_wire::word(cache))),
            );
            if *round_trip_ms > 0 {
                name += &format!(":{round_trip_ms}ms");
            }
        }
        name
    }

    /// Returns why no machine can run the treatment, if the parameters alone show that.
    pub fn contradiction(&self) -> Option<String> {
        let Workload::Transfer(transfer) = &self.workload else {
            return None;
        };
        if transfer.channel == Channel::Device && self.guest.is_none() {
            return Some(
                "the device needs a guest: its modules are never loaded on this machine".into(),
            );
        }
        transfer.contradiction().map(str::to_owned)
    }
}
