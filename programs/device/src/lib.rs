//! The programs `master` and `slave` of the Virtual Device report. They send a file from
//! one to the other through their devices, which the kernel connects by TCP.
//!
//! The programs are thin: they move a file by the methods of the probe's `transfer`
//! workload. This crate adds how the two programs meet and report results to each
//! other.
//!
//! Each file has its own connection. The master makes an offer, the slave answers, the
//! file's bytes follow. The slave sends a receipt once the file has its name
//! (`message.rs`). Only the transfer of the bytes is timed.

mod address;
mod master;
mod message;
mod options;
mod output;
mod program;
mod signals;
mod slave;
mod transmission;
mod trouble;

pub use self::program::{master, slave};
