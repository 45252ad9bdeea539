//! Crossings that one thread makes by itself.

use std::hint::black_box;
use std::io;
use std::os::fd::OwnedFd;

use io_uring::{IoUring, opcode};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::{ioctl_fionread, pwrite};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::getppid;
use rustix::time::{ClockId, clock_gettime};
use toll_wire::{Failure, HugePages};

use super::{Crossing, crossing_failed};
use crate::buffer::{Buffer, page_bytes};
use crate::driver::Driver;
use crate::failure;
use crate::memory::{Backing, Region, restrict_huge_pages};

/// Most pages that one iteration faults in, 4 GiB of them.
const FAULTS_MAX: u64 = 1 << 20;

pub struct UserCall;

#[inline(never)]
fn empty(value: u64) -> u64 {
    black_box(value)
}

impl Crossing for UserCall {
    fn cross(&mut self, calls: u64) -> Result<(), Failure> {
        for call in 0..calls {
            black_box(empty(call));
        }
        Ok(())
    }
}

pub struct Vdso;

impl Crossing for Vdso {
    fn cross(&mut self, calls: u64) -> Result<(), Failure> {
        for _ in 0..calls {
            black_box(clock_gettime(ClockId::Monotonic));
        }
        Ok(())
    }
}

pub struct ClockSyscall;

impl Crossing for ClockSyscall {
    fn cross(&mut self, calls: u64) -> Result<(), Failure> {
        let mut time = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        for _ in 0..calls {
            // SAFETY: `time` is a writable timespec for the duration of the call.
            let status = unsafe {
                libc::syscall(
                    libc::SYS_clock_gettime,
                    libc::CLOCK_MONOTONIC,
                    &raw mut time,
                )
            };
            if status != 0 {
                let error = io::Error::last_os_error();
                return Err(crossing_failed("clock_gettime", &error));
            }
        }
        Ok(())
    }
}

pub struct EmptySyscall;

impl Crossing for EmptySyscall {
    fn cross(&mut self, calls: u64) -> Result<(), Failure> {
        for _ in 0..calls {
            black_box(getppid());
        }
        Ok(())
    }
}

pub struct UnknownSyscall;

impl Crossing for UnknownSyscall {
    fn cross(&mut self, calls: u64) -> Result<(), Failure> {
        for _ in 0..calls {
            // SAFETY: no system call has this number, so nothing is done.
            let status = unsafe { libc::syscall(-1) };
            if status != -1 {
                return Err(failure::failed(format!(
                    "cannot trust a system call of number -1: it gave {status}; see the kernel log"
                )));
            }
        }
        Ok(())
    }
}

/// A question to a pipe: how much is in it.
pub struct IoctlPipe {
    reader: OwnedFd,
    _writer: OwnedFd,
}

impl IoctlPipe {
    pub fn new() -> Result<Self, Failure> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)
            .map_err(|errno| crossing_failed("pipe", &errno.into()))?;
        Ok(Self {
            reader,
            _writer: writer,
        })
    }
}

impl Crossing for IoctlPipe {
    fn cross(&mut self, calls: u64) -> Result<(), Failure> {
        for _ in 0..calls {
            let held = ioctl_fionread(&self.reader)
                .map_err(|errno| crossing_failed("ioctl", &errno.into()))?;
            black_box(held);
        }
        Ok(())
    }
}

pub struct IoctlModule {
    driver: Driver,
}

impl IoctlModule {
    pub fn new() -> Result<Self, Failure> {
        Ok(Self {
            driver: Driver::open()?,
        })
    }
}

impl Crossing for IoctlModule {
    fn cross(&mut self, calls: u64) -> Result<(), Failure> {
        for _ in 0..calls {
            self.driver
                .empty()
                .map_err(|error| crossing_failed("ioctl", &error))?;
        }
        Ok(())
    }
}

