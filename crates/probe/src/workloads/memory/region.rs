//! A mapped range of memory.

use std::io;
use std::os::fd::BorrowedFd;

use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, MsyncFlags, madvise, msync};
use toll_wire::{Failure, HugePages};

use crate::failure::{self, OrFail};
use crate::mapping::{Mapping, READ_WRITE};

/// Alignment at which a CPU can use a transparent huge page of 2 MiB. That is the size on x86-64,
/// and on arm64 with pages of 4 KiB.
pub const HUGE_PAGE_BYTES: usize = 2 << 20;

#[derive(Debug, Clone, Copy)]
pub enum Backing<'a> {
    Anonymous,
    Private(BorrowedFd<'a>),
    Shared(BorrowedFd<'a>),
}

/// A readable and writable mapping, unmapped on drop. All access is volatile
/// and through addresses, because its backing may change at any time.
pub struct Region {
    _mapping: Mapping,
    start: *mut u8,
    length: usize,
}

impl Region {
    /// Maps `length` bytes. Requests huge pages if `huge_pages` is `Madvise` or `Hugetlb`. If it is
    /// `None`, [`restrict_huge_pages`] prevents those that the system gives by default.
    pub fn map(
        backing: Backing<'_>,
        length: usize,
        huge_pages: HugePages,
        populate: bool,
    ) -> Result<Self, Failure> {
        check_combination(backing, huge_pages, populate)?;
        let populate = if populate {
            MapFlags::POPULATE
        } else {
            MapFlags::empty()
        };
        // munmap accepts reserved huge pages only as a whole, and a transparent
        // huge page must be entirely inside its mapping.
        let mapping_length = match huge_pages {
            HugePages::None | HugePages::System => length,
            HugePages::Hugetlb => length.next_multiple_of(HUGE_PAGE_BYTES),
            HugePages::Madvise => length.next_multiple_of(HUGE_PAGE_BYTES) + HUGE_PAGE_BYTES,
        };
        let mapped = match backing {
            Backing::Anonymous => {
                let flags = match huge_pages {
                    HugePages::Hugetlb => populate | MapFlags::HUGETLB,
                    _ => populate,
                };
                Mapping::anonymous(mapping_length, READ_WRITE, flags)
            }
            Backing::Private(file) => {
                Mapping::of_file(file, 0, length, READ_WRITE, populate | MapFlags::PRIVATE)
            }
            Backing::Shared(file) => {
                Mapping::of_file(file, 0, length, READ_WRITE, populate | MapFlags::SHARED)
            }
        };
        let mapping = mapped.map_err(|errno| cannot_map(length, huge_pages, errno))?;
        let first = mapping.start().cast::<u8>();
        let start = match (backing, huge_pages) {
            (Backing::Anonymous, HugePages::Madvise) => {
                first.wrapping_add(first.align_offset(HUGE_PAGE_BYTES))
            }
            _ => first,
        };
        let region = Self {
            _mapping: mapping,
            start,
            length,
        };
        if matches!(backing, Backing::Anonymous) {
            // The kernel merges neighbouring anonymous mappings and would
            // report both as one, unless some flag differs.
            region.advise(Advice::LinuxDontDump, "MADV_DONTDUMP")?;
        }
        if huge_pages == HugePages::Madvise {
            region.advise(Advice::LinuxHugepage, "MADV_HUGEPAGE")?;
        }
        Ok(region)
    }

    pub fn length(&self) -> usize {
        self.length
    }

    /// Returns the address of the first byte, which is in the mapping that
    /// `/proc/self/smaps` shows.
    pub fn address(&self) -> usize {
        self.start.addr()
    }

    #[inline]
    pub fn part(&self, offset: usize, length: usize) -> Part<'_> {
        assert!(
            length <= self.length && offset <= self.length - length,
            "{length} bytes at {offset} are outside of {}",
            self.length
        );
        Part {
            start: self.start.wrapping_add(offset),
            length,
            _region: self,
        }
    }

    pub fn advise(&self, advice: Advice, name: &str) -> Result<(), Failure> {
        // Callers pass only advice that preserves the content.
        // SAFETY: the range is mapped, and the advice discards nothing.
        unsafe { madvise(self.start.cast(), self.length, advice) }.unsupported_by(
            format_args!("advise {name}"),
            "this kernel or mapping does not support it",
        )
    }

    pub fn clear(&self) {
        // SAFETY: the range is mapped, writable and not borrowed.
        unsafe { libc::memset(self.start.cast(), 0, self.length) };
    }

    /// Waits until changes are on the device (`msync(MS_SYNC)`).
    pub fn sync(&self) -> Result<(), Failure> {
        // SAFETY: the range is mapped.
        unsafe { msync(self.start.cast(), self.length, MsyncFlags::SYNC) }
            .failed_to("msync the buffer")
    }
}

