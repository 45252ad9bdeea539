//! What all kinds of crossings have in common.

use toll_wire::Failure;

use crate::failure;

/// One kind of crossing, ready to run.
pub trait Crossing {
    /// Prepares `calls` crossings, untimed.
    fn prepare(&mut self, _calls: u64) -> Result<(), Failure> {
        Ok(())
    }

    /// Makes `calls` crossings, timed.
    fn cross(&mut self, calls: u64) -> Result<(), Failure>;

    /// Checks and removes the results of the crossings, untimed.
    fn settle(&mut self, _calls: u64) -> Result<(), Failure> {
        Ok(())
    }
}

impl<F: FnMut(u64) -> Result<(), Failure>> Crossing for F {
    fn cross(&mut self, calls: u64) -> Result<(), Failure> {
        self(calls)
    }
}

/// Fails unless the result of the crossings is right.
pub fn check(is_right: bool, what_is_wrong: &str) -> Result<(), Failure> {
    if is_right {
        Ok(())
    } else {
        Err(failure::failed(format!(
            "cannot trust the crossings: {what_is_wrong}; see the kernel log"
        )))
    }
}
