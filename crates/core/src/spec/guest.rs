//! What an experiment says of the guests that its trials run in.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Experiment, Level};

/// Parameters of a guest. Each needs a boot of its own, and each may be a
/// factor.
pub const BOOT_PARAMETERS: &[&str] = &[
    "accelerator",
    "command_line",
    "kernel",
    "memory",
    PARTNER,
    "swap",
    "vcpus",
];

/// The parameter that says whether a guest is one of two that are joined by a
/// network: [`PARTNER_NONE`] or [`PARTNER_GUEST`].
pub const PARTNER: &str = "partner";
/// The level of [`PARTNER`] for a guest of its own.
pub const PARTNER_NONE: &str = "none";
/// The level of [`PARTNER`] for a guest with another one of its kind.
pub const PARTNER_GUEST: &str = "guest";

/// Why a workload cannot have a guest with a partner.
pub const NOT_TWO_ENDS: &str = "cannot use partner = \"guest\" with this workload: only transfer has two ends; leave partner \
     at none";

/// Why a guest that counts instructions cannot have a partner.
pub(crate) const NO_COMMON_CLOCK: &str = "cannot use partner = \"guest\" with accelerator = \"icount\": the clock of each guest counts \
     its own instructions and not what it waits for; use another accelerator";

/// The parameter that says where a trial runs: [`ON_HOST`] or [`IN_GUEST`].
pub const PLACE: &str = "environment";
/// The level of [`PLACE`] for trials on this machine.
pub const ON_HOST: &str = "host";
/// The level of [`PLACE`] for trials in a guest.
pub const IN_GUEST: &str = "guest";

/// Kernels that a guest may boot: the pinned and patched one, the same with
/// the kernel's own checks, and Debian's as it comes.
pub const KERNELS: &[&str] = &["toll", "toll-debug", "stock"];

/// Ways to run a guest's instructions; `auto` is `kvm` where a guest really
/// boots under it, and `tcg` elsewhere.
pub const ACCELERATORS: &[&str] = &["auto", "kvm", "tcg", "icount"];

/// The guests of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GuestSettings {
    /// Level by name, of the parameters that are no factors: those of
    /// [`BOOT_PARAMETERS`], and [`PLACE`].
    pub parameters: BTreeMap<String, Level>,
    /// Settings of the guest's kernel that are written before each trial, by
    /// the name of the factor or parameter that chooses among their values.
    pub knobs: BTreeMap<String, Knob>,
}

/// A setting of a running kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Knob {
    /// File below `/proc` or `/sys`.
    pub path: String,
    /// What is written into it, by level; if there are none, the level itself.
    pub values: BTreeMap<String, String>,
    /// What is written for a knob that is no factor.
    pub value: Option<String>,
}

impl Knob {
    /// What is written for a level, if the knob has it.
    pub fn written_for<'a>(&'a self, level: &'a str) -> Option<&'a str> {
        match self.values.is_empty() {
            true => Some(level),
            false => self.values.get(level).map(String::as_str),
        }
    }
}

impl Default for GuestSettings {
    /// A guest with what the published machine had, scaled to a laptop: two
    /// CPUs, no swap, and memory for most workloads.
    fn default() -> Self {
        let parameters = [
            (PLACE, IN_GUEST),
            ("accelerator", "auto"),
            ("command_line", ""),
            ("kernel", "toll"),
            ("memory", "1GiB"),
            (PARTNER, PARTNER_NONE),
            ("swap", "0"),
            ("vcpus", "2"),
        ];
        Self {
            parameters: parameters
                .into_iter()
                .map(|(name, text)| (name.to_owned(), Level::new(text)))
                .collect(),
            knobs: BTreeMap::new(),
        }
    }
}

impl GuestSettings {
    /// Whether this is the name of a guest's parameter or knob.
    pub fn has(&self, name: &str) -> bool {
        name == PLACE || BOOT_PARAMETERS.contains(&name) || self.knobs.contains_key(name)
    }

    /// Takes out of the parameters what became a factor.
    pub(super) fn vary(&mut self, name: &str) {
        self.parameters.remove(name);
        if let Some(knob) = self.knobs.get_mut(name) {
            knob.value = None;
        }
    }

    /// The level of a parameter or knob that is no factor.
    pub(super) fn fixed(&self, name: &str) -> Option<&Level> {
        self.parameters.get(name)
    }
}

impl Experiment {
    /// Whether `name` is a parameter or knob of this experiment's guests.
    pub fn is_of_guest(&self, name: &str) -> bool {
        self.guest.as_ref().is_some_and(|guest| guest.has(name))
    }

    /// Puts all trials into guests, with the settings of an experiment that
    /// says nothing of them, unless it has settings of its own.
    pub fn move_into_guest(&mut self) {
        let guest = self.guest.get_or_insert_with(GuestSettings::default);
        for factor in &self.factors {
            guest.parameters.remove(&factor.name);
        }
        if !self.factors.iter().any(|factor| factor.name == PLACE) {
            let inside = Level::new(IN_GUEST);
            guest.parameters.insert(PLACE.to_owned(), inside);
        }
    }
}

#[cfg(test)]
mod tests;
