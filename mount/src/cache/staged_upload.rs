//! Records how far new content was sent to a temporary file, ahead of its write-back.

use std::ffi::OsString;
use std::ops::Range;
use std::sync::Arc;

use crate::ranges::Ranges;
use crate::source::{Attributes, Handle};

pub(super) struct TemporaryFile {
    pub directory: u64,
    pub name: OsString,
    pub handle: Arc<dyn Handle>,
    /// Attributes of the temporary file when it was created.
    pub new: Attributes,
    /// Ranges of the copy that the temporary file has.
    pub sent: Ranges,
}

#[derive(Default)]
pub(super) struct StagedUpload {
    pub temporary: Option<TemporaryFile>,
    /// Ranges of the copy that the temporary file has or is about to get.
    pub sent: Ranges,
    pub end: u64,
    pub is_busy: bool,
    pub is_over: bool,
    /// Whether the temporary file has content that the copy does not have.
    pub is_spoiled: bool,
}

impl StagedUpload {
    pub fn written(&mut self, range: Range<u64>) {
        self.sent.remove(range);
    }

    /// Records that the copy loses its content from offset `at` on.
    pub fn cut(&mut self, at: u64) {
        if at < self.end {
            self.is_spoiled = true;
            self.is_over = true;
        }
    }

    /// Allows new content to be sent ahead again.
    pub fn begin(&mut self) {
        if self.temporary.is_none() && !self.is_busy {
            *self = Self::default();
        }
    }
}
