//! `toll` measures what the operating system charges for moving bytes and says
//! which published conclusions about it hold on this machine.
//!
//! An experiment file ([`spec`]) becomes a [`plan`], whose trials run in an environment and are
//! kept in the store (`toll_host`). From the stored samples alone, [`claim`] computes estimates and
//! verdicts, and `toll_report` shows them. `ARCHITECTURE.md` has the map and the invariants.

pub mod cmd;

use toll_core::{claim, format, run, spec};
