//! State of a file's changes: one per file, with all of its transitions.
//!
//! ```text
//! Clean ──────▶ Dirty ──────▶ Sending ──────▶ Sent ──────▶ Durable
//!   ▲  (changed)  ▲   (begin)  │  │   (sent)   │  (synced)    │
//!   │             └────────────┘  │            │              │
//!   │               (failed)      └────────────┼──────────────┘ (sent, to the device)
//!   │                                          ▼
//!   └─ (begin_anew)             Dirty again if the sync failed or the file changed
//! ```
//!
//! `Emptied` is `Dirty` for a file that was opened with `O_TRUNC` and not written
//! since. `Kept` is `Dirty` for a file that waits in the retry queue. `Removed` is
//! final: no name is left at the source.
//!
//! A kernel that fails to write a page to its device reports that once and then
//! treats the page as clean. So after a failed `fsync` of the source, a second one
//! proves nothing: ranges sent since the last successful `fsync` are kept in
//! `unsynced`, and are dirty again after a failure.

use std::ops::Range;

use crate::ranges::Ranges;
use crate::source::Timespec;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Stage {
    /// The source has the same content. It is unknown who wrote it, and whether the
    /// source's device has it.
    #[default]
    Clean,
    /// The file was opened to be overwritten, and nothing has been written yet.
    Emptied,
    /// The source lacks changes.
    Dirty,
    /// A write-back is sending the changes.
    Sending,
    /// A write-back is sending changes, and the file has changed again meanwhile.
    SendingOld,
    /// The source has all changes; its device may lack some.
    Sent,
    /// The source's device has all changes.
    Durable,
    /// A write-back failed, and the retry queue has the file.
    Kept,
    /// No name is left at the source.
    Removed,
}

/// The place that a write-back has brought the changes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reached {
    /// The source, but not its device: a later `fsync` brings the changes there.
    Source,
    Device,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The source has all changes.
    Done,
    /// The file has no name, so nothing was sent.
    Removed,
}

/// Changes that one write-back sends. Later changes belong to the next write-back.
#[derive(Debug)]
pub(crate) struct Changes {
    pub dirty: Ranges,
    pub size_bytes: u64,
    pub mtime: Option<Timespec>,
    pub atime: Option<Timespec>,
}

/// State of one file's changes, protected by the lock of the file.
#[derive(Debug, Default)]
pub(crate) struct WriteBackState {
    stage: Stage,
    size_bytes: u64,
    /// Ranges that no write-back has taken yet.
    dirty: Ranges,
    /// Ranges that a write-back is sending.
    in_transit: Ranges,
    /// Ranges that were sent since the last successful `fsync` of the source.
    unsynced: Ranges,
    /// Modification time that the source does not know yet; `atime` is the access time.
    mtime: Option<Timespec>,
    atime: Option<Timespec>,
}

impl WriteBackState {
    pub fn is_changed(&self) -> bool {
        !matches!(
            self.stage,
            Stage::Clean | Stage::Sent | Stage::Durable | Stage::Removed
        )
    }

    pub fn is_emptied(&self) -> bool {
        self.stage == Stage::Emptied
    }

    pub fn is_kept(&self) -> bool {
        self.stage == Stage::Kept
    }

    pub fn is_removed(&self) -> bool {
        self.stage == Stage::Removed
    }

    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    pub fn dirty(&self) -> &Ranges {
        &self.dirty
    }

    /// Returns the ranges that the source may lack, including those that a
    /// write-back is sending.
    pub fn unsent(&self) -> Ranges {
        let mut unsent = self.dirty.clone();
        unsent.extend(&self.in_transit);
        unsent
    }

    /// Returns the access and modification times that the source does not know yet.
    pub fn times(&self) -> (Option<Timespec>, Option<Timespec>) {
        (self.atime, self.mtime)
    }

    /// Starts over with the source's content.
    pub fn begin_anew(&mut self, size_bytes: u64) {
        *self = Self {
            size_bytes,
            ..Self::default()
        };
    }

    /// Adopts the changes of a copy that an earlier mount could not write back.
    pub fn adopt(&mut self, changes: Changes) {
        *self = Self {
            stage: Stage::Kept,
            size_bytes: changes.size_bytes,
            dirty: changes.dirty,
            mtime: changes.mtime,
            atime: changes.atime,
            ..Self::default()
        };
    }

    fn changed(&mut self) {
        self.stage = match self.stage {
            Stage::Clean | Stage::Emptied | Stage::Dirty | Stage::Sent | Stage::Durable => {
                Stage::Dirty
            }
            Stage::Sending | Stage::SendingOld => Stage::SendingOld,
            Stage::Kept => Stage::Kept,
            Stage::Removed => Stage::Removed,
        };
    }

    pub fn written(&mut self, range: Range<u64>, now: Timespec) {
        self.changed();
        self.size_bytes = self.size_bytes.max(range.end);
        self.dirty.insert(range);
        self.mtime = Some(now);
    }

