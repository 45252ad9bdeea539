//! `toll mount` as its users meet it: the built program, with mounts of its own.

mod by_users;
mod mounts;

/// The program under test.
const MOUNT: &str = env!("CARGO_BIN_EXE_toll-mount");
