//! A limit on the time of one program.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Longest time of one trial; some thousand times what a gigabyte takes.
const LIMIT: Duration = Duration::from_secs(120);
/// Pause between looks; wakes one thread for microseconds.
const PAUSE: Duration = Duration::from_secs(1);

/// Kills a program that does not end.
#[derive(Clone)]
pub(crate) struct Watchdog(Arc<Mutex<Option<(Pid, Instant)>>>);

impl Watchdog {
    /// Starts the watching thread, which ends with this process.
    pub(crate) fn start() -> Watchdog {
        let watchdog = Watchdog(Arc::default());
        let watched = watchdog.clone();
        std::thread::spawn(move || {
            loop {
                std::thread::sleep(PAUSE);
                watched.look();
            }
        });
        watchdog
    }

    fn look(&self) {
        let watched = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((pid, since)) = *watched
            && since.elapsed() > LIMIT
        {
            // It may have just ended; then there is nothing to kill.
            let _ = kill_process(pid, Signal::KILL);
        }
    }

    /// Watches a child from now on.
    pub(crate) fn watch(&self, pid: Pid) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((pid, Instant::now()));
    }

    /// Ends watching. Must be called before the child is reaped: from then on
    /// its process id may be another's.
    pub(crate) fn release(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
