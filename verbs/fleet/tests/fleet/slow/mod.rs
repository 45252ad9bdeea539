//! Tests that take minutes.

mod fleet_slurm;
