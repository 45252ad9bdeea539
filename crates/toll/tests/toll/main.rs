//! The command as its users meet it: every test runs the built programs in
//! directories of its own.
#![expect(
    clippy::disallowed_methods,
    reason = "tests start the programs that they test"
)]

mod ahead;
mod architecture;
mod baselines;
mod bisect;
mod book;
mod build_script;
mod children;
mod ci;
mod ci_trees;
mod cli;
mod cluster;
mod command_ends;
mod command_options;
mod commands;
mod common;
mod damaged_stores;
mod exchange;
mod experiments;
mod exports;
mod faults;
mod files;
mod fleet;
mod fleet_submit;
mod foreign_stores;
mod full_disks;
mod fuzz;
mod gate;
mod grade;
mod history;
mod kernel;
mod kernel_sources;
mod measuring_lock;
mod messages;
mod mount;
mod mount_by_users;
mod namespaces;
mod observe_devices;
mod observe_dhcp;
mod observe_interface;
mod observe_session;
mod outputs;
mod over_runs;
mod paths_in_commands;
mod prices;
mod private_directories;
mod processes;
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
mod trace;
mod trace_prices;
mod trace_running;
mod transfers;
mod trial_environment;
mod user_files;
mod vanishing;
mod verdicts_as_reached;
mod why;
mod work_files;