#[cfg(test)]
impl Region {
    pub fn byte(&self, offset: usize) -> u8 {
        self.part(offset, 1).read(0)
    }
}

/// A part of a region for repeated access. If the compiler knows the length and
/// the offsets, it drops the checks of single accesses.
#[derive(Clone, Copy)]
pub struct Part<'a> {
    start: *mut u8,
    length: usize,
    _region: &'a Region,
}

impl Part<'_> {
    pub fn length(self) -> usize {
        self.length
    }

    /// Reads one byte; the compiler neither removes nor merges such reads.
    #[inline(always)]
    pub fn read(self, offset: usize) -> u8 {
        // SAFETY: the byte is mapped and readable, as the check says.
        unsafe { self.byte(offset).read_volatile() }
    }

    #[inline(always)]
    pub fn write(self, offset: usize, value: u8) {
        // SAFETY: the byte is mapped and writable, as the check says.
        unsafe { self.byte(offset).write_volatile(value) }
    }

    #[inline(always)]
    pub fn read_word(self, offset: usize) -> u64 {
        // SAFETY: the word is mapped and readable, as the check says.
        unsafe { self.word(offset).read_volatile() }
    }

    #[inline(always)]
    pub fn write_word(self, offset: usize, value: u64) {
        // SAFETY: the word is mapped and writable, as the check says.
        unsafe { self.word(offset).write_volatile(value) }
    }

    /// Reads an aligned word without a check, for loops in which the check
    /// would be measured, too.
    ///
    /// # Safety
    /// The word must be inside the part, at a multiple of 8 bytes from a page's
    /// start.
    #[inline(always)]
    pub unsafe fn read_word_unchecked(self, offset: usize) -> u64 {
        debug_assert!(offset < self.length, "{offset} of {}", self.length);
        // SAFETY: the word is mapped and readable, as the caller promises.
        unsafe {
            self.start
                .wrapping_add(offset)
                .cast::<u64>()
                .read_volatile()
        }
    }

    #[inline(always)]
    fn byte(self, offset: usize) -> *mut u8 {
        assert!(offset < self.length, "{offset} of {}", self.length);
        self.start.wrapping_add(offset)
    }

    #[inline(always)]
    fn word(self, offset: usize) -> *mut u64 {
        let word = self.start.wrapping_add(offset).cast::<u64>();
        let is_inside = offset < self.length && self.length - offset >= size_of::<u64>();
        assert!(
            is_inside && word.is_aligned(),
            "{offset} of {}",
            self.length
        );
        word
    }
}

fn check_combination(
    backing: Backing<'_>,
    huge_pages: HugePages,
    populate: bool,
) -> Result<(), Failure> {
    if huge_pages == HugePages::Hugetlb && !matches!(backing, Backing::Anonymous) {
        return Err(failure::unsupported(
            "cannot map a file with reserved huge pages: they belong to no file system; \
             use `mapping = \"anonymous\"`",
        ));
    }
    if huge_pages == HugePages::Madvise && populate {
        return Err(failure::unsupported(
            "cannot ask for huge pages after MAP_POPULATE: the pages already exist; \
             use `advice = \"populate-write\"`",
        ));
    }
    Ok(())
}

