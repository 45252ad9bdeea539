//! Runs experiments on this machine: where trials run ([`environment`]), how they run ([`trial`]),
//! and where runs are kept ([`store`]).

pub mod environment;
mod machine_id;
pub mod store;
pub mod trial;

pub use machine_id::machine_id;

use toll_core::{claim, count, plan, reason, run, spec};
