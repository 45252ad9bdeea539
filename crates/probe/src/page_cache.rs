//! Brings a file into a known state of the page cache, and verifies it.

use std::fs::File;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use rustix::fs::{Advice, fadvise, fstatfs};
use rustix::mm::{MapFlags, ProtFlags};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use toll_wire::{CacheState, Failure};

use crate::buffer::page_bytes;
use crate::failure::{self, OrFail};
use crate::mapping::Mapping;

/// Type of a file system in `statfs` (include/uapi/linux/magic.h).
const TMPFS_MAGIC: i64 = 0x0102_1994;
const RAMFS_MAGIC: i64 = 0x8584_58f6;
const V9FS_MAGIC: i64 = 0x0102_1997;

/// Maximum number of attempts to reach a state. Some pages need more than one
/// attempt, and time in between: pages in a CPU's private batch, pages just
/// written back, and pages under an earlier process's read-ahead.
const ATTEMPTS_MAX: u32 = 8;
/// Pause after the first failed attempt; each later one is twice as long.
const PAUSE: Duration = Duration::from_millis(2);

/// Refuses a cold file on a file system whose pages cannot leave memory.
pub fn check_state(file: &File, state: CacheState) -> Result<(), Failure> {
    let name = match fstatfs(file).map(|status| status.f_type) {
        Ok(TMPFS_MAGIC) => "tmpfs",
        Ok(RAMFS_MAGIC) => "ramfs",
        _ => return Ok(()),
    };
    match state {
        CacheState::Warm => Ok(()),
        CacheState::Cold => Err(failure::unsupported(format!(
            "cannot drop the source from the page cache: {name} lives in the page cache; \
             choose a file on a disk file system"
        ))),
    }
}

/// Number of resident pages of a file, and the call that counted them.
#[derive(Debug, Clone, Copy)]
pub struct Residency {
    pub pages: u64,
    counter: PageCounter,
}

/// The calls that count resident pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PageCounter {
    Cachestat,
    /// Reports every page as resident if the caller neither owns the file nor may write to it
    /// (can_do_mincore in mm/mincore.c, since Linux 5.2).
    Mincore,
    /// No call is needed: the file system keeps no pages of what is read.
    Nothing,
}

impl Residency {
    /// Returns the evidence for the number of pages in a state, for a note.
    pub fn proof(self, state: CacheState) -> &'static str {
        match (self.counter, state) {
            (PageCounter::Cachestat, _) => "by cachestat",
            (PageCounter::Mincore, CacheState::Warm) => {
                "by mincore, and because it was read before each iteration"
            }
            (PageCounter::Mincore, CacheState::Cold) => "by mincore",
            (PageCounter::Nothing, _) => "because 9p keeps no pages here",
        }
    }
}

/// Brings the first `size_bytes` of a file into a state and checks it. Returns how many pages are
/// then resident.
pub fn establish(file: &File, size_bytes: u64, state: CacheState) -> Result<Residency, Failure> {
    // Guests mount 9p so that it keeps no pages.
    if fstatfs(file).is_ok_and(|status| status.f_type == V9FS_MAGIC) {
        return read_through(file, size_bytes).map(|()| Residency {
            pages: 0,
            counter: PageCounter::Nothing,
        });
    }
    match state {
        CacheState::Cold => drop_pages(file, size_bytes),
        CacheState::Warm => load_pages(file, size_bytes, || residency(file, size_bytes)),
    }
}

fn drop_pages(file: &File, size_bytes: u64) -> Result<Residency, Failure> {
    let mut pages = 0;
    for attempt in 0..ATTEMPTS_MAX {
        // Only clean pages can be dropped (posix_fadvise(2)).
        file.sync_all()
            .map_err(|error| cannot_drop(failure::reason(&error)))?;
        fadvise(file, 0, None, Advice::DontNeed)
            .map_err(|error| cannot_drop(failure::reason(&error.into())))?;
        let resident = residency(file, size_bytes)?;
        pages = resident.pages;
        if pages == 0 {
            return Ok(resident);
        }
        flush_network();
        std::thread::sleep(PAUSE * 2_u32.pow(attempt));
    }
    Err(cannot_drop(format!("{pages} pages stay resident")))
}

