//! The logic of `toll`, free of input and output: experiment files ([`spec`]), their
//! [`plan`], the records of a [`run`], estimates and verdicts ([`claim`]), why treatments
//! differ ([`explain`]), counts of instructions ([`count`]) and the combined results of many
//! machines ([`fleet`]).

pub mod claim;
pub mod count;
pub mod explain;
pub mod fleet;
pub mod format;
pub mod plan;
pub mod reason;
pub mod run;
pub mod spec;

#[cfg(test)]
#[path = "../../stats/tests/size.rs"]
mod size;
