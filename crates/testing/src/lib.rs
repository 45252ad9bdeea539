//! Shared by the tests of all programs of this project: private directories, processes, namespaces.
#![expect(
    clippy::disallowed_methods,
    reason = "tests start the programs under test"
)]

mod bench;
mod kernels;
mod manuals;
mod namespaces;
mod processes;

pub use bench::*;
pub use kernels::{BUILD_PATIENCE, any_kernel, build_kernel, toll_kernel};
pub use manuals::assert_manual_has_options_of;
pub use namespaces::isolated;
pub use processes::{PATIENCE, Running, output_within, processes_marked, wait_until};
