//! The crossing workload: what one way into the kernel and back costs.
//!
//! An iteration makes one kind of crossing many times over. The loop around it
//! is the same for all kinds and is part of each price, as is the wrapper of a
//! system call; [`CrossingOperation::UserCall`] shows how much both are.

mod calls;
mod ping_pong;
mod signal;

use std::collections::BTreeMap;

use toll_wire::{
    CROSSING_BYTES_MAX, CROSSING_CALLS_MAX, CrossingOperation, CrossingRequest, Failure, Request,
    Sample, TrialData,
};

use self::calls::{
    ClockSyscall, CopyFromUser, EmptySyscall, IoUringNop, IoctlModule, IoctlPipe, PageFault,
    UnknownSyscall, UserCall, Vdso, WriteMemfd,
};
use self::ping_pong::PingPong;
use self::signal::SelfSignal;
use crate::counters::{Counters, Inherit};
use crate::meter::Meter;
use crate::usage::Scope;
use crate::{failure, trial};

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

pub fn run(request: &Request, crossing: &CrossingRequest) -> Result<TrialData, Failure> {
    check(crossing)?;
    let mut operation = operation(crossing)?;
    let counters = Counters::open(&request.counters, Inherit::No);
    let counters_missing = counters.missing().clone();
    let notes = counters.notes().to_vec();
    let mut meter = Meter::new(counters, Scope::Thread);
    // The first crossing brings in code and pages that the others find there.
    once(operation.as_mut(), 1)?;
    let (samples, disturbance) =
        trial::repeat(request.warmup_iterations, request.iterations, || {
            sample(operation.as_mut(), crossing, &mut meter)
        })?;
    Ok(TrialData {
        samples,
        disturbance,
        counters_missing,
        notes,
    })
}

fn check(crossing: &CrossingRequest) -> Result<(), Failure> {
    let cannot = |what: &str, value: u64, most: u64| {
        failure::instrument(format!(
            "cannot cross with {value} {what}: it is 1 to {most}; choose another number"
        ))
    };
    if !(1..=CROSSING_BYTES_MAX).contains(&crossing.size_bytes) {
        return Err(cannot("bytes", crossing.size_bytes, CROSSING_BYTES_MAX));
    }
    if !(1..=CROSSING_CALLS_MAX).contains(&crossing.calls) {
        return Err(cannot("calls", crossing.calls, CROSSING_CALLS_MAX));
    }
    Ok(())
}

fn operation(crossing: &CrossingRequest) -> Result<Box<dyn Crossing>, Failure> {
    let size = crossing.size_bytes as usize;
    Ok(match crossing.operation {
        CrossingOperation::UserCall => Box::new(UserCall),
        CrossingOperation::Vdso => Box::new(Vdso),
        CrossingOperation::ClockSyscall => Box::new(ClockSyscall),
        CrossingOperation::EmptySyscall => Box::new(EmptySyscall),
        CrossingOperation::UnknownSyscall => Box::new(UnknownSyscall),
        CrossingOperation::IoctlPipe => Box::new(IoctlPipe::new()?),
        CrossingOperation::IoctlModule => Box::new(IoctlModule::new()?),
        CrossingOperation::WriteMemfd => Box::new(WriteMemfd::new(size)?),
        CrossingOperation::CopyFromUser => Box::new(CopyFromUser::new(size)?),
        CrossingOperation::PageFault => Box::new(PageFault::new(crossing.calls)?),
        CrossingOperation::Signal => Box::new(SelfSignal::new()?),
        CrossingOperation::PipePingPong => Box::new(PingPong::new(crossing.cpus)?),
        CrossingOperation::IoUringNop => Box::new(IoUringNop::new()?),
    })
}

fn copies(operation: CrossingOperation) -> bool {
    matches!(
        operation,
        CrossingOperation::WriteMemfd | CrossingOperation::CopyFromUser
    )
}

fn once(operation: &mut dyn Crossing, calls: u64) -> Result<(), Failure> {
    operation.prepare(calls)?;
    operation.cross(calls)?;
    operation.settle(calls)
}

fn sample(
    operation: &mut dyn Crossing,
    crossing: &CrossingRequest,
    meter: &mut Meter,
) -> Result<Sample, Failure> {
    operation.prepare(crossing.calls)?;
    let started = meter.start()?;
    let crossed = operation.cross(crossing.calls);
    let measured = meter.stop(&started)?;
    crossed?;
    operation.settle(crossing.calls)?;
    let calls = crossing.calls as f64;
    let mut metrics = BTreeMap::new();
    measured.add_to(&mut metrics, "");
    metrics.insert("calls".to_owned(), calls);
    metrics.insert(
        "duration_per_call_ns".to_owned(),
        measured.duration_ns as f64 / calls,
    );
    if copies(crossing.operation) {
        let bytes = calls * crossing.size_bytes as f64;
        metrics.insert("bytes_copied".to_owned(), bytes);
    }
    Ok(Sample {
        metrics,
        counters: measured.into_counters(),
        ..Sample::default()
    })
}

/// A call that a crossing consists of did not succeed.
fn crossing_failed(call: &str, error: &std::io::Error) -> Failure {
    failure::failed(format!(
        "cannot cross by {call}: {}; {}",
        failure::reason(error),
        failure::advice(error)
    ))
}
