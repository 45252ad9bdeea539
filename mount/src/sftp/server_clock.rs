//! The server's clock, as far as known: times of files are compared with that and
//! never with this host's, which may be hours apart.

use std::time::Instant;

use parking_lot::Mutex;

use crate::source::Timespec;

/// A file that the server's kernel makes at each look-up: its time is the server's
/// present, or earlier. Only Linux has it, and not in every chroot.
pub(super) const NEW_FILE: &[u8] = b"/proc/self/stat";

#[derive(Default)]
pub(super) struct ServerClock {
    /// A moment of the server's clock, and one of this host's that was not earlier.
    latest: Mutex<Option<(i64, Instant)>>,
}

impl ServerClock {
    /// Records the time of a file that the server has just made.
    pub fn observe(&self, made_s: u32) {
        *self.latest.lock() = Some((i64::from(made_s), Instant::now()));
    }

    /// Whether a file that is changed from now on gets a later time of change than
    /// this one. Unknown is no.
    pub fn is_past(&self, changed: Timespec) -> bool {
        self.latest.lock().is_some_and(|(made_s, at)| {
            let elapsed_s = i64::try_from(at.elapsed().as_secs()).unwrap_or(i64::MAX);
            made_s.saturating_add(elapsed_s) > changed.tv_sec.saturating_add(1)
        })
    }
}
