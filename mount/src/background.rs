//! Work on a thread of its own.

use std::sync::Arc;
use std::thread::Builder;

use parking_lot::Mutex;

/// Does something on a new thread, or here if the system has none to give
/// (`EAGAIN`): a request is answered late then, and not never.
pub(crate) fn run(work: impl FnOnce() + Send + 'static) {
    // A thread that cannot be started drops what it was to do.
    let here = Arc::new(Mutex::new(Some(work)));
    let there = Arc::clone(&here);
    if Builder::new().spawn(move || run_once(&there)).is_err() {
        run_once(&here);
    }
}

fn run_once(work: &Mutex<Option<impl FnOnce()>>) {
    let work = work.lock().take();
    if let Some(work) = work {
        work();
    }
}
