//! `toll` measures what the operating system charges for moving bytes and says
//! which published conclusions about it hold on this machine.
//!
//! An experiment file ([`toll_core::spec`]) becomes a plan ([`toll_core::plan`]), whose trials run in an
//! environment and are kept in the store (`toll_host`). From the stored samples alone,
//! [`toll_core::claim`] computes estimates and verdicts, and `toll_report` shows them. `ARCHITECTURE.md` has the map and the invariants.

pub mod cmd;

use toll_core::{claim, format, run, spec};
