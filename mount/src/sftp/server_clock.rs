//! The server's clock, as far as known. Times of files are compared with it and
//! never with this host's clock, which may differ by hours.

use std::time::Instant;

use parking_lot::Mutex;

use crate::source::Timespec;

/// A file that the server's kernel creates at each lookup. Its time is the server's
/// current time, or earlier. Only Linux has it, and not in every chroot.
pub(super) const NEW_FILE: &[u8] = b"/proc/self/stat";

#[derive(Default)]
pub(super) struct ServerClock {
    /// A time of the server's clock, and a time of this host's clock that was not
    /// earlier.
    latest: Mutex<Option<(i64, Instant)>>,
}

impl ServerClock {
    /// Records the time of a file that the server has just created.
    pub fn observe(&self, made_s: u32) {
        *self.latest.lock() = Some((i64::from(made_s), Instant::now()));
    }

    /// Returns whether a file that is changed from now on gets a later time than
    /// `changed`. False if unknown.
    pub fn is_past(&self, changed: Timespec) -> bool {
        self.latest.lock().is_some_and(|(made_s, at)| {
            let elapsed_s = i64::try_from(at.elapsed().as_secs()).unwrap_or(i64::MAX);
            made_s.saturating_add(elapsed_s) > changed.tv_sec.saturating_add(1)
        })
    }
}
