//! How far new content was sent ahead of its write-back, to a temporary file.

use std::ffi::OsString;
use std::ops::Range;
use std::sync::Arc;

use crate::ranges::Ranges;
use crate::source::{Attributes, Handle};

pub(super) struct TemporaryFile {
    pub directory: u64,
    pub name: OsString,
    pub handle: Arc<dyn Handle>,
    /// Its attributes when it was created.
    pub new: Attributes,
    /// Ranges of the copy that it has.
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
    /// The temporary file has content that the copy does not have.
    pub is_spoiled: bool,
}

impl StagedUpload {
    pub fn written(&mut self, range: Range<u64>) {
        self.sent.remove(range);
    }

    /// Records that the copy loses its content from an offset on.
    pub fn cut(&mut self, at: u64) {
        if at < self.end {
            self.is_spoiled = true;
            self.is_over = true;
        }
    }

    /// Allows the next content to be sent ahead again.
    pub fn begin(&mut self) {
        if self.temporary.is_none() && !self.is_busy {
            *self = Self::default();
        }
    }
}
