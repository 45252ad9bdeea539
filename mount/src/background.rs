//! Runs work on new threads.

use std::sync::Arc;
use std::thread::Builder;

use parking_lot::Mutex;

/// Runs `work` on a new thread. If the system cannot start one (`EAGAIN`), runs it on
/// the calling thread, whose reply is then late.
pub(crate) fn run(work: impl FnOnce() + Send + 'static) {
    // A spawn that fails drops its closure, so both sides share the work.
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
