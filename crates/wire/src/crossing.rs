//! Crossings between a program and the kernel, one kind at a time.

use serde::{Deserialize, Serialize};

use crate::levels::{count, sizes};

/// Parameters of [`crate::Workload::Crossing`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CrossingRequest {
    /// What is done again and again.
    pub operation: CrossingOperation,
    /// Bytes that one call copies, for those that copy: 1 to
    /// [`CROSSING_BYTES_MAX`].
    #[serde(rename = "size", deserialize_with = "call_size")]
    pub size_bytes: u64,
    /// Calls in one iteration: 1 to [`CROSSING_CALLS_MAX`].
    #[serde(deserialize_with = "count::<1, CROSSING_CALLS_MAX, _, _>")]
    pub calls: u64,
    /// CPUs of the two processes of [`CrossingOperation::PipePingPong`].
    pub cpus: CrossingCpus,
}

sizes! {
    call_size: 1..=CROSSING_BYTES_MAX, "1 byte to 1 MiB, as much as the driver takes";
}

impl Default for CrossingRequest {
    fn default() -> Self {
        Self {
            operation: CrossingOperation::EmptySyscall,
            size_bytes: 4,
            calls: 1000,
            cpus: CrossingCpus::One,
        }
    }
}

/// Most bytes that one call copies: what the driver `toll_primes` takes.
pub const CROSSING_BYTES_MAX: u64 = 1 << 20;

/// Most calls of one iteration.
pub const CROSSING_CALLS_MAX: u64 = 1 << 32;

/// One kind of crossing, or what one is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CrossingOperation {
    /// A call of an empty function that is not inlined: no crossing.
    UserCall,
    /// `clock_gettime(CLOCK_MONOTONIC)` by the vDSO: no crossing where the
    /// clock source can be read from user space (vdso(7)).
    Vdso,
    /// The same as a system call.
    ClockSyscall,
    /// `getppid` as a system call, which does next to nothing.
    EmptySyscall,
    /// A system call of number -1, which ends with `ENOSYS` at the table.
    UnknownSyscall,
    /// `ioctl(FIONREAD)` on an empty pipe.
    IoctlPipe,
    /// `TOLL_PRIMES_EMPTY` on the driver `toll_primes`; guests only.
    IoctlModule,
    /// `pwrite` of the bytes to offset 0 of a memfd whose pages are there.
    WriteMemfd,
    /// `TOLL_PRIMES_COPY` of the bytes on the driver `toll_primes`, which is
    /// `copy_from_user` and little else; guests only.
    CopyFromUser,
    /// The first write to a page of anonymous memory.
    PageFault,
    /// A signal that the process sends to itself and handles.
    Signal,
    /// A byte to another process and one back, each through a pipe.
    PipePingPong,
    /// A no-operation through an io_uring, submitted and waited for alone.
    IoUringNop,
}

/// Where the two processes of a ping-pong run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CrossingCpus {
    /// Both on one CPU, so that each byte is a switch between processes.
    One,
    /// Each on a CPU of its own, so that each byte wakes another CPU.
    Two,
}