/// Disables transparent huge pages for this process if `huge_pages` is `None`.
/// Unlike `MADV_NOHUGEPAGE` this takes effect before `MAP_POPULATE` makes
/// pages.
pub fn restrict_huge_pages(huge_pages: HugePages) -> Result<(), Failure> {
    if huge_pages != HugePages::None {
        return Ok(());
    }
    let disabled: libc::c_ulong = 1;
    // SAFETY: PR_SET_THP_DISABLE takes a number, and three zeros (prctl(2)).
    match unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, disabled, 0_u64, 0_u64, 0_u64) } {
        0 => Ok(()),
        // A kernel without transparent huge pages has none to disable.
        _ if io::Error::last_os_error().raw_os_error() == Some(libc::EINVAL) => Ok(()),
        _ => Err(io::Error::last_os_error()).instrument_by(
            "disable transparent huge pages",
            "use `huge_pages = \"system\"`",
        ),
    }
}

fn cannot_map(length: usize, huge_pages: HugePages, errno: Errno) -> Failure {
    let advice = match (huge_pages, errno) {
        (HugePages::Hugetlb, _) => "reserve enough huge pages in /proc/sys/vm/nr_hugepages",
        (_, Errno::NOMEM) => "free memory or choose a smaller buffer",
        _ => "choose another mapping",
    };
    failure::unsupported_by(&format!("map {length} bytes"), &errno.into(), advice)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    fn anonymous(length: usize) -> Region {
        Region::map(Backing::Anonymous, length, HugePages::System, false).unwrap()
    }

    #[test]
    fn a_region_holds_what_is_written_to_it() {
        let region = anonymous(10_000);
        let part = region.part(9_000, 1_000);
        part.write(999, 7);
        assert_eq!((region.byte(9_999), region.byte(0)), (7, 0));
        region.clear();
        assert_eq!(region.byte(9_999), 0);
    }

    #[test]
    #[should_panic(expected = "outside")]
    fn a_part_past_the_end_is_a_mistake() {
        let _ = anonymous(4096).part(4_000, 97);
    }

    #[test]
    #[should_panic(expected = "1000 of 1000")]
    fn a_byte_past_the_end_of_a_part_is_a_mistake() {
        anonymous(4096).part(0, 1_000).write(1_000, 1);
    }

    #[test]
    #[should_panic(expected = "996 of 1000")]
    fn a_word_that_ends_past_the_end_is_a_mistake() {
        let _ = anonymous(4096).part(0, 1_000).read_word(996);
    }

    #[test]
    #[should_panic(expected = "4 of 1000")]
    fn a_word_across_two_is_a_mistake() {
        anonymous(4096).part(0, 1_000).write_word(4, 1);
    }

    #[test]
    fn a_region_for_huge_pages_starts_on_one() {
        let region = Region::map(Backing::Anonymous, 3 << 20, HugePages::Madvise, false).unwrap();
        assert!(region.address().is_multiple_of(HUGE_PAGE_BYTES));
        region.part((3 << 20) - 1, 1).write(0, 1);
    }

    #[test]
    fn a_shared_region_changes_its_file_and_a_private_one_does_not() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(4096).unwrap();
        let content = |backing| {
            let region = Region::map(backing, 4096, HugePages::None, false).unwrap();
            region.part(0, 1).write(0, 1);
            region.sync().unwrap();
            let mut byte = [0];
            std::os::unix::fs::FileExt::read_exact_at(&file, &mut byte, 0).unwrap();
            byte[0]
        };
        assert_eq!(content(Backing::Private(file.as_fd())), 0);
        assert_eq!(content(Backing::Shared(file.as_fd())), 1);
    }

    #[test]
    fn what_would_silently_be_something_else_is_refused() {
        let file = tempfile::tempfile().unwrap();
        let refused = [
            Region::map(
                Backing::Private(file.as_fd()),
                4096,
                HugePages::Hugetlb,
                false,
            ),
            Region::map(Backing::Anonymous, 4096, HugePages::Madvise, true),
        ];
        for region in refused {
            let failure = region.err().expect("a refusal");
            assert_eq!(failure.kind, toll_wire::FailureKind::Unsupported);
        }
    }
}
