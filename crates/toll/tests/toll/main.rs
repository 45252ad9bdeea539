//! Tests of the command as its users see it: every test runs the built programs in directories of
//! its own.
#![expect(
    clippy::disallowed_methods,
    reason = "tests start the programs under test"
)]

mod architecture;
mod baselines;
mod book;
mod build_script;
mod children;
mod cli;
mod command_ends;
mod command_options;
mod commands;
mod damaged_stores;
mod exchange;
mod experiments;
mod exports;
mod faults;
mod files;
mod foreign_stores;
mod full_disks;
mod fuzz;
mod gate;
mod kernel;
mod kernel_sources;
mod measuring_lock;
mod messages;
mod next_probe;
mod outputs;
mod over_runs;
mod paths_in_commands;
mod prices;
mod private_directories;
mod program_files;
mod report_parts;
mod resume;
mod selftest;
mod settings;
mod signals;
mod slow;
mod store_access;
mod terminal;
mod test_tiers;
mod together;
mod transfers;
mod trial_environment;
mod user_files;
mod vanishing;
mod verdicts_as_reached;
mod why;
mod work_files;
