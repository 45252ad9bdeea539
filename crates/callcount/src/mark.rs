//! Marks a process as traced, from outside or from within.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use crate::layout::{PROGRAM_NOT_TRACED, Thread};

const MAP_UPDATE_ELEM: libc::c_long = 2;

/// Marks processes as traced. Allocates no memory and takes no lock, so that a new process
/// may use it before it executes a program.
#[derive(Debug, Clone, Copy)]
pub struct Marker {
    pub(crate) threads: RawFd,
}

#[repr(C)]
struct MapUpdate {
    map_fd: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

impl Marker {
    /// Starts counting the calls of this process and of its children.
    pub fn mark_self(&self) -> io::Result<()> {
        self.mark_by_id(std::process::id(), 0, 0)
    }

    /// Starts counting the calls of a process and of its children.
    pub fn mark_process(&self, id: u32) -> io::Result<()> {
        self.mark_by_id(id, 0, 0)
    }

    /// Starts counting the calls of the programs that a process starts, but not its own.
    pub fn mark_programs_of(&self, id: u32) -> io::Result<()> {
        self.mark_by_id(id, 0, PROGRAM_NOT_TRACED)
    }

    /// Excludes this process's own calls from the trace of the control group that it is in.
    pub(crate) fn leave_out_self(&self) -> io::Result<()> {
        self.mark_programs_of(std::process::id())
    }

    /// Counts the calls of the calling thread alone; needs Linux 6.9 or newer.
    pub(crate) fn mark_thread(&self, program: u32) -> io::Result<()> {
        let thread = rustix::thread::gettid().as_raw_nonzero().get();
        self.mark_by_id(thread.cast_unsigned(), libc::O_EXCL, program)
    }

    fn mark_by_id(&self, id: u32, flags: i32, program: u32) -> io::Result<()> {
        let process = pidfd_open(id, flags)?;
        // SAFETY: the kernel has just made this descriptor for us alone.
        let process = unsafe { OwnedFd::from_raw_fd(process) };
        self.mark(std::os::fd::AsFd::as_fd(&process), program)
    }

    /// Starts counting the calls of all threads of a process.
    pub(crate) fn mark(&self, process: BorrowedFd<'_>, program: u32) -> io::Result<()> {
        let key = process.as_raw_fd();
        let value = Thread {
            number: 0,
            program,
            others: [0; _],
        };
        let mut attributes = MapUpdate {
            map_fd: self.threads.cast_unsigned(),
            padding: 0,
            key: (&raw const key).expose_provenance() as u64,
            value: (&raw const value).expose_provenance() as u64,
            flags: 0,
        };
        // SAFETY: the kernel reads `size_of::<MapUpdate>()` bytes. The key and the value
        // that these point to are alive and have the sizes of the map's keys and values.
        let result = unsafe {
            libc::syscall(
                libc::SYS_bpf,
                MAP_UPDATE_ELEM,
                &raw mut attributes,
                size_of::<MapUpdate>(),
            )
        };
        match result {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Opens a pidfd. rustix cannot open one for a single thread.
fn pidfd_open(id: u32, flags: i32) -> io::Result<RawFd> {
    // SAFETY: this call takes only integers.
    let result = unsafe { libc::syscall(libc::SYS_pidfd_open, id, flags) };
    match RawFd::try_from(result) {
        Ok(descriptor) if descriptor >= 0 => Ok(descriptor),
        _ => Err(io::Error::last_os_error()),
    }
}
