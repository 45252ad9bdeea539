//! The ends of the virtual device.

use toll_wire::{Failure, TransferRequest};

use super::end::{Incoming, Outgoing};
use crate::failure;

/// The master's end.
///
/// # Errors
/// If this machine has no such device.
pub fn sending_end(_transfer: &TransferRequest) -> Result<Box<dyn Outgoing>, Failure> {
    Err(no_device())
}

/// The slave's end.
///
/// # Errors
/// If this machine has no such device.
pub fn receiving_end(_transfer: &TransferRequest) -> Result<Box<dyn Incoming>, Failure> {
    Err(no_device())
}

fn no_device() -> Failure {
    failure::unsupported(
        "cannot transfer through the device: this probe has no ends for it; use another channel"
            .to_owned(),
    )
}
