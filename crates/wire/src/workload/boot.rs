//! The cost of booting a guest, and the size of its kernel.

use serde::{Deserialize, Serialize};

use crate::levels::from_levels;
use crate::work_request::WorkRequest;

/// Has no parameters: when a trial begins, its guest has already booted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BootRequest {
    /// Size of the kernel's image in bytes, which the guest cannot see.
    #[serde(rename = "@image_bytes")]
    pub image_bytes: u64,
}

impl WorkRequest for BootRequest {
    const STARTS_PROGRAMS: bool = true;

    fn read(levels: &[(&str, &str)]) -> Result<Self, String> {
        from_levels(levels.iter().copied())
    }
}
