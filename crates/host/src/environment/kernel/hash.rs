//! Hashes in hexadecimal.

use hmac_sha256::Hash;

/// Returns the first digits of a hash, in hexadecimal: enough to distinguish inputs.
pub(super) fn short_hash(bytes: &[u8]) -> String {
    hex(&Hash::hash(bytes)[..8])
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
