//! Reads recorded terminal sessions, tables of open descriptors, network captures, and
//! the kernel's routing tables.
//!
//! Architecture invariant: every function depends on its arguments alone. This crate
//! opens no file, makes no system call, and prints nothing, so that one recording
//! always gives the same result.

pub mod devices;
pub mod dhcp;
pub mod interfaces;
pub mod session;
