//! A user-space file system whose files come from a [`source::Source`]: a local
//! directory, or a directory on another host.

mod attributes;
mod background;
pub mod cache;
mod content;
mod descriptors;
mod error;
pub mod fuse;
pub mod local;
pub mod mount;
mod private_directory;
pub mod ranges;
pub mod sftp;
pub mod source;
mod sync;
pub mod tree;
