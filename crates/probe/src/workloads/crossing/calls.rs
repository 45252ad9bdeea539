//! Crossings that one thread makes alone.

use std::hint::black_box;
use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::{ioctl_fionread, pread, pwrite};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::getppid;
use rustix::time::{ClockId, clock_gettime};
use toll_wire::{DRIVER_BYTES_MAX, Failure, HugePages};

use super::kind::{Crossing, check};
use crate::buffer::{Buffer, page_bytes};
use crate::driver::Driver;
use crate::failure::{self, OrFail};
use crate::workloads::memory::{Backing, Region, restrict_huge_pages};

/// Largest number of pages that one iteration faults in: 4 GiB.
const FAULTS_MAX: u64 = 1 << 20;

/// The callee of [`user_call`], which no compiler optimizes away.
#[inline(never)]
fn empty(value: u64) -> u64 {
    black_box(value)
}

pub fn user_call(calls: u64) -> Result<(), Failure> {
    for call in 0..calls {
        black_box(empty(call));
    }
    Ok(())
}

/// Reads `CLOCK_MONOTONIC` in user space, through the vDSO.
pub fn vdso(calls: u64) -> Result<(), Failure> {
    for _ in 0..calls {
        black_box(clock_gettime(ClockId::Monotonic));
    }
    Ok(())
}

/// Reads the same clock as [`vdso`] by a system call.
pub fn clock_syscall(calls: u64) -> Result<(), Failure> {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let clock = libc::CLOCK_MONOTONIC;
    for _ in 0..calls {
        // SAFETY: `time` is a writable timespec for the duration of the call.
        let status = unsafe { libc::syscall(libc::SYS_clock_gettime, clock, &raw mut time) };
        if status != 0 {
            return Err(io::Error::last_os_error())
                .failed_to("measure a crossing by clock_gettime");
        }
    }
    Ok(())
}

pub fn empty_syscall(calls: u64) -> Result<(), Failure> {
    for _ in 0..calls {
        black_box(getppid());
    }
    Ok(())
}

pub fn unknown_syscall(calls: u64) -> Result<(), Failure> {
    for _ in 0..calls {
        // SAFETY: no system call has this number, so the kernel does nothing.
        let status = unsafe { libc::syscall(-1) };
        if status != -1 {
            return Err(failure::failed(format!(
                "cannot trust system call number -1: it returned {status}; see the kernel log"
            )));
        }
    }
    Ok(())
}

/// Asks an empty pipe how much is in it.
pub fn ioctl_pipe() -> Result<impl FnMut(u64) -> Result<(), Failure>, Failure> {
    let pipe = pipe_with(PipeFlags::CLOEXEC);
    let ends = pipe.failed_to("measure a crossing by pipe")?;
    Ok(move |calls| {
        let (reader, _writer) = &ends;
        for _ in 0..calls {
            let held = ioctl_fionread(reader).failed_to("measure a crossing by ioctl")?;
            black_box(held);
        }
        Ok(())
    })
}

/// Makes a driver request that does nothing.
pub fn ioctl_module() -> Result<impl FnMut(u64) -> Result<(), Failure>, Failure> {
    let driver = Driver::open()?;
    Ok(move |calls| {
        for _ in 0..calls {
            let crossed = driver.empty();
            crossed.failed_to("measure a crossing by ioctl")?;
        }
        Ok(())
    })
}

/// Makes the driver copy `size` bytes into its buffer.
pub fn copy_from_user(size: usize) -> Result<impl FnMut(u64) -> Result<(), Failure>, Failure> {
    if size as u64 > DRIVER_BYTES_MAX {
        return Err(failure::instrument(format!(
            "cannot copy {size} bytes: the driver takes at most {DRIVER_BYTES_MAX}; choose fewer"
        )));
    }
    let (driver, buffer) = (Driver::open()?, Buffer::aligned(size));
    Ok(move |calls| {
        let bytes = buffer.bytes();
        for _ in 0..calls {
            let copied = driver.copy(bytes);
            copied.failed_to("measure a crossing by ioctl")?;
        }
        Ok(())
    })
}

pub struct WriteMemfd {
    file: OwnedFd,
    buffer: Buffer,
}

impl WriteMemfd {
    pub fn new(size: usize) -> Result<Self, Failure> {
        let file = memfd_create("toll", MemfdFlags::CLOEXEC)
            .unsupported_by("write to a memfd", "use a kernel that has memfd_create")?;
        let buffer = Buffer::aligned(size);
        Ok(Self { file, buffer })
    }
}

impl Crossing for WriteMemfd {
    fn cross(&mut self, calls: u64) -> Result<(), Failure> {
        let bytes = self.buffer.bytes();
        for _ in 0..calls {
            let written = pwrite(&self.file, bytes, 0).failed_to("measure a crossing by pwrite")?;
            if written != bytes.len() {
                return Err(failure::failed(format!(
                    "cannot measure a crossing by pwrite: it wrote {written} of {} bytes; free \
                     memory",
                    bytes.len()
                )));
            }
        }
        Ok(())
    }

    fn settle(&mut self, _calls: u64) -> Result<(), Failure> {
        let mut held = vec![0; self.buffer.bytes().len()];
        let read = pread(&self.file, &mut held, 0);
        let is_right = read == Ok(held.len()) && held == self.buffer.bytes();
        check(is_right, "the memfd holds wrong bytes")
    }
}

pub struct PageFault {
    region: Option<Region>,
}

impl PageFault {
    pub fn new(calls: u64) -> Result<Self, Failure> {
        if calls > FAULTS_MAX {
            return Err(failure::instrument(format!(
                "cannot fault in {calls} pages: an iteration takes at most {FAULTS_MAX}; choose \
                 fewer calls"
            )));
        }
        // A huge page would take one fault for 512 pages.
        restrict_huge_pages(HugePages::None)?;
        Ok(Self { region: None })
    }
}

impl Crossing for PageFault {
    fn prepare(&mut self, calls: u64) -> Result<(), Failure> {
        let length = calls as usize * page_bytes();
        let region = Region::map(Backing::Anonymous, length, HugePages::None, false)?;
        self.region = Some(region);
        Ok(())
    }

    fn cross(&mut self, calls: u64) -> Result<(), Failure> {
        let region = self.region.as_ref().expect("the pages are prepared");
        let page = page_bytes();
        let pages = region.part(0, calls as usize * page);
        for call in 0..calls as usize {
            pages.write(call * page, 1);
        }
        Ok(())
    }

    fn settle(&mut self, _calls: u64) -> Result<(), Failure> {
        self.region = None;
        Ok(())
    }
}
