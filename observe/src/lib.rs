//! What can be read out of a recorded terminal session, a table of open
//! descriptors, a capture of a network, and the kernel's routing tables.
//!
//! Architecture invariant: every function depends on its arguments alone. This
//! crate opens no file, asks no kernel, and prints nothing, so that whatever it
//! says of a recording it says again.

pub mod devices;
pub mod dhcp;
pub mod interfaces;
pub mod session;
