//! One trial: the parts that all workloads share.
//!
//! Each workload is a module with one function `run`, which is listed in
//! [`run`]. It sets itself up and calls [`Trial::repeat`]. There it prepares
//! each iteration, does its work within `Meter::measure`, the timed region, and
//! checks the result.

use toll_wire::{Failure, Recording, Request, Sample, TrialData, Workload};

use crate::counters::{Counters, Inherit};
use crate::disturbance::Observation;
use crate::interruption::Watch;
use crate::meter::{Meter, Recorder};
use crate::profile::Profiler;
use crate::usage::Scope;
use crate::{
    boot, chase, command, copy, crossing, files, memory, primes, reclaim, system_calls, transfer,
    write,
};

pub fn run(request: &Request) -> Result<TrialData, Failure> {
    let watch = Watch::begin();
    let data = match &request.workload {
        Workload::Copy(copy) => copy::run(request, copy),
        Workload::Write(write) => write::run(request, write),
        Workload::Command(command) => command::run(request, command),
        Workload::Memory(memory) => memory::run(request, memory),
        Workload::Chase(chase) => chase::run(request, chase),
        Workload::Reclaim(reclaim) => reclaim::run(request, reclaim),
        Workload::Primes(primes) => primes::run(request, primes),
        Workload::Crossing(crossing) => crossing::run(request, crossing),
        Workload::Transfer(transfer) => transfer::run(request, transfer),
        Workload::Files(files) => files::run(request, files),
        Workload::SystemCalls(program) => system_calls::run(request, program),
        Workload::Boot(boot) => boot::run(request, boot),
    };
    // Checked whatever the outcome: a call that the pause interrupted may have
    // failed.
    watch.end()?;
    if let Ok(data) = &data {
        debug_assert_eq!(
            unlisted(data, request),
            None,
            "experiments cannot name this metric"
        );
    }
    data
}

/// Returns a metric of the samples that experiments cannot name, if there is
/// one.
fn unlisted(data: &TrialData, request: &Request) -> Option<String> {
    let known = request.workload.kind().metrics();
    let mut names = data.samples.iter().flat_map(|sample| sample.metrics.keys());
    names.find(|name| !known.contains(name)).cloned()
}

/// A trial with the meter of its timed regions.
pub struct Trial {
    pub warmups: u32,
    iterations: u32,
    meter: Meter,
    recording: Recording,
}

impl Trial {
    /// Makes a trial of this process's own work, charged to the tasks of
    /// `scope`.
    pub fn new(request: &Request, scope: Scope) -> Self {
        Self::counting(request, scope, Inherit::No)
    }

    pub fn counting(request: &Request, scope: Scope, inherit: Inherit) -> Self {
        Self {
            warmups: request.warmup_iterations,
            iterations: request.iterations,
            meter: Meter::new(Counters::open(&request.counters, inherit), scope),
            recording: request.recording,
        }
    }

    pub fn repeat(
        mut self,
        mut iterate: impl FnMut(&mut Meter) -> Result<Sample, Failure>,
    ) -> Result<TrialData, Failure> {
        for _ in 0..self.warmups {
            iterate(&mut self.meter)?;
        }
        self.meter.recorder = Recorder::new(self.recording, Profiler::open)?;
        let data = repeat(0, self.iterations, || iterate(&mut self.meter))?;
        let profiler = std::mem::take(&mut self.meter.recorder).profiler();
        let counters = self.meter.counters();
        Ok(TrialData {
            profile: profiler.map(Profiler::finish),
            counters_missing: counters.missing().clone(),
            notes: counters.notes().to_vec(),
            ..data
        })
    }
}

/// Runs `iterate` untimed `warmups` times and then once per sample. The
/// machine's disturbance is observed over the latter.
pub fn repeat(
    warmups: u32,
    iterations: u32,
    mut iterate: impl FnMut() -> Result<Sample, Failure>,
) -> Result<TrialData, Failure> {
    let mut samples = Vec::with_capacity(iterations as usize);
    for _ in 0..warmups {
        iterate()?;
    }
    let observation = Observation::begin();
    for _ in 0..iterations {
        samples.push(iterate()?);
    }
    Ok(TrialData {
        samples,
        disturbance: observation.end(),
        ..TrialData::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure;

    #[test]
    fn warm_ups_run_first_yield_no_sample_and_the_first_failure_ends_the_trial() {
        let mut calls = 0;
        let mut iterate = || {
            calls += 1;
            match calls {
                6 => Err(failure::failed("cannot")),
                _ => Ok(Sample::default()),
            }
        };
        assert_eq!(repeat(2, 3, &mut iterate).unwrap().samples.len(), 3);
        assert!(repeat(0, 3, iterate).is_err());
        assert_eq!(calls, 6);
    }
}
