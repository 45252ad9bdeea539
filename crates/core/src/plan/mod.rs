//! Which trials to run, in which order.
//!
//! A plan is a pure function of an experiment and a seed. Both together always give the same list
//! of trials, so a killed run can be resumed.
//!
//! Architecture invariant: this module does no I/O.

mod claimed;
mod combinations;
mod find;
mod order;
mod pairs;
mod parameters;
mod questions;
mod schedule;
mod selections;
mod treatment;
pub mod trees;

pub use claimed::of_claim;
pub use find::{describe, find};
pub use pairs::pairs;
pub use parameters::TreatmentParameters;
pub use schedule::{Plan, TREATMENTS_MAX};
pub use selections::read;
pub use treatment::{Boot, Treatment};

#[cfg(test)]
mod tests;