/// A write to pages of memory.
pub struct WriteMemfd {
    file: OwnedFd,
    buffer: Buffer,
}

impl WriteMemfd {
    /// A file in memory and `size` bytes for it.
    pub fn new(size: usize) -> Result<Self, Failure> {
        let file = memfd_create("toll", MemfdFlags::CLOEXEC).map_err(|errno| {
            failure::unsupported(format!(
                "cannot write to a memfd: {}; use a kernel that has them",
                failure::reason(&errno.into())
            ))
        })?;
        Ok(Self {
            file,
            buffer: Buffer::aligned(size),
        })
    }
}

impl Crossing for WriteMemfd {
    fn cross(&mut self, calls: u64) -> Result<(), Failure> {
        let bytes = self.buffer.bytes();
        for _ in 0..calls {
            let written = pwrite(&self.file, bytes, 0)
                .map_err(|errno| crossing_failed("pwrite", &errno.into()))?;
            if written != bytes.len() {
                return Err(failure::failed(format!(
                    "cannot cross by pwrite: it took {written} of {} bytes; free memory",
                    bytes.len()
                )));
            }
        }
        Ok(())
    }

    fn settle(&mut self, _calls: u64) -> Result<(), Failure> {
        let mut held = vec![0; self.buffer.bytes().len()];
        let read = rustix::io::pread(&self.file, &mut held, 0);
        if read != Ok(held.len()) || held != self.buffer.bytes() {
            return Err(failure::failed(
                "cannot trust the crossings: the memfd holds other bytes; see the kernel log"
                    .to_owned(),
            ));
        }
        Ok(())
    }
}

pub struct CopyFromUser {
    driver: Driver,
    buffer: Buffer,
}

impl CopyFromUser {
    /// Inserts the driver, with `size` bytes for it.
    pub fn new(size: usize) -> Result<Self, Failure> {
        Ok(Self {
            driver: Driver::open()?,
            buffer: Buffer::aligned(size),
        })
    }
}

impl Crossing for CopyFromUser {
    fn cross(&mut self, calls: u64) -> Result<(), Failure> {
        let bytes = self.buffer.bytes();
        for _ in 0..calls {
            self.driver
                .copy(bytes)
                .map_err(|error| crossing_failed("ioctl", &error))?;
        }
        Ok(())
    }
}

pub struct PageFault {
    region: Option<Region>,
}

impl PageFault {
    /// Checks that there may be `calls` pages.
    pub fn new(calls: u64) -> Result<Self, Failure> {
        if calls > FAULTS_MAX {
            return Err(failure::instrument(format!(
                "cannot fault in {calls} pages: an iteration holds at most {FAULTS_MAX}; choose \
                 fewer calls"
            )));
        }
        // A huge page would be one fault for 512.
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

pub struct IoUringNop {
    ring: IoUring,
}

impl IoUringNop {
    pub fn new() -> Result<Self, Failure> {
        let ring = IoUring::new(1).map_err(|error| {
            failure::unsupported(format!(
                "cannot set up io_uring: {}; use a kernel that has it and set \
                 kernel.io_uring_disabled to 0",
                failure::reason(&error)
            ))
        })?;
        Ok(Self { ring })
    }
}

impl Crossing for IoUringNop {
    fn cross(&mut self, calls: u64) -> Result<(), Failure> {
        for _ in 0..calls {
            let entry = opcode::Nop::new().build();
            // SAFETY: a no-operation refers to no memory.
            let pushed = unsafe { self.ring.submission().push(&entry) };
            pushed.expect("the ring is empty");
            self.ring
                .submit_and_wait(1)
                .map_err(|error| crossing_failed("io_uring_enter", &error))?;
            let result = self.ring.completion().next().map(|entry| entry.result());
            if result != Some(0) {
                return Err(failure::failed(format!(
                    "cannot cross by io_uring: a no-operation gave {result:?}; see the kernel log"
                )));
            }
        }
        Ok(())
    }
}
