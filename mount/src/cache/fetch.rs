//! Fetches content from the source into the copy, for a read or ahead of one.

use std::ops::Range;

use parking_lot::MutexGuard;

use super::Mode;
use super::file::{CachedFile, State};
use crate::content::zeroed;
use crate::source::{Error, Handle, Result};

/// Fetch unit for a sequential reader.
const BLOCK_BYTES: u64 = 128 << 10;
/// Fetch unit for any other read: one page. The kernel itself requests further pages
/// that it wants.
const PART_BYTES: u64 = 4 << 10;
/// Length of the longest read of the source. Within one read, a source keeps many
/// requests in flight.
const PIECE_BYTES: u64 = 8 << 20;
/// First read-ahead distance for a sequential reader. It grows to `AHEAD_BYTES_MAX`.
const AHEAD_BYTES_MIN: u64 = 512 << 10;
const AHEAD_BYTES_MAX: u64 = 8 << 20;

impl CachedFile {
    /// Fetches every fetch unit that `wanted` touches.
    pub(super) fn make_present(&self, wanted: &Range<u64>) -> Result<()> {
        if self.mode == Mode::Whole {
            // Everything was fetched at open. What is missing belongs to a file
            // whose first fetch failed, so it is fetched again.
            return self.fetch(wanted.clone());
        }
        let unit = if self.state.lock().is_next(wanted.start) {
            BLOCK_BYTES
        } else {
            PART_BYTES
        };
        let start = wanted.start / unit * unit;
        let end = wanted.end.div_ceil(unit).saturating_mul(unit);
        self.fetch(start..end)
    }

    /// Returns the range to fetch ahead of a read, if the read belongs to a sequence.
    pub fn ahead(&self, wanted: &Range<u64>) -> Option<Range<u64>> {
        if self.mode != Mode::Blocks {
            return None;
        }
        let mut state = self.state.lock();
        if !state.is_next(wanted.start) {
            (state.next_read, state.ahead_bytes) = (wanted.end, 0);
            return None;
        }
        state.next_read = state.next_read.max(wanted.end);
        let distance = state.ahead_bytes.max(AHEAD_BYTES_MIN);
        let start = state.next_read.div_ceil(BLOCK_BYTES) * BLOCK_BYTES;
        let missing = state.missing(start..start + distance).into_iter();
        let mut free = missing.filter(|range| !state.in_flight.overlaps(range));
        let first = free.next()?;
        // The next piece is fetched when half of the distance has been used, so
        // that requests stay large.
        if first.start > start + distance / 2 {
            return None;
        }
        state.ahead_bytes = (distance * 2).min(AHEAD_BYTES_MAX);
        Some(first)
    }

    /// Fetches a range into the copy, up to the end of the source's file.
    pub fn fetch(&self, range: Range<u64>) -> Result<()> {
        let mut state = self.state.lock();
        loop {
            let missing = state.missing(range.clone());
            if missing.is_empty() {
                return Ok(());
            }
            let free = missing
                .into_iter()
                .flat_map(|range| state.in_flight.missing(range))
                .next();
            let Some(free) = free else {
                // Another thread is fetching part of it.
                self.fetched.wait(&mut state);
                continue;
            };
            let piece = free.start..free.end.min(free.start + PIECE_BYTES);
            // Only a complete file, or one whose copy failed, has no handle.
            let handle = state.handle.clone().ok_or(Error::Errno(libc::EIO))?;
            let epoch = state.epoch;
            state.in_flight.insert(piece.clone());
            MutexGuard::unlocked(&mut state, || self.fetch_piece(&piece, &*handle, epoch))?;
        }
    }

    fn fetch_piece(&self, piece: &Range<u64>, handle: &dyn Handle, epoch: u64) -> Result<()> {
        let read = || {
            let mut buffer = zeroed((piece.end - piece.start) as usize)?;
            let count = handle.read_at(&mut buffer, piece.start)?;
            Ok((buffer, count))
        };
        let outcome = read();
        let mut state = self.state.lock();
        state.in_flight.remove(piece.clone());
        let outcome = outcome.and_then(|(buffer, count)| {
            if state.epoch == epoch {
                state.take(piece, &buffer, count)
            } else {
                Ok(())
            }
        });
        drop(state);
        self.fetched.notify_all();
        outcome
    }
}

impl State {
    /// Returns whether a read at this offset belongs to a sequence.
    fn is_next(&self, start: u64) -> bool {
        // The kernel reads ahead with several requests, which may arrive in any
        // order within its window.
        let slack = BLOCK_BYTES;
        start <= self.next_read + slack && start + slack >= self.next_read
    }

    fn missing(&self, range: Range<u64>) -> Vec<Range<u64>> {
        self.present
            .missing(range.start..range.end.min(self.valid_bytes))
    }

    /// Stores fetched bytes in the copy, except where the file was written meanwhile.
    /// If the source's file has become shorter, an unchanged copy is truncated, too. In
    /// a changed copy, the missing bytes are zero.
    pub(super) fn take(&mut self, piece: &Range<u64>, bytes: &[u8], count: usize) -> Result<()> {
        let end = piece.start + count as u64;
        self.copy.check_space(count as u64)?;
        for range in self.missing(piece.start..end) {
            let start = (range.start - piece.start) as usize;
            let stop = (range.end - piece.start) as usize;
            self.copy.write_at(&bytes[start..stop], range.start)?;
            self.present.insert(range);
        }
        if end < piece.end {
            self.valid_bytes = self.valid_bytes.min(end);
            if !self.progress.is_changed() {
                self.source_bytes = self.source_bytes.min(end);
                self.progress.begin_anew(self.source_bytes);
                self.copy.set_len(self.source_bytes)?;
                self.version = None;
            }
        }
        Ok(())
    }
}
