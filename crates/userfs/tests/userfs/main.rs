//! Real mounts of local directories, used as any program uses files.

mod basics;
mod coherence;
mod common;
mod faults;
mod posix;
mod random;
mod remote;
mod server;
