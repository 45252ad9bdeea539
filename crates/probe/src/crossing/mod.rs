//! The crossing workload: what one way into the kernel and back costs.
//!
//! An iteration makes one kind of crossing many times over. The loop around it
//! is the same for all kinds and is part of each price, as is the wrapper of a
//! system call; [`CrossingOperation::UserCall`] shows how much both are.

mod calls;
mod ping_pong;
mod signal;

use toll_wire::{
    CROSSING_BYTES_MAX, CROSSING_CALLS_MAX, CrossingOperation, CrossingRequest, Failure, Request,
    Sample, TrialData,
};

use self::calls::{PageFault, WriteMemfd};
use self::ping_pong::PingPong;
use self::signal::SelfSignal;
use crate::failure;
use crate::meter::{Meter, put};
use crate::trial::Trial;
use crate::usage::Scope;

/// One kind of crossing, ready to be made.
trait Crossing {
    /// Prepares `calls` crossings, untimed.
    fn prepare(&mut self, _calls: u64) -> Result<(), Failure> {
        Ok(())
    }

    /// Makes `calls` crossings, timed.
    fn cross(&mut self, calls: u64) -> Result<(), Failure>;

    /// Puts away what the crossings made, and checks it, untimed.
    fn settle(&mut self, _calls: u64) -> Result<(), Failure> {
        Ok(())
    }
}

impl<F: FnMut(u64) -> Result<(), Failure>> Crossing for F {
    fn cross(&mut self, calls: u64) -> Result<(), Failure> {
        self(calls)
    }
}

pub fn run(request: &Request, crossing: &CrossingRequest) -> Result<TrialData, Failure> {
    check(crossing)?;
    let mut operation = operation(crossing)?;
    let trial = Trial::new(request, Scope::Thread);
    // The first crossing brings in code and pages that the others find there.
    operation.prepare(1)?;
    operation.cross(1)?;
    operation.settle(1)?;
    trial.repeat(|meter| sample(operation.as_mut(), crossing, meter))
}

fn check(crossing: &CrossingRequest) -> Result<(), Failure> {
    for (what, value, most) in [
        ("bytes", crossing.size_bytes, CROSSING_BYTES_MAX),
        ("calls", crossing.calls, CROSSING_CALLS_MAX),
    ] {
        if !(1..=most).contains(&value) {
            return Err(failure::instrument(format!(
                "cannot cross with {value} {what}: it is 1 to {most}; choose another number"
            )));
        }
    }
    Ok(())
}

fn operation(crossing: &CrossingRequest) -> Result<Box<dyn Crossing>, Failure> {
    let size = crossing.size_bytes as usize;
    Ok(match crossing.operation {
        CrossingOperation::UserCall => Box::new(calls::user_call),
        CrossingOperation::Vdso => Box::new(calls::vdso),
        CrossingOperation::ClockSyscall => Box::new(calls::clock_syscall),
        CrossingOperation::EmptySyscall => Box::new(calls::empty_syscall),
        CrossingOperation::UnknownSyscall => Box::new(calls::unknown_syscall),
        CrossingOperation::IoctlPipe => Box::new(calls::ioctl_pipe()?),
        CrossingOperation::IoctlModule => Box::new(calls::ioctl_module()?),
        CrossingOperation::WriteMemfd => Box::new(WriteMemfd::new(size)?),
        CrossingOperation::CopyFromUser => Box::new(calls::copy_from_user(size)?),
        CrossingOperation::PageFault => Box::new(PageFault::new(crossing.calls)?),
        CrossingOperation::Signal => Box::new(SelfSignal::new()?),
        CrossingOperation::PipePingPong => Box::new(PingPong::new(crossing.cpus)?),
        CrossingOperation::IoUringNop => Box::new(calls::io_uring_nop()?),
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
    if matches!(
        crossing.operation,
        CrossingOperation::WriteMemfd | CrossingOperation::CopyFromUser
    ) {
        put(
            &mut sample,
            "bytes_copied",
            calls * crossing.size_bytes as f64,
        );
    }
    Ok(sample)
}

/// A call that a crossing consists of did not succeed.
fn crossing_failed(call: &str, error: &std::io::Error) -> Failure {
    failure::failed_to(&format!("cross by {call}"), error)
}