fn cannot_drop(why: String) -> Failure {
    failure::instrument(format!(
        "cannot drop the source from the page cache: {why}; \
         own the file and let no other process map, lock or read it"
    ))
}

fn load_pages(
    file: &File,
    size_bytes: u64,
    count: impl Fn() -> Result<Residency, Failure>,
) -> Result<Residency, Failure> {
    let pages = size_bytes.div_ceil(page_bytes() as u64);
    // A file of some thousand pages may lose a handful under memory pressure
    // without a noticeable effect; a small one may lose none.
    let needed = pages - pages / 1_000;
    let mut resident = count()?;
    for attempt in 0..ATTEMPTS_MAX {
        // Before the first read only cachestat is conclusive.
        let is_proved = attempt > 0 || resident.counter == PageCounter::Cachestat;
        if is_proved && resident.pages >= needed {
            return Ok(resident);
        }
        read_through(file, size_bytes)?;
        resident = count()?;
    }
    if resident.pages >= needed {
        return Ok(resident);
    }
    Err(failure::instrument(format!(
        "cannot keep the source in the page cache: {} of {pages} pages are resident; \
         free memory or choose a smaller size",
        resident.pages
    )))
}

fn read_through(file: &File, size_bytes: u64) -> Result<(), Failure> {
    let mut block = vec![0; 1 << 20];
    let mut offset = 0;
    while offset < size_bytes {
        match file.read_at(&mut block, offset) {
            Ok(0) => break,
            Ok(length) => offset += length as u64,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => {
                return Err(failure::failed_to("read the source", &error));
            }
        }
    }
    Ok(())
}

/// Counts the pages of the first `size_bytes` of a file that are in the page
/// cache.
fn residency(file: &File, size_bytes: u64) -> Result<Residency, Failure> {
    if let Some(pages) = cachestat(file, size_bytes) {
        let counter = PageCounter::Cachestat;
        return Ok(Residency { pages, counter });
    }
    let pages = mincore_pages(file, size_bytes)
        .instrument_to("tell which pages of the source are resident")?;
    let counter = PageCounter::Mincore;
    Ok(Residency { pages, counter })
}

/// Counts resident pages by cachestat(2), available since Linux 6.5; `None`
/// where it is missing or refused.
fn cachestat(file: &File, size_bytes: u64) -> Option<u64> {
    if size_bytes == 0 {
        // A length of 0 means up to the end of the file (mm/filemap.c).
        return Some(0);
    }
    const SYS_CACHESTAT: libc::c_long = 451;
    #[repr(C)]
    struct Range {
        offset: u64,
        length: u64,
    }
    #[repr(C)]
    #[derive(Default)]
    struct Statistics {
        cache: u64,
        dirty: u64,
        writeback: u64,
        evicted: u64,
        recently_evicted: u64,
    }
    let range = Range {
        offset: 0,
        length: size_bytes,
    };
    let mut statistics = Statistics::default();
    // SAFETY: both structures have the kernel's layout (uapi/linux/mman.h) and
    // outlive the call.
    let status = unsafe {
        libc::syscall(
            SYS_CACHESTAT,
            file.as_raw_fd(),
            &raw const range,
            &raw mut statistics,
            0u32,
        )
    };
    (status == 0).then_some(statistics.cache)
}

/// Counts resident pages by mincore(2), in windows so that a huge file needs
/// neither a huge mapping nor a huge vector.
fn mincore_pages(file: &File, size_bytes: u64) -> std::io::Result<u64> {
    const WINDOW_BYTES: u64 = 1 << 30;
    let mut resident = 0;
    let mut offset = 0;
    while offset < size_bytes {
        let length = WINDOW_BYTES.min(size_bytes - offset) as usize;
        resident += mincore_window(file, offset, length)?;
        offset += length as u64;
    }
    Ok(resident)
}

