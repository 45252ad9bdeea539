//! One boot of a guest, as it is stored.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Maximum size of one boot's stored log, in bytes. The last part is kept,
/// since a crash is reported there.
pub const LOG_BYTES_MAX: usize = 64 << 10;

/// One boot of a guest: its parameters, facts about it, and its log.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BootRecord {
    /// Block for which the guest was booted, from 0.
    pub block: u32,
    /// When the guest was started, RFC 3339 in UTC.
    pub started_at: String,
    /// Time until the guest accepted requests, in nanoseconds.
    pub boot_ns: u64,
    /// Boot parameters: level by name.
    pub levels: BTreeMap<String, String>,
    /// What executed the guest's instructions: `kvm`, `tcg` or `icount`; `None` if the guest did
    /// not come up.
    pub accelerator: Option<String>,
    /// Facts about the guest by name, as seen from inside; empty if the guest did not come up.
    pub facts: BTreeMap<String, String>,
    /// Why the guest did not come up, or how it ended early.
    pub error: Option<String>,
    /// The kernel's log; only the last part of a long one.
    pub log: String,
    /// The other guest of a pair, if it came up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partner: Option<PartnerRecord>,
}

/// The partner of a guest: facts about the partner, and its log. Both guests have the same boot
/// parameters.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PartnerRecord {
    /// Facts about the partner by name, as seen from inside.
    pub facts: BTreeMap<String, String>,
    /// The kernel's log; only the last part of a long one.
    pub log: String,
}

impl PartnerRecord {
    /// Stores the last whole lines of a log, up to [`LOG_BYTES_MAX`].
    pub fn set_log(&mut self, log: &str) {
        self.log = last_part(log).to_owned();
    }
}

impl BootRecord {
    /// Stores the last whole lines of a log, up to [`LOG_BYTES_MAX`].
    pub fn set_log(&mut self, log: &str) {
        self.log = last_part(log).to_owned();
    }
}

fn last_part(log: &str) -> &str {
    let mut start = log.len().saturating_sub(LOG_BYTES_MAX);
    while !log.is_char_boundary(start) {
        start += 1;
    }
    let kept = &log[start..];
    match start {
        0 => kept,
        _ => kept.find('\n').map_or(kept, |end| &kept[end + 1..]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_whole_lines_of_a_long_log_are_kept() {
        let mut boot = BootRecord::default();
        boot.set_log("short");
        assert_eq!(boot.log, "short");
        let long = "ä line of a log\n".repeat(LOG_BYTES_MAX / 8);
        boot.set_log(&long);
        assert!(boot.log.len() <= LOG_BYTES_MAX);
        assert!(boot.log.len() > LOG_BYTES_MAX - 32);
        assert!(boot.log.starts_with("ä line"));
    }
}
