//! One trial: what all workloads share.

use toll_wire::{Disturbance, Failure, ITERATIONS_MAX, Request, TrialData, Workload};

use crate::disturbance::Observation;
use crate::interruption::Watch;
use crate::{
    chase, command, copy, crossing, failure, files, memory, primes, reclaim, transfer, write,
};

pub fn run(request: &Request) -> Result<TrialData, Failure> {
    if request.iterations == 0 || request.iterations > ITERATIONS_MAX {
        return Err(failure::instrument(format!(
            "cannot run {} iterations: a trial has 1 to {ITERATIONS_MAX}; choose another number",
            request.iterations
        )));
    }
    let watch = Watch::begin();
    let data = work(request);
    // Whatever it came to: a call that the pause interrupted may have failed.
    watch.end()?;
    data
}

fn work(request: &Request) -> Result<TrialData, Failure> {
    match &request.workload {
        Workload::Copy(copy) => copy::run(request, copy),
        Workload::Write(write) => write::run(request, write),
        Workload::Command(command) => command::run(request, command),
        Workload::Memory(memory) => memory::run(request, memory),
        Workload::Chase(chase) => chase::run(request, chase),
        Workload::Reclaim(reclaim) => reclaim::run(request, reclaim),
        Workload::Primes(counting) => primes::run(request, counting),
        Workload::Crossing(crossing) => crossing::run(request, crossing),
        Workload::Transfer(transfer) => transfer::run(request, transfer),
        Workload::Files(files) => files::run(request, files),
    }
}

/// Runs `iterate` untimed `warmups` times and then once a sample, with the
/// machine's disturbance observed over the latter.
pub fn repeat<T>(
    warmups: u32,
    iterations: u32,
    mut iterate: impl FnMut() -> Result<T, Failure>,
) -> Result<(Vec<T>, Disturbance), Failure> {
    let mut results = Vec::with_capacity(iterations as usize);
    for _ in 0..warmups {
        iterate()?;
    }
    let observation = Observation::begin();
    for _ in 0..iterations {
        results.push(iterate()?);
    }
    Ok((results, observation.end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warm_ups_run_first_and_yield_no_sample() {
        let mut calls = 0;
        let (results, _) = repeat(2, 3, || {
            calls += 1;
            Ok(calls)
        })
        .unwrap();
        assert_eq!(results, [3, 4, 5]);
    }

    #[test]
    fn the_first_failure_ends_the_trial() {
        let mut calls = 0;
        let result = repeat::<()>(0, 3, || {
            calls += 1;
            Err(failure::failed("cannot".into()))
        });
        assert!(result.is_err());
        assert_eq!(calls, 1);
    }
}
