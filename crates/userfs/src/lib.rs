//! A file system in user space whose files lie in a [`source::Source`]: a
//! local directory, or one of another host.

pub mod local;
pub mod ranges;
pub mod sftp;
pub mod source;
pub mod sshd;
mod whole;
