//! `toll fleet` with real schedulers, and the tables in real query engines.
#![expect(
    clippy::disallowed_methods,
    reason = "tests start the programs that they test"
)]

mod cluster;
mod fleet;
mod fleet_submit;
mod slow;
