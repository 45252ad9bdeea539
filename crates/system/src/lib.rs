//! Access to the system that all programs of this project need: places for their files, other
//! programs, signals and printing.

pub mod bounded;
mod cannot;
pub mod children;
pub mod command_line;
mod failure;
pub mod interrupt;
pub mod kept_files;
pub mod manual;
pub mod mount_table;
pub mod output;
pub mod paths;
pub mod private_directory;
pub mod process;
pub mod process_stat;
pub mod products;
pub mod strace;
pub mod users;

pub use cannot::Cannot;
pub use failure::{Failure, exit_code, exit_code_of};
