//! What `toll` concludes, without input or output: experiment files ([`spec`]),
//! their [`plan`], the records of a [`run`], estimates and verdicts ([`claim`]),
//! why treatments differ ([`explain`]), the prices of a traced program ([`trace`]), what
//! many machines say together ([`fleet`]), and what a submitted run is worth ([`grade`]).

pub mod bisect;
pub mod claim;
pub mod count;
pub mod explain;
pub mod fleet;
pub mod format;
pub mod grade;
pub mod history;
pub mod plan;
pub mod reason;
pub mod run;
pub mod spec;
pub mod trace;

#[cfg(test)]
#[path = "../../stats/tests/size.rs"]
mod size;
