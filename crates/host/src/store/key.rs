//! The key that signs the experiments of runs.

use hmac_sha256::HMAC;

/// Prefix of everything that is signed, so that a signature for another purpose is never accepted.
const PURPOSE: &[u8] = b"toll experiment of a run\0";

/// A secret key of this user.
#[derive(Clone, PartialEq, Eq)]
pub struct RunKey([u8; 32]);

impl std::fmt::Debug for RunKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RunKey")
    }
}

impl RunKey {
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Signs a run's experiment. `experiment` is the text that the store holds.
    pub(super) fn signature(&self, uid: &str, experiment: &str) -> [u8; 32] {
        let mut mac = HMAC::new(self.0);
        mac.update(PURPOSE);
        mac.update((uid.len() as u64).to_le_bytes());
        mac.update(uid);
        mac.update(experiment);
        mac.finalize()
    }
}
