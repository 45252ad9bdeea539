//! A window that moves through a file.

use std::os::fd::BorrowedFd;

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise};

use crate::buffer::page_bytes;
use crate::mapping::{Mapping, READ_WRITE};
use crate::workloads::copy::mover::CallError;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Read,
    Write,
}

/// A mapped part of a file that moves through the file.
pub struct Window {
    place: Mapping,
    access: Access,
    seat: Option<u64>,
}

impl Window {
    pub fn new(length: usize, access: Access) -> Result<Self, Errno> {
        let length = length.next_multiple_of(page_bytes());
        let place = Mapping::anonymous(length, ProtFlags::empty(), MapFlags::empty())?;
        Ok(Self {
            place,
            access,
            seat: None,
        })
    }

    pub fn length(&self) -> usize {
        self.place.length()
    }

    /// Maps the window that has the file's byte at `position`, and returns the mapping
    /// and the byte's offset in it. Windows begin at multiples of their length.
    ///
    /// A page fault on a read also maps the neighbouring pages. A fault on a write maps none of
    /// them, so a window of several pages is populated at once.
    pub fn show(
        &mut self,
        file: BorrowedFd<'_>,
        position: u64,
        size_bytes: u64,
    ) -> Result<(&mut Mapping, usize), CallError> {
        let inside = (position % self.place.length() as u64) as usize;
        let seat = position - inside as u64;
        if self.seat != Some(seat) {
            self.seat = None;
            let access = match self.access {
                Access::Read => ProtFlags::READ,
                Access::Write => READ_WRITE,
            };
            self.place
                .replace(file, seat, access)
                .map_err(|errno| CallError::new("mmap", errno))?;
            if self.access == Access::Write && self.place.length() > page_bytes() {
                let used = (size_bytes - seat).min(self.place.length() as u64) as usize;
                self.populate(file, seat, used)?;
            }
            self.seat = Some(seat);
        }
        Ok((&mut self.place, inside))
    }

    /// Makes the kernel create the page-table entries of all pages that will be
    /// written (`MADV_POPULATE_WRITE`, Linux 5.14).
    fn populate(&self, file: BorrowedFd<'_>, seat: u64, length: usize) -> Result<(), CallError> {
        let whole = length.next_multiple_of(page_bytes());
        // SAFETY: making entries changes no byte of the range, which is mapped.
        let populated = unsafe { madvise(self.place.start(), whole, Advice::LinuxPopulateWrite) };
        match populated {
            // On an older kernel the page faults make the entries.
            Ok(()) | Err(Errno::INVAL) => Ok(()),
            Err(errno) => Err(no_pages(file, seat, length, errno)),
        }
    }

    /// Returns the address of the mapped part, if one is mapped.
    pub fn address(&self) -> Option<u64> {
        self.seat.map(|_| self.place.address())
    }

    /// Unmaps the file.
    pub fn clear(&mut self) -> Result<(), Errno> {
        self.seat = None;
        self.place.clear()
    }
}

/// Finds out why a file has no pages for a range. The kernel only reports that a
/// write there would raise SIGBUS (EFAULT, madvise(2)); fallocate(2) gives the reason.
fn no_pages(file: BorrowedFd<'_>, seat: u64, length: usize, errno: Errno) -> CallError {
    match fallocate(file, FallocateFlags::empty(), seat, length as u64) {
        Err(reason) if reason != Errno::OPNOTSUPP => CallError::new("write", reason),
        _ => CallError::new("write", errno),
    }
}

pub(super) fn last_errno() -> Errno {
    let error = std::io::Error::last_os_error();
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileExt;

    use super::*;
    use crate::mapping::{copy, take};

    #[test]
    fn a_window_moves_through_a_file_of_any_length() {
        let page = page_bytes();
        let content: Vec<u8> = (0..5 * page + 7).map(|i| (i / 13) as u8).collect();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&content).unwrap();
        let sink = tempfile::tempfile().unwrap();
        sink.set_len(content.len() as u64).unwrap();
        let mut from = Window::new(2 * page, Access::Read).unwrap();
        let mut to = Window::new(3 * page, Access::Write).unwrap();
        let size_bytes = content.len() as u64;
        for position in (0..content.len()).step_by(page) {
            let length = page.min(content.len() - position);
            let position = position as u64;
            let (source, begin) = from.show(file.as_fd(), position, size_bytes).unwrap();
            let (target, end) = to.show(sink.as_fd(), position, size_bytes).unwrap();
            copy((source, begin), (target, end), length);
        }
        assert!(from.address().is_some());
        from.clear().unwrap();
        assert_eq!(from.address(), None);
        let mut arrived = vec![0; content.len()];
        sink.read_exact_at(&mut arrived, 0).unwrap();
        assert!(arrived == content, "what arrived differs");
    }

    #[test]
    fn a_window_reaches_beyond_4_gib() {
        let page = page_bytes() as u64;
        let end = (1 << 32) + page + 1;
        let file = tempfile::tempfile().unwrap();
        file.set_len(end).unwrap();
        file.write_all_at(b"end", end - 3).unwrap();
        let mut window = Window::new(2 * page as usize, Access::Read).unwrap();
        let (place, inside) = window.show(file.as_fd(), end - 3, end).unwrap();
        let mut bytes = [0; 3];
        take(place, inside, &mut bytes);
        assert_eq!((inside as u64, &bytes), (page - 2, b"end"));
    }
}
