//! A file system in user space whose files lie in a [`source::Source`]: a
//! local directory, or one of another host.

mod attributes;
pub mod cache;
mod content;
mod error;
pub mod fuse;
pub mod local;
pub mod mount;
pub mod ranges;
pub mod sftp;
pub mod source;
mod sync;
pub mod tree;
