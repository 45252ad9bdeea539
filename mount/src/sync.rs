//! Locks and threads. They are in one module so that the model checker in
//! `crates/checks/tests/interleavings` can replace them.

pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};
pub(crate) use std::thread::{ThreadId, current as current_thread};