    pub fn resized(&mut self, size_bytes: u64, now: Timespec) {
        self.changed();
        self.size_bytes = size_bytes;
        self.dirty.cut(size_bytes);
        self.unsynced.cut(size_bytes);
        self.mtime = Some(now);
    }

    pub fn emptied(&mut self) {
        if self.stage == Stage::Dirty {
            self.stage = Stage::Emptied;
        }
    }

    pub fn set_times(&mut self, atime: Option<Timespec>, mtime: Option<Timespec>) {
        // A program may set times before it writes the new content.
        if self.stage != Stage::Emptied {
            self.changed();
        }
        self.atime = atime.or(self.atime);
        self.mtime = mtime.or(self.mtime);
    }

    /// Records that the last name is gone, so that nothing is written back any more.
    pub fn removed(&mut self) {
        *self = Self {
            stage: Stage::Removed,
            size_bytes: self.size_bytes,
            ..Self::default()
        };
    }

    pub fn keep(&mut self) {
        if self.is_changed() {
            self.stage = Stage::Kept;
        }
    }

    fn begin(&mut self) -> Option<Changes> {
        match self.stage {
            Stage::Clean | Stage::Sent | Stage::Durable | Stage::Removed => None,
            Stage::Emptied | Stage::Dirty | Stage::Kept | Stage::Sending | Stage::SendingOld => {
                self.stage = Stage::Sending;
                self.in_transit = std::mem::take(&mut self.dirty);
                Some(Changes {
                    dirty: self.in_transit.clone(),
                    size_bytes: self.size_bytes,
                    mtime: self.mtime,
                    atime: self.atime,
                })
            }
        }
    }

    fn sent(&mut self, changes: &Changes, reached: Reached) {
        self.in_transit = Ranges::default();
        if self.mtime == changes.mtime {
            self.mtime = None;
        }
        if self.atime == changes.atime {
            self.atime = None;
        }
        match reached {
            Reached::Source => self.unsynced.extend(&changes.dirty),
            Reached::Device => self.unsynced = Ranges::default(),
        }
        self.stage = match (self.stage, reached) {
            (Stage::SendingOld, _) => Stage::Dirty,
            (Stage::Sending, Reached::Source) => Stage::Sent,
            (Stage::Sending, Reached::Device) => Stage::Durable,
            (other, _) => other,
        };
    }

    /// Records a failed write-back. The source may have any part of the changes.
    fn failed(&mut self, changes: &Changes) {
        self.in_transit = Ranges::default();
        self.stage = match self.stage {
            Stage::Sending | Stage::SendingOld => Stage::Dirty,
            // Another thread, whose write-back failed earlier, has put the file
            // into the retry queue.
            Stage::Kept => Stage::Kept,
            _ => return,
        };
        self.dirty.extend(&changes.dirty);
    }

    fn synced(&mut self) {
        self.unsynced = Ranges::default();
        if matches!(self.stage, Stage::Clean | Stage::Sent) {
            self.stage = Stage::Durable;
        }
    }

    fn sync_failed(&mut self) {
        let unsynced = std::mem::take(&mut self.unsynced);
        self.dirty.extend(&unsynced);
        // A change of length or times alone has no range, but has to be sent again
        // too.
        if self.stage == Stage::Sent {
            self.stage = Stage::Dirty;
        }
    }
}

pub(crate) trait WriteBack {
    type Error;

    fn with<T>(&self, call: impl FnOnce(&mut WriteBackState) -> T) -> T;

    /// Sends changes. If `is_sync`, also brings the changes to the device, provided that
    /// this takes no further round trip.
    fn send(&mut self, changes: &Changes, is_sync: bool) -> Result<Reached, Self::Error>;

    /// Brings the source's content of the file to the source's device, no matter who
    /// wrote the content.
    fn sync(&mut self) -> Result<(), Self::Error>;
}

/// Sends all changes of a file. If `is_sync`, also brings everything that the source
/// has of the file to the source's device. A file in the retry queue is always synchronised,
/// because its kept copy is removed afterwards. Only one write-back of a file runs at a
/// time. After an error, all changes that may not have arrived are dirty again.
pub(crate) fn write_back<F: WriteBack>(file: &mut F, is_sync: bool) -> Result<Outcome, F::Error> {
    let begun = file.with(|state| {
        let is_sync = is_sync || state.is_kept();
        (!state.is_removed()).then(|| (is_sync, state.begin()))
    });
    let Some((is_sync, changes)) = begun else {
        return Ok(Outcome::Removed);
    };
    let mut reached = Reached::Source;
    if let Some(changes) = changes {
        match file.send(&changes, is_sync) {
            Ok(arrived) => {
                reached = arrived;
                file.with(|state| state.sent(&changes, reached));
            }
            Err(error) => {
                file.with(|state| state.failed(&changes));
                return Err(error);
            }
        }
    }
    if is_sync && reached == Reached::Source {
        match file.sync() {
            Ok(()) => file.with(WriteBackState::synced),
            Err(error) => {
                file.with(WriteBackState::sync_failed);
                return Err(error);
            }
        }
    }
    Ok(Outcome::Done)
}
