//! Replayed runs, and searches in simulated histories.

mod bisect;
mod replay;
