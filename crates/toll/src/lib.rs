//! `toll` measures what the operating system charges for moving bytes and says
//! which published conclusions about it hold on this machine.
//!
//! The way of the data is one-directional: an experiment file ([`spec`])
//! becomes a [`plan`], whose trials ([`trial`]) run in an [`environment`] and
//! land in the [`store`]; from the stored samples alone [`claim`] draws
//! estimates and verdicts, and [`report`] shows them. `ARCHITECTURE.md` has the
//! map and the invariants. What does no input or output is in `toll_core`.

pub mod cmd;
pub mod environment;
pub mod fleet;
pub mod report;
pub mod store;
pub mod trial;

pub use toll_core::{
    bisect, claim, count, explain, format, grade, history, plan, reason, run, spec, trace,
};
