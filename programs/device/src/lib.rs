//! The programs `master` and `slave` of the Virtual Device report: a file goes
//! from one to the other through their devices, which the kernel joins by TCP.
//!
//! They are thin: the ways to move a file are the probe's, and the same in its
//! `transfer` workload. What is added here is what lets two programs meet and
//! tell each other how it went.
//!
//! For each file there is one connection. The master makes an offer, the slave
//! answers, the file's bytes follow, and the slave gives a receipt once the file
//! has its name (`message.rs`). Only the bytes are timed.

mod address;
mod master;
mod message;
mod options;
mod output;
mod program;
mod signals;
mod slave;
mod trouble;

pub use self::program::{master, slave};
