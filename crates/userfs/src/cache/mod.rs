//! What lies between the kernel and the source: nothing, or a local copy of
//! each open file that is fetched whole or by block and written back when it
//! is closed or synchronised.

mod copy;
mod fetch;
mod file;
pub(crate) mod journal;
mod replace;
mod retry_queue;
mod staged_upload;
mod write_back;
mod write_back_state;

pub(crate) use file::CachedFile;
pub(crate) use retry_queue::RetryQueue;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// A file is fetched whole when it is opened and written back when it is
    /// closed.
    #[default]
    Whole,
    /// What is read is fetched by block, and ahead of sequential reads; what
    /// is written goes back when the file is closed or synchronised.
    Blocks,
    /// Nothing is kept: each call goes to the source.
    None,
}
