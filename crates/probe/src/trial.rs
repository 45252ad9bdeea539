//! One trial: the parts that all workloads share.
//!
//! Each workload is a module with one function `run`, which `workloads.rs` lists. It sets
//! itself up and calls [`Trial::repeat`]. There it prepares each iteration, does its work within
//! `Meter::measure`, the timed region, and checks the result.

use toll_wire::{Failure, Recording, Request, Sample, TrialData};

use crate::counters::{Counters, Inherit};
use crate::disturbance::Observation;
use crate::meter::{Meter, Recorder};
use crate::profile::Profiler;
use crate::usage::Scope;

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

/// Runs `iterate` untimed `warmups` times and then once per sample. Observes the machine's
/// disturbance over the timed runs.
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
