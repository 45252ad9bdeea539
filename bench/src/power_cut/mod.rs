//! The part of the power-cut test that runs inside a guest.

pub mod dump;
pub mod mounted;
pub mod without_fsync;
pub mod work;

use toll_stats::Rng;

/// Returns bytes that are determined by a seed, the same in the guest and on the host.
#[must_use]
pub fn content(seed: u64, bytes: usize) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    let mut content = Vec::with_capacity(bytes + 8);
    while content.len() < bytes {
        content.extend_from_slice(&rng.next_u64().to_le_bytes());
    }
    content.truncate(bytes);
    content
}
