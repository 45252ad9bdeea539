//! The programs `master` and `slave` of the Virtual Device report. They send a file from
//! one to the other through their devices, which the kernel connects by TCP.
//!
//! The programs are thin: the methods to move a file are the probe's, the same as in its
//! `transfer` workload. This crate adds how the two programs meet and report results to
//! each other.
//!
//! Each file has its own connection. The master makes an offer, the slave answers, the
//! file's bytes follow, and the slave sends a receipt once the file has its name
//! (`message.rs`). Only the bytes are timed.

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
