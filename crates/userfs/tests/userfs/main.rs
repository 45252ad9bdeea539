//! Real mounts of local directories, used as any program uses files.

mod basics;
mod common;
mod posix;
mod random;
mod server;
