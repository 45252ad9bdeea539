//! Locks and threads, in one place so that the model checker of
//! `crates/checks/tests/interleavings` can put its own in their stead.

pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};
pub(crate) use std::thread::{ThreadId, current as current_thread};
