//! `toll mount` as its users see it: the built program, with its own mounts.

mod by_users;
mod mounts;

/// The program under test.
const MOUNT: &str = env!("CARGO_BIN_EXE_toll-mount");
