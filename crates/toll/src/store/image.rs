//! A store in memory, from its file and its log: for one that SQLite cannot open
//! because nothing may be written beside it, and for one that is damaged.

use std::io;
use std::path::Path;

use rusqlite::Connection;

use super::StoreError;
use super::log::Log;

/// Size of a page unless the file says otherwise, SQLite's own default, in bytes.
const PAGE_BYTES_DEFAULT: usize = 4096;
/// What each file of SQLite begins with.
const BEGINNING: &[u8; 16] = b"SQLite format 3\0";

/// The pages of a store after the last commit in its log.
#[derive(Clone)]
pub(super) struct Image {
    bytes: Vec<u8>,
    page_bytes: usize,
}

impl Image {
    /// Reads a store's file and log, and changes neither.
    ///
    /// # Errors
    /// If one cannot be read.
    pub fn read(path: &Path, log: &Log) -> io::Result<Self> {
        let mut bytes = match std::fs::read(path) {
            // The log may have all of it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            read => read?,
        };
        let page_bytes = match (log.page_bytes, page_bytes_of(&bytes)) {
            (0, found) => found.unwrap_or(PAGE_BYTES_DEFAULT),
            (of_log, _) => of_log,
        };
        bytes.resize(bytes.len().next_multiple_of(page_bytes), 0);
        for (number, page) in &log.pages {
            let Some(begin) = (*number as usize).checked_sub(1).map(|n| n * page_bytes) else {
                continue;
            };
            let end = begin + page_bytes;
            if bytes.len() < end {
                bytes.resize(end, 0);
            }
            bytes[begin..end].copy_from_slice(page);
        }
        if log.file_pages > 0 {
            bytes.resize(log.file_pages as usize * page_bytes, 0);
        }
        Ok(Self { bytes, page_bytes })
    }

    /// Whether there is nothing in it.
    pub fn is_blank(&self) -> bool {
        self.bytes.iter().all(|byte| *byte == 0)
    }

    /// Whether it begins as each file of SQLite does.
    pub fn has_beginning(&self) -> bool {
        self.bytes.starts_with(BEGINNING)
    }

    /// Puts the first page of another store into the place of its own. That page
    /// holds no data but where the tables are, in which stores agree that were
    /// not brought up from an older version.
    pub fn take_first_page(&mut self, other: &[u8]) {
        let length = self.page_bytes.min(other.len()).min(self.bytes.len());
        self.bytes[..length].copy_from_slice(&other[..length]);
    }

    /// Opens it. Writing to the connection changes memory alone.
    ///
    /// # Errors
    /// If memory is short.
    pub fn open(mut self) -> Result<Connection, StoreError> {
        if self.has_beginning() {
            let pages = u32::try_from(self.bytes.len() / self.page_bytes).unwrap_or(u32::MAX);
            // Memory has no log: 1 is the rollback journal (`fileformat2.html`,
            // section 1.3). The number of pages counts only if both counters of
            // changes agree.
            self.bytes[18..20].fill(1);
            self.bytes[28..32].copy_from_slice(&pages.to_be_bytes());
            self.bytes.copy_within(24..28, 92);
        }
        let mut connection = Connection::open_in_memory()?;
        let length = self.bytes.len();
        connection.deserialize_read_exact("main", self.bytes.as_slice(), length, false)?;
        Ok(connection)
    }
}

/// The size of a page by a file's first bytes.
fn page_bytes_of(bytes: &[u8]) -> Option<usize> {
    let size = bytes.get(16..18)?;
    let size = match u16::from_be_bytes([size[0], size[1]]) {
        1 => 65536,
        size => usize::from(size),
    };
    (size.is_power_of_two() && size >= 512 && bytes.starts_with(BEGINNING)).then_some(size)
}
