//! Settings of the guests in which an experiment's trials run.

use std::collections::BTreeMap;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use toll_wire::{count, from_levels, size_within};

use super::{KernelName, Level};

/// The parameter that says where a trial runs: [`ON_HOST`] or [`IN_GUEST`].
pub const PLACE: &str = "environment";
pub const ON_HOST: &str = "host";
pub const IN_GUEST: &str = "guest";

/// The parameter that says whether a guest has a partner on the same network: `none` or
/// [`PARTNER_GUEST`].
pub const PARTNER: &str = "partner";
pub const PARTNER_GUEST: &str = "guest";

/// Why a workload cannot have a guest with a partner.
pub const NOT_TWO_ENDS: &str = "cannot use partner = \"guest\" with this workload: only transfer has two ends; leave partner \
     at none";

/// Why a guest that counts instructions cannot have a partner.
pub(crate) const NO_COMMON_CLOCK: &str = "cannot use partner = \"guest\" with accelerator = \"icount\": the clock of each guest counts \
     its own instructions and not the time that it waits; use another accelerator";

/// The parameters with which a guest is booted. Each may be a factor, and each
/// level needs its own boot.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GuestParameters {
    pub accelerator: GuestAccelerator,
    /// Text that is appended to the kernel's command line.
    #[serde(deserialize_with = "command_line")]
    pub command_line: String,
    /// Name of the kernel to boot. Only `toll` knows which kernels exist.
    pub kernel: KernelName,
    #[serde(rename = "memory", deserialize_with = "memory_size")]
    pub memory_bytes: u64,
    pub partner: Partner,
    #[serde(rename = "swap", deserialize_with = "swap_size")]
    pub swap_bytes: u64,
    /// Number of virtual CPUs, at most as many as the pinned kernel is configured for.
    #[serde(deserialize_with = "count::<1, 8, _, _>")]
    pub vcpus: u32,
}

/// What executes a guest's instructions; `auto` is `kvm` if a guest really boots
/// under it, else `tcg`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GuestAccelerator {
    Auto,
    Kvm,
    Tcg,
    Icount,
}

/// Whether a guest has a partner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Partner {
    None,
    Guest,
}

/// Reads a guest's memory size. Below 64 MiB the kernel cannot boot and start its first
/// process.
fn memory_size<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    size_within(from, 64 << 20..=1 << 40, "64 MiB to 1 TiB")
}

fn swap_size<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    size_within(from, 0..=1 << 40, "0 to 1 TiB")
}

fn command_line<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    // x86 limits the whole command line to 2048.
    const BYTES_MAX: usize = 1024;
    let text = String::deserialize(from)?;
    let is_printable = |c: char| c.is_ascii_graphic() || c == ' ';
    if text.len() <= BYTES_MAX && text.chars().all(is_printable) {
        Ok(text)
    } else {
        Err(D::Error::custom(format!(
            "use at most {BYTES_MAX} printable ASCII characters"
        )))
    }
}

impl Default for GuestParameters {
    fn default() -> Self {
        Self {
            accelerator: GuestAccelerator::Auto,
            command_line: String::new(),
            kernel: "toll".parse().expect("it is a name"),
            memory_bytes: 1 << 30,
            partner: Partner::None,
            swap_bytes: 0,
            vcpus: 2,
        }
    }
}

/// The default parameters as levels, including [`PLACE`]: those of the published machine, scaled to
/// a laptop.
const DEFAULTS: [(&str, &str); 8] = [
    (PLACE, IN_GUEST),
    ("accelerator", "auto"),
    ("command_line", ""),
    ("kernel", "toll"),
    ("memory", "1GiB"),
    (PARTNER, "none"),
    ("swap", "0"),
    ("vcpus", "2"),
];

impl GuestParameters {
    pub fn names() -> impl Iterator<Item = &'static str> {
        DEFAULTS
            .iter()
            .map(|(name, _)| *name)
            .filter(|name| *name != PLACE)
    }

    /// Reads the parameters with which a guest is booted.
    pub fn read(boot: &BTreeMap<String, String>) -> Result<Self, String> {
        from_levels(
            boot.iter()
                .map(|(name, text)| (name.as_str(), text.as_str())),
        )
    }

    pub fn has_partner(&self) -> bool {
        self.partner == Partner::Guest
    }

    /// Whether the guest's clock counts instructions.
    pub fn counts_instructions(&self) -> bool {
        self.accelerator == GuestAccelerator::Icount
    }

    /// Returns why no guest can be booted with these parameters.
    pub(crate) fn contradiction(&self) -> Option<&'static str> {
        (self.has_partner() && self.counts_instructions()).then_some(NO_COMMON_CLOCK)
    }
}

/// The guests of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GuestSettings {
    /// Levels, by name, of [`PLACE`] and of all [`GuestParameters`] that are not
    /// factors.
    pub parameters: BTreeMap<String, Level>,
    /// Settings of the guest's kernel that are written before each trial. The key is the name of
    /// the factor or parameter whose level chooses the value.
    pub knobs: BTreeMap<String, Knob>,
}

/// A setting of a running kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Knob {
    /// File below `/proc/sys` or `/sys`.
    pub path: String,
    /// Values to write into the file, by level; if empty, the level itself is written.
    #[serde(default)]
    pub values: BTreeMap<String, Level>,
    /// Value to write for a knob that is not a factor.
    pub value: Option<Level>,
}

impl Knob {
    /// Returns the value to write for a level, if the knob has it.
    pub fn written_for<'a>(&'a self, level: &'a str) -> Option<&'a str> {
        if self.values.is_empty() {
            Some(level)
        } else {
            self.values.get(level).map(|value| value.text.as_str())
        }
    }
}

impl Default for GuestSettings {
    fn default() -> Self {
        let parameters = DEFAULTS.map(|(name, text)| (name.to_owned(), Level::new(text)));
        Self {
            parameters: parameters.into(),
            knobs: BTreeMap::new(),
        }
    }
}

impl GuestSettings {
    /// Whether this is the name of a guest's parameter or knob.
    pub fn has(&self, name: &str) -> bool {
        DEFAULTS.iter().any(|(known, _)| *known == name) || self.knobs.contains_key(name)
    }

    /// Removes a parameter that became a factor, or the value of a knob that did.
    pub(super) fn vary(&mut self, name: &str) {
        self.parameters.remove(name);
        if let Some(knob) = self.knobs.get_mut(name) {
            knob.value = None;
        }
    }
}

#[cfg(test)]
mod tests;
