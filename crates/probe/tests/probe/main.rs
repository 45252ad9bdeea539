//! Runs trials from request to response, by the built program.
#![expect(
    clippy::disallowed_methods,
    reason = "tests start the program that they test"
)]

mod command;
mod common;
mod competitor;
mod copy;
mod crossing;
mod files;
mod memory;
mod perf_stat;
mod primes;
mod protocol;
mod reclaim;
mod timed_region;
mod transfer;
mod write;
