//! Requests to count primes.

use toll_wire::{PrimesRequest, Workload};

use super::TrialRequest;

/// Numbers where none are named: the published experiment's middle.
const DEFAULT_NUMBERS: u64 = 1000;

impl TrialRequest<'_> {
    /// The request for one trial, whose numbers `seed` gives.
    ///
    /// # Errors
    /// If a parameter cannot be read.
    pub(super) fn primes(&self, seed: u64) -> Result<Workload, String> {
        let n = self.count("n", DEFAULT_NUMBERS)?;
        Ok(Workload::Primes(PrimesRequest {
            placement: self.word("placement", "user")?,
            n: u32::try_from(n).map_err(|_| format!("cannot set n to {n}: it is too large"))?,
            random: self.word("random", "seeded")?,
            printing: self.word("printing", "none")?,
            allocation: self.word("allocation", "usual")?,
            clock: self.word("clock", "monotonic")?,
            seed,
        }))
    }
}
