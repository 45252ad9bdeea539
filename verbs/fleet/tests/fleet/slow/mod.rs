//! A family of tests that takes minutes.

mod fleet_slurm;
