//! Where trials run: the machine, its file systems, the work directory.
//!
//! Architecture invariant: only this module and [`crate::trial`] start
//! processes.

pub mod background;
pub mod bounded;
#[cfg_attr(not(feature = "bpf"), path = "call_counter_missing.rs")]
pub mod call_counter;
mod capability;
pub mod capture;
pub mod cgroup;
pub mod children;
mod cleanup_journal;
pub mod counted_run;
pub mod devices;
mod filesystem;
mod fuse_servers;
pub mod guest;
pub mod history;
mod inspect;
pub mod interfaces;
pub mod kernel;
mod libraries;
mod memory;
mod memory_limit;
pub mod notes;
pub mod other_work;
pub mod paths;
pub mod private_directory;
mod process;
mod process_stat;
pub mod program_files;
pub mod run_key;
pub mod slurm;
mod source_file;
mod strace;
mod swap;
#[cfg_attr(not(feature = "profiles"), path = "symbolizer_missing.rs")]
mod symbolizer;
pub mod symbols;
mod users;
pub mod variables;
pub mod work_trees;
mod workspace;
mod workspace_check;

pub use capability::{Capability, capabilities, file_system_obstacle};
pub(crate) use cleanup_journal::Instance;
pub use cleanup_journal::{Leftover, restore};
pub use filesystem::{check_foreign, served_at};
pub use inspect::inspect;
pub use memory::memory_obstacle;
pub use memory_limit::{MemoryLimit, memory_limit_obstacle};
pub use private_directory::LockFile;
pub use source_file::{SourceContent, SourceFile, SourceSpec};
pub use strace::{Strace, TraceEnd, Unstartable, startable};
pub(crate) use users::user_of_process;
pub use workspace::{Workspace, WorkspaceRequest};
pub use workspace_check::Fault;
