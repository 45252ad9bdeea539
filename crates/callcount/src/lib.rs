//! Counts the system calls of processes in the kernel, by BPF.
//!
//! `bpf/count_calls.c` adds up each call at the tracepoints of all system calls and
//! sends events for what is rare. This crate loads it, marks processes, and makes
//! a [`toll_calls::tally::Tally`] of sums and events.
//!
//! Nothing is left behind: programs and maps are held by descriptors alone, so that the
//! kernel removes them when the process ends, however it does.

mod counter;
mod layout;
mod mark;
mod names;
mod overhead;
mod sums;

pub use counter::{Counted, Counter, Scope};
pub use mark::Marker;
