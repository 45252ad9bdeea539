//! Shared by the tests of all programs of this project: private directories, processes, namespaces.
#![expect(
    clippy::disallowed_methods,
    reason = "tests start the programs under test"
)]

mod bench;
mod namespaces;
mod processes;

pub use bench::*;
pub use namespaces::isolated;
pub use processes::{PATIENCE, Running, output_within, processes_marked, wait_until};
