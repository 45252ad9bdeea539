//! Tests the crate against published values, against brute force, and in simulated worlds.

mod coverage;
mod derived;
mod properties;
mod published;
mod purity;
mod simulation;
mod size;
mod vectors;
mod worlds;
