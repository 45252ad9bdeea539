//! From samples to estimates and verdicts.

pub mod model;
