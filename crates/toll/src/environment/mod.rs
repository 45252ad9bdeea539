//! Where trials run: the machine, its file systems, the work directory.
//!
//! Architecture invariant: only this module and [`crate::trial`] start
//! processes.

mod capability;
mod filesystem;
mod inspect;
pub mod leftovers;
pub mod machine;
mod memory;
mod mount_space;
pub mod paths;
mod process;
mod source_file;
mod strace;
mod workspace;

pub use capability::{Capability, capabilities, file_system_obstacle};
pub use inspect::inspect;
pub use leftovers::{Leftover, restore};
pub use memory::memory_obstacle;
pub use source_file::SourceFile;
pub use strace::{Strace, TraceEnd, Unstartable, startable};
pub use workspace::{Workspace, WorkspaceRequest};
