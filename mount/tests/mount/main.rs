//! Real mounts, and the source over SFTP against OpenSSH's server.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "tests start the process that serves them, and print what they skip"
)]

mod command;
mod fixtures;
mod mounts;
mod sftp;
mod slow;
