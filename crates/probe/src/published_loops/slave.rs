//! The published slave, which copies what it has read into a mapping of its file, window by window.

use std::os::fd::BorrowedFd;

use rustix::fs::ftruncate;
use rustix::mm::MapFlags;

use crate::buffer::page_bytes;
use crate::mapping::{Mapping, READ_WRITE, put};
use crate::workloads::copy::mover::CallError;

/// Called with the address of a window, for example to look up its page-table entry.
pub type OnWindow<'a> = &'a mut dyn FnMut(u64) -> Result<(), CallError>;

/// A file that grows by a window whenever the previous one is full. The published loop expects a
/// window to be full exactly at the end of a read, and otherwise copies past the window. Here the
/// rest goes into the next window.
pub struct OutputWindows {
    window_bytes: usize,
    window: Option<Mapping>,
    file_bytes: u64,
}

impl OutputWindows {
    /// Maps `window_bytes` of the output at a time, rounded up to whole pages.
    pub fn new(window_bytes: usize) -> Self {
        Self {
            window_bytes: window_bytes.next_multiple_of(page_bytes()),
            window: None,
            file_bytes: 0,
        }
    }

    pub fn window_bytes(&self) -> usize {
        self.window_bytes
    }

    /// Appends bytes to the file, which was empty at first. As published, `on_full` gets the
    /// address of a full window once it is unmapped.
    ///
    /// Raises SIGBUS if a page is not available because the file system is full.
    pub fn append(
        &mut self,
        file: BorrowedFd<'_>,
        mut bytes: &[u8],
        on_full: OnWindow<'_>,
    ) -> Result<(), CallError> {
        while !bytes.is_empty() {
            let inside = (self.file_bytes % self.window_bytes as u64) as usize;
            if inside == 0 {
                self.advance(file, on_full)?;
            }
            let window = self.window.as_mut().expect("the file's end is mapped");
            let (now, later) = bytes.split_at(bytes.len().min(self.window_bytes - inside));
            put(now, window, inside);
            self.file_bytes += now.len() as u64;
            bytes = later;
        }
        Ok(())
    }

    fn advance(&mut self, file: BorrowedFd<'_>, on_full: OnWindow<'_>) -> Result<(), CallError> {
        if let Some(full) = self.window.take() {
            let address = full.address();
            drop(full);
            on_full(address)?;
        }
        let grown_bytes = self.file_bytes + self.window_bytes as u64;
        ftruncate(file, grown_bytes).map_err(|errno| CallError::new("ftruncate", errno))?;
        let (length, flags) = (self.window_bytes, MapFlags::SHARED);
        let window = Mapping::of_file(file, self.file_bytes, length, READ_WRITE, flags)
            .map_err(|errno| CallError::new("mmap", errno))?;
        self.window = Some(window);
        Ok(())
    }

    /// Truncates the file to the bytes that it has received, and starts over
    /// for the next file. `on_last` gets the address of the last window, which
    /// is still mapped.
    pub fn finish(&mut self, file: BorrowedFd<'_>, on_last: OnWindow<'_>) -> Result<(), CallError> {
        let file_bytes = std::mem::take(&mut self.file_bytes);
        ftruncate(file, file_bytes).map_err(|errno| CallError::new("ftruncate", errno))?;
        match self.window.take() {
            Some(window) => on_last(window.address()),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileExt;

    use super::*;

    /// Appends pieces to an empty file. Returns its content, and the numbers of full and of last
    /// windows.
    fn appended(window_bytes: usize, pieces: &[&[u8]]) -> (Vec<u8>, [usize; 2]) {
        let file = tempfile::tempfile().unwrap();
        let mut output = OutputWindows::new(window_bytes);
        let mut seen = [0; 2];
        let mut count = |which: usize| {
            seen[which] += 1;
            Ok(())
        };
        for piece in pieces {
            let done = output.append(file.as_fd(), piece, &mut |_| count(0));
            done.unwrap();
        }
        output.finish(file.as_fd(), &mut |_| count(1)).unwrap();
        let mut content = vec![0; file.metadata().unwrap().len() as usize];
        file.read_exact_at(&mut content, 0).unwrap();
        (content, seen)
    }

    #[test]
    fn windows_hold_files_of_any_length_in_pieces_of_any_length() {
        let page = page_bytes();
        let bytes: Vec<u8> = (0..5 * page + 7).map(|i| (i / 13) as u8).collect();
        for window in [page, 2 * page] {
            for length in [0, 1, window - 1, window, window + 1, bytes.len()] {
                for piece in [1000, page, 3 * page + 1] {
                    let pieces: Vec<&[u8]> = bytes[..length].chunks(piece).collect();
                    let (content, [full, last]) = appended(window, &pieces);
                    assert!(content == bytes[..length], "{length} bytes in {window}");
                    assert_eq!(full + last, length.div_ceil(window), "{length} in {window}");
                    assert_eq!(last, usize::from(length > 0));
                }
            }
        }
    }

    #[test]
    fn a_second_file_begins_at_its_beginning() {
        let mut output = OutputWindows::new(page_bytes());
        for bytes in [&b"first"[..], b"2nd"] {
            let file = tempfile::tempfile().unwrap();
            output.append(file.as_fd(), bytes, &mut |_| Ok(())).unwrap();
            output.finish(file.as_fd(), &mut |_| Ok(())).unwrap();
            let mut content = vec![0; bytes.len() + 1];
            assert_eq!(file.read_at(&mut content, 0).unwrap(), bytes.len());
            assert_eq!(&content[..bytes.len()], bytes);
        }
    }
}