fn mincore_window(file: &File, offset: u64, length: usize) -> std::io::Result<u64> {
    let mut states = vec![0u8; length.div_ceil(page_bytes())];
    let window = Mapping::of_file(file, offset, length, ProtFlags::READ, MapFlags::SHARED)?;
    // SAFETY: `states` has a byte for every page of the mapped range.
    match unsafe { libc::mincore(window.start(), length, states.as_mut_ptr()) } {
        0 => Ok(states.iter().filter(|&&state| state & 1 == 1).count() as u64),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// Makes every CPU free the packets that are queued for it to free.
///
/// A packet that is freed on another CPU waits in a list of the CPU that made it, until that CPU
/// next receives (skb_attempt_defer_free in net/core/skbuff.c, since Linux 5.19). After `sendfile`
/// or `splice` into a socket such a packet holds pages of the file, which then cannot leave the
/// page cache. A datagram over loopback is received by the CPU that sends it.
///
/// Ignores errors: the caller checks the result itself.
fn flush_network() {
    let Ok(allowed) = sched_getaffinity(None) else {
        return;
    };
    let Ok(socket) = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)) else {
        return;
    };
    let own = socket.local_addr();
    let timeout = socket.set_read_timeout(Some(Duration::from_millis(50)));
    let (Ok(own), Ok(())) = (own, timeout) else {
        return;
    };
    for cpu in (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)) {
        let mut one = CpuSet::new();
        one.set(cpu);
        if sched_setaffinity(None, &one).is_ok() && socket.send_to(&[0], own).is_ok() {
            let _ = socket.recv(&mut [0]);
        }
    }
    // A moment ago this process was allowed on these CPUs. If that has changed, the machine is not
    // the one that the trial was planned for.
    let _ = sched_setaffinity(None, &allowed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::print_stderr, reason = "a skip prints its reason")]
    fn cachestat_and_mincore_agree() {
        let mut file = tempfile::tempfile().unwrap();
        std::io::Write::write_all(&mut file, &[1; 50_001]).unwrap();
        let expected = 50_001u64.div_ceil(page_bytes() as u64);
        establish(&file, 50_001, CacheState::Warm).unwrap();
        assert_eq!(mincore_pages(&file, 50_001).unwrap(), expected);
        match cachestat(&file, 50_001) {
            Some(pages) => assert_eq!(pages, expected),
            None => eprintln!("skipped: this kernel has no cachestat"),
        }
    }

    #[test]
    #[expect(clippy::print_stderr, reason = "a skip prints its reason")]
    fn a_file_of_which_mincore_claims_all_is_read_all_the_same() {
        const SIZE: u64 = 1 << 20;
        let mut file = tempfile::tempfile().unwrap();
        std::io::Write::write_all(&mut file, &[1; SIZE as usize]).unwrap();
        if let Err(failure) = check_state(&file, CacheState::Cold) {
            return eprintln!("skipped: {}", failure.message);
        }
        establish(&file, SIZE, CacheState::Cold).unwrap();
        let pages = SIZE / page_bytes() as u64;
        let claim = |counter| move || Ok(Residency { pages, counter });
        load_pages(&file, SIZE, claim(PageCounter::Cachestat)).unwrap();
        assert_eq!(residency(&file, SIZE).unwrap().pages, 0);
        load_pages(&file, SIZE, claim(PageCounter::Mincore)).unwrap();
        assert_eq!(residency(&file, SIZE).unwrap().pages, pages);
    }

    #[test]
    fn an_empty_range_has_no_pages() {
        let file = tempfile::tempfile().unwrap();
        assert_eq!(residency(&file, 0).unwrap().pages, 0);
        establish(&file, 0, CacheState::Warm).unwrap();
    }
}
