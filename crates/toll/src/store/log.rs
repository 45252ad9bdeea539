//! The write-ahead log that lies beside a store after a kill.
//!
//! SQLite drops what follows the first damaged frame of a log without a word
//! (`sqlite.org/fileformat2.html`, section 4), and with it trials that were kept. So
//! toll looks into a log before SQLite does.

use std::io;
use std::path::{Path, PathBuf};

const HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: usize = 24;
/// The magic number, but for its last bit, which tells the byte order of sums.
const MAGIC: u32 = 0x377f_0682;

/// A log as it is found.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Log {
    /// Size of a page, in bytes; 0 if the log has no frame.
    pub page_bytes: usize,
    /// Pages that are committed: number from 1, and content.
    pub pages: Vec<(u32, Vec<u8>)>,
    /// Pages of the file after the last commit; 0 without one.
    pub file_pages: u32,
    /// Changes that were committed and cannot be trusted any more.
    pub lost_commits: usize,
}

/// The log of a store.
pub(super) fn path_of(store: &Path) -> PathBuf {
    let mut name = store.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}

impl Log {
    /// Reads the log of a store; one that is not there has nothing in it.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn of(store: &Path) -> io::Result<Self> {
        // A live writer may begin the log anew while it is being read. Real damage
        // stays.
        let mut log = Self::read(store)?;
        for _ in 0..2 {
            if log.lost_commits == 0 {
                break;
            }
            log = Self::read(store)?;
        }
        Ok(log)
    }

    fn read(store: &Path) -> io::Result<Self> {
        match std::fs::read(path_of(store)) {
            Ok(content) => Ok(Self::parse(&content)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error),
        }
    }

    fn parse(content: &[u8]) -> Self {
        let Some((header, frames)) = content.split_at_checked(HEADER_BYTES) else {
            return Self::default();
        };
        let page_bytes = word(header, 8) as usize;
        let is_page = page_bytes.is_power_of_two() && (512..=65536).contains(&page_bytes);
        let mut sums = Sums::new(word(header, 0));
        sums.add(&header[..24]);
        if word(header, 0) & !1 != MAGIC
            || !is_page
            || !sums.are(word(header, 24), word(header, 28))
        {
            // SQLite writes the header before any frame.
            let lost_commits = usize::from(frames.iter().any(|byte| *byte != 0));
            return Self {
                lost_commits,
                ..Self::default()
            };
        }
        let salts = &header[16..24];
        let mut log = Self {
            page_bytes,
            ..Self::default()
        };
        let mut pending = Vec::new();
        let mut is_intact = true;
        for frame in frames.chunks_exact(FRAME_HEADER_BYTES + page_bytes) {
            let (head, page) = frame.split_at(FRAME_HEADER_BYTES);
            // What is left of an earlier log has other salts, and is no part of
            // this one.
            if &head[8..16] != salts {
                is_intact = false;
                continue;
            }
            sums.add(&head[..8]);
            sums.add(page);
            is_intact &= sums.are(word(head, 16), word(head, 20));
            let file_pages = word(head, 4);
            if is_intact {
                pending.push((word(head, 0), page.to_vec()));
                if file_pages != 0 {
                    log.pages.append(&mut pending);
                    log.file_pages = file_pages;
                }
            } else if file_pages != 0 {
                log.lost_commits += 1;
            }
        }
        // Every commit but the last had reached the device before the next began,
        // and the last may have been torn by a power cut.
        log.lost_commits = log.lost_commits.saturating_sub(1);
        log
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    let bytes = bytes[at..at + 4].try_into();
    u32::from_be_bytes(bytes.expect("the slice is four bytes"))
}

/// The running sums of a log (`fileformat2.html`, section 4.2).
struct Sums {
    is_big_endian: bool,
    first: u32,
    second: u32,
}

impl Sums {
    fn new(magic: u32) -> Self {
        Self {
            is_big_endian: magic & 1 == 1,
            first: 0,
            second: 0,
        }
    }

    fn add(&mut self, bytes: &[u8]) {
        let number = match self.is_big_endian {
            true => u32::from_be_bytes,
            false => u32::from_le_bytes,
        };
        let (words, _) = bytes.as_chunks::<4>();
        let (pairs, _) = words.as_chunks::<2>();
        for [even, odd] in pairs {
            self.first = self
                .first
                .wrapping_add(number(*even))
                .wrapping_add(self.second);
            self.second = self
                .second
                .wrapping_add(number(*odd))
                .wrapping_add(self.first);
        }
    }

    fn are(&self, first: u32, second: u32) -> bool {
        (self.first, self.second) == (first, second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::Connection;

    /// A log of some commits, and the store's size in pages.
    fn log_of(commits: usize) -> (Vec<u8>, u32) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.sqlite");
        let connection = Connection::open(&path).unwrap();
        connection
            .execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (x)")
            .unwrap();
        for _ in 1..commits {
            let sql = "INSERT INTO t VALUES (randomblob(5000))";
            connection.execute(sql, []).unwrap();
        }
        let pages = connection.query_row("PRAGMA page_count", [], |row| row.get(0));
        (std::fs::read(path_of(&path)).unwrap(), pages.unwrap())
    }

    #[test]
    fn an_intact_log_has_lost_nothing() {
        let (content, pages) = log_of(4);
        let log = Log::parse(&content);
        assert_eq!((log.page_bytes, log.file_pages), (4096, pages));
        assert_eq!(log.lost_commits, 0);
        let frames = (content.len() - HEADER_BYTES) / (FRAME_HEADER_BYTES + 4096);
        assert_eq!(log.pages.len(), frames);
    }

    #[test]
    fn a_log_that_ends_early_has_lost_nothing_that_it_promised() {
        let (content, _) = log_of(4);
        for length in (0..content.len()).step_by(97) {
            assert_eq!(Log::parse(&content[..length]).lost_commits, 0, "{length}");
        }
    }

    #[test]
    fn a_damage_before_later_commits_is_seen() {
        let (content, _) = log_of(9);
        for at in (0..content.len() / 2).step_by(61) {
            let mut damaged = content.clone();
            damaged[at] ^= 0x10;
            // The header's sequence number is covered by its sum, too.
            assert!(Log::parse(&damaged).lost_commits > 0, "byte {at}");
        }
    }

    #[test]
    fn the_last_commit_may_be_torn() {
        let (content, _) = log_of(4);
        let mut torn = content.clone();
        *torn.last_mut().unwrap() ^= 1;
        let log = Log::parse(&torn);
        assert_eq!(log.lost_commits, 0);
        assert!(log.pages.len() < Log::parse(&content).pages.len());
    }
}
