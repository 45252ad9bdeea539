//! The measured work of toll and its instruments: the workloads of one trial, the clock, the
//! counters and the kernel's accounts.
//!
//! `toll-probe` runs one trial of a workload; `meow`, `timewrite`, `prime_user` and other programs
//! are built from the same workloads.
//!
//! Architecture invariant: the probe knows no experiment, no specification file and no database,
//! and it computes no statistics. It times, counts, checks what arrived, and reports.

pub mod buffer;
mod children;
pub mod clock;
pub mod count_mark;
mod counters;
pub mod device;
mod disturbance;
mod driver;
pub mod failure;
mod fork;
pub mod guest;
mod idle;
mod interruption;
pub mod lifetime;
mod mapping;
mod meter;
pub mod page_cache;
mod proc_file;
mod profile;
pub mod program;
mod published_loops;
mod random;
mod scratch;
pub mod trial;
pub mod usage;
pub mod verify;
mod vmstat;
pub mod workloads;
