//! Families of tests that take minutes: they boot guests, build kernels, make file systems and
//! packages, or kill many runs. `make test` runs the few of them that .config/nextest.toml names;
//! `make test-all` runs all of them.

mod clock;
mod device_programs;
mod file_systems;
mod guest;
mod guest_commands;
mod guest_count;
mod guest_pair;
mod guest_runs;
mod kernel_ab;
mod kernel_build;
mod kernel_code;
mod kernel_selftests;
mod kills;
mod packages;
mod page;
mod pressure;
