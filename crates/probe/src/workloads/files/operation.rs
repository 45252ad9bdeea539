//! What all operations on files have in common.

use std::path::Path;

use toll_wire::Failure;

use super::set::Set;
use crate::failure;

/// The work of one pass.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Done {
    /// Calls that moved data of the large file, or small files worked on.
    pub operations: u64,
    pub calls: u64,
    pub bytes_read: u64,
    pub bytes_written: u64,
}

pub trait Operation {
    /// Makes the files that the pass needs.
    fn lay(&self, set: &Set) -> Result<(), Failure>;

    /// Drops the files, and their names where these matter, from memory. Returns a note about that.
    fn cool(&self, set: &Set) -> Result<Option<String>, Failure>;

    /// Brings the files into memory by an untimed pass.
    fn warm(&mut self, set: &Set) -> Result<(), Failure>;

    fn run(&mut self, set: &Set) -> Result<Done, Failure>;

    fn check(&mut self, set: &Set) -> Result<(), Failure>;
}

pub fn distrust(path: &Path, why: &str) -> Failure {
    failure::failed(format!(
        "cannot trust the files: {} {why}; the file system or a device loses data",
        path.display()
    ))
}
