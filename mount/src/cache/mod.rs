//! What lies between the kernel and the source: nothing, or a local copy of
//! each open file that is fetched whole or by block and written back when it
//! is closed or synchronised.

mod copy;
mod fetch;
mod file;
pub(crate) mod journal;
mod kept;
mod replace;
mod resend;
mod retry_queue;
mod staged_upload;
mod write_back;
mod write_back_state;

pub(crate) use file::CachedFile;
pub use kept::{KeptCopy, kept};
pub(crate) use resend::take_kept;
pub(crate) use retry_queue::RetryQueue;

/// What is kept here of files, in the words of the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Mode {
    /// A file is fetched whole when it is opened and written back when it is
    /// closed
    Whole,
    /// Blocks are fetched as they are read, and ahead of sequential reads;
    /// changes are written back when a file is closed or synchronised
    Blocks,
    /// Every call goes to the source
    None,
}
