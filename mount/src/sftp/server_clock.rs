//! Estimates the server's clock. Times of files are compared with this estimate and
//! never with this host's clock, which may differ by hours.

use std::time::Instant;

use parking_lot::Mutex;

use crate::source::Timespec;

/// A file that the server's kernel creates at each lookup. Its time is the server's
/// current time, or earlier. Only Linux has this file, and not in every chroot.
pub(super) const NEW_FILE: &[u8] = b"/proc/self/stat";

#[derive(Default)]
pub(super) struct ServerClock {
    /// The last observed time of the server's clock, in seconds, and a moment of this machine's
    /// clock by which the server had reached that time.
    latest: Mutex<Option<(i64, Instant)>>,
}

impl ServerClock {
    /// Records the time of a file that the server has just created.
    pub fn observe(&self, made_s: u32) {
        *self.latest.lock() = Some((i64::from(made_s), Instant::now()));
    }

    /// Returns whether a file that is changed from now on certainly gets a later time
    /// than `changed`.
    pub fn is_past(&self, changed: Timespec) -> bool {
        self.latest.lock().is_some_and(|(made_s, at)| {
            let elapsed_s = i64::try_from(at.elapsed().as_secs()).unwrap_or(i64::MAX);
            made_s.saturating_add(elapsed_s) > changed.tv_sec.saturating_add(1)
        })
    }
}
