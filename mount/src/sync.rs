//! Locks and threads, in one place so that the model checker of
//! `crates/checks/tests/interleavings` can replace them.

pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};
pub(crate) use std::thread::{ThreadId, current as current_thread};
