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
mod children;
mod ci;
mod cli;
mod clock;
mod cluster;
mod command_ends;
mod command_options;
mod commands;
mod common;
mod damaged_stores;
mod device_programs;
mod exchange;
mod experiments;
mod exports;
mod faults;
mod file_systems;
mod files;
mod fleet;
mod fleet_slurm;
mod fleet_submit;
mod full_disks;
mod gate;
mod guest;
mod guest_commands;
mod guest_count;
mod guest_pair;
mod guest_runs;
mod history;
mod hostile;
mod kernel;
mod kernel_ab;
mod kernel_build;
mod kernel_code;
mod kernel_selftests;
mod kernel_sources;
mod kills;
mod messages;
mod mount;
mod mount_by_users;
mod observe_devices;
mod observe_dhcp;
mod observe_interface;
mod observe_session;
mod outputs;
mod packages;
mod page;
mod pressure;
mod prices;
mod processes;
mod report_parts;
mod resume;
mod selftest;
mod settings;
mod signals;
mod store_access;
mod terminal;
mod test_script;
mod together;
mod trace;
mod trace_prices;
mod trace_running;
mod transfers;
mod vanishing;
mod verdicts_as_reached;
mod why;
mod work_files;
