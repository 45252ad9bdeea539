//! Counts the system calls of processes in the kernel, with BPF.
//!
//! `bpf/count_calls.c` counts each call at the tracepoints of all system calls and sends
//! events for what is rare. This crate loads it, marks processes, and builds a
//! [`toll_calls::tally::Tally`] from sums and events.
//!
//! Nothing is left behind: only file descriptors hold the programs and maps, so the kernel
//! removes them however the process ends.

mod counter;
mod layout;
mod mark;
mod names;
mod overhead;
mod sums;

pub use counter::{Counted, Counter, Scope};
pub use mark::Marker;
