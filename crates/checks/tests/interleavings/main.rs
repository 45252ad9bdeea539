//! Model checking of every interleaving of a few threads that write back one file or
//! lock paths. The modules are those of the library; `loom` replaces the system's locks
//! and threads.

#![expect(dead_code, reason = "the models use only parts of each module")]

mod sync {
    pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};
    pub(crate) use loom::thread::{ThreadId, current as current_thread};
}
mod source {
    pub use toll_mount::source::{Error, Result, Timespec};
}
#[path = "../../../../mount/src/ranges.rs"]
mod ranges;

#[path = "../../../../mount/src/mount/path_locks.rs"]
mod path_locks;
#[path = "../../../../mount/src/cache/write_back_state.rs"]
mod write_back_state;

mod both_sides;
mod durability;
mod paths;

/// Runs a model in every interleaving with at most two preemptions. That finds almost
/// all faults in a fraction of the time.
fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(model);
}
