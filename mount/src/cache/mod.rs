//! Local copies of open files, between the kernel and the source. A copy is fetched as
//! a whole or by block, and written back when the file is closed or synchronised. A
//! mount may also work without copies.

mod copy;
mod fetch;
mod file;
pub(crate) mod journal;
mod kept;
mod replace;
mod resend;
mod retry_queue;
mod send_ahead;
mod staged_upload;
mod write_back;
mod write_back_state;

pub(crate) use file::CachedFile;
pub use kept::{KeptCopy, kept};
pub(crate) use resend::take_kept;
pub(crate) use retry_queue::RetryQueue;

/// What a mount keeps of open files, in the words of the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Mode {
    /// Fetch a file whole when it is opened, and write it back when it is closed
    Whole,
    /// Fetch blocks when they are read, and ahead of sequential reads; write changes
    /// back when a file is closed or synchronised
    Blocks,
    /// Send each read and write to the source
    None,
}
