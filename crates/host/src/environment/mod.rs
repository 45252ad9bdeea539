//! Where trials run: the machine, its file systems, the work directory.
//!
//! Architecture invariant: only this module and [`crate::trial`] start
//! processes.

#[cfg_attr(not(feature = "bpf"), path = "call_counter_missing.rs")]
pub mod call_counter;
mod capability;
pub mod cgroup;
mod cleanup_journal;
pub mod counted_run;
mod filesystem;
mod fuse_servers;
pub mod guest;
mod inspect;
mod instance;
pub mod kernel;
mod libraries;
mod memory;
mod memory_limit;
pub mod other_work;
mod program_content;
pub mod program_files;
pub mod run_key;
mod source_file;
mod swap;
#[cfg_attr(not(feature = "profiles"), path = "symbolizer_missing.rs")]
mod symbolizer;
pub mod symbols;
pub mod variables;
pub mod work_trees;
mod workspace;
mod workspace_check;

pub use capability::{Capability, capabilities, file_system_obstacle};
pub use cleanup_journal::{Leftover, restore};
pub use filesystem::check_foreign;
pub use inspect::inspect;
pub(crate) use instance::Instance;
pub use memory::memory_obstacle;
pub use memory_limit::{MemoryLimit, memory_limit_obstacle};
pub use source_file::{SourceContent, SourceFile, SourceSpec};
pub use workspace::{Workspace, WorkspaceRequest};
pub use workspace_check::Fault;
