//! What booting a guest took, and what the kernel takes.

use serde::{Deserialize, Serialize};

/// Has no parameters: the boot of its guest is over when a trial begins.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BootRequest {
    /// Size of the kernel's image, which the guest does not see.
    #[serde(rename = "@image_bytes")]
    pub image_bytes: u64,
}
