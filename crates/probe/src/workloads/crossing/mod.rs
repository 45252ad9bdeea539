//! The crossing workload: the cost of one way into the kernel and back.
//!
//! An iteration repeats one kind of crossing many times. The loop around it is
//! the same for all kinds and is part of each price, as is the wrapper of a
//! system call. [`CrossingOperation::UserCall`] shows how much both cost.

mod calls;
mod file;
mod futex;
mod kind;
mod memory;
mod ping_pong;
pub mod process;
mod ring;
mod signal;

use toll_wire::{CrossingOperation, CrossingRequest, Failure, Request, Sample, TrialData};

use self::calls::{PageFault, WriteMemfd};
use self::file::{FileBytes, FileNames};
use self::futex::FutexPingPong;
use self::kind::Crossing;
use self::memory::{LargeFault, MemoryPass};
use self::ping_pong::PingPong;
use self::ring::Ring;
use self::signal::SelfSignal;
use crate::meter::{Meter, put};
use crate::trial::Trial;
use crate::usage::Scope;

pub fn run(request: &Request, crossing: &CrossingRequest) -> Result<TrialData, Failure> {
    let mut operation = operation(crossing)?;
    let trial = Trial::new(request, Scope::Thread);
    // The first crossing brings in code and pages that the later ones need.
    operation.prepare(1)?;
    operation.cross(1)?;
    operation.settle(1)?;
    trial.repeat(|meter| sample(operation.as_mut(), crossing, meter))
}

fn operation(crossing: &CrossingRequest) -> Result<Box<dyn Crossing>, Failure> {
    use CrossingOperation as Op;
    let size = crossing.size_bytes as usize;
    Ok(match crossing.operation {
        Op::UserCall => Box::new(calls::user_call),
        Op::Vdso => Box::new(calls::vdso),
        Op::ClockSyscall => Box::new(calls::clock_syscall),
        Op::EmptySyscall => Box::new(calls::empty_syscall),
        Op::UnknownSyscall => Box::new(calls::unknown_syscall),
        Op::IoctlPipe => Box::new(calls::ioctl_pipe()?),
        Op::IoctlModule => Box::new(calls::ioctl_module()?),
        Op::WriteMemfd => Box::new(WriteMemfd::new(size)?),
        Op::CopyFromUser => Box::new(calls::copy_from_user(size)?),
        Op::PageFault => Box::new(PageFault::new(crossing.calls)?),
        Op::HugePageFault | Op::FilePageFault => Box::new(LargeFault::new(crossing)?),
        Op::MmapMunmap => Box::new(memory::mmap_munmap),
        Op::Signal => Box::new(SelfSignal::new()?),
        Op::PipePingPong | Op::UnixPingPong | Op::TcpPingPong | Op::EventfdPingPong => {
            Box::new(PingPong::new(crossing.operation, crossing.cpus)?)
        }
        Op::FutexPingPong => Box::new(FutexPingPong::new(crossing)?),
        Op::IoUringNop | Op::IoUringRead => Box::new(Ring::new(crossing)?),
        Op::ReadFile | Op::WriteFile => Box::new(FileBytes::new(crossing)?),
        Op::OpenClose | Op::Stat | Op::CreateUnlink | Op::Rename => {
            Box::new(FileNames::new(crossing)?)
        }
        Op::ThreadCreate => Box::new(process::create_thread),
        Op::Fork => Box::new(process::fork_process),
        Op::SpawnStatic => Box::new(process::spawn_static()?),
        Op::SpawnDynamic => Box::new(process::spawn_dynamic()?),
        Op::MemoryRead | Op::MemoryFill | Op::MemoryCopy => Box::new(MemoryPass::new(crossing)),
    })
}

fn sample(
    operation: &mut dyn Crossing,
    crossing: &CrossingRequest,
    meter: &mut Meter,
) -> Result<Sample, Failure> {
    operation.prepare(crossing.calls)?;
    let (crossed, measured) = meter.measure(|| operation.cross(crossing.calls))?;
    crossed?;
    operation.settle(crossing.calls)?;
    let (calls, duration) = (crossing.calls as f64, measured.duration_ns as f64);
    let mut sample = measured.into_sample();
    put(&mut sample, "calls", calls);
    put(&mut sample, "duration_per_call_ns", duration / calls);
    if crossing.operation.moves_bytes() {
        let copied = calls * crossing.size_bytes as f64;
        put(&mut sample, "bytes_copied", copied);
        put(&mut sample, "duration_per_byte_ns", duration / copied);
    }
    Ok(sample)
}
