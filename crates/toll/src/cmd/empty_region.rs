//! What the probe's own readings add to a trial, for `toll doctor`.

use std::collections::BTreeMap;

use anyhow::Context;
use serde::Serialize;
use toll_host::trial::Probe;
use toll_stats::median;
use toll_system::interrupt::Interrupt;
use toll_wire::{
    CrossingCpus, CrossingOperation, CrossingRequest, Outcome, Request, TrialData, Workload,
};

use crate::format;

/// Number of probes, each for one iteration as in most trials.
const TRIALS: u32 = 31;

const COUNTERS: [&str; 6] = [
    "cycles",
    "instructions",
    "page-faults",
    "context-switches",
    "cpu-migrations",
    "task-clock-ns",
];

/// Metrics of a timed region that only calls an empty function: medians of all trials.
#[derive(Debug, Serialize)]
pub(super) struct EmptyRegion {
    duration_ns: f64,
    /// User and system time together. Separately, they mean nothing for so short a region.
    cpu_ns: f64,
    minor_faults: f64,
    /// The counters that can be opened here, all at once.
    counters: BTreeMap<String, f64>,
}

/// Measures the empty region. The inner error is the signal that interrupted the measurement.
pub(super) fn measure(probe: &Probe) -> anyhow::Result<Result<EmptyRegion, i32>> {
    let mut request = Request::new(Workload::Crossing(CrossingRequest {
        operation: CrossingOperation::UserCall,
        size_bytes: 1,
        cpus: CrossingCpus::One,
        calls: 1,
        ..CrossingRequest::default()
    }));
    request.counters = COUNTERS.map(str::to_owned).to_vec();
    let interrupt = Interrupt::listen().context("cannot listen for signals")?;
    let mut trials = Vec::new();
    for _ in 0..TRIALS {
        match probe.run_alone(&request, &interrupt) {
            Some(Outcome::Completed(data)) => trials.push(*data),
            Some(Outcome::Failed(failure)) => {
                return Err(anyhow::Error::msg(failure.message));
            }
            None => return Ok(Err(interrupt.signal().unwrap_or(libc::SIGINT))),
        }
    }
    Ok(Ok(EmptyRegion::from_trials(&trials)))
}

impl EmptyRegion {
    fn from_trials(trials: &[TrialData]) -> Self {
        let samples = || trials.iter().flat_map(|trial| &trial.samples);
        let metric = |name: &str| -> Vec<f64> {
            let values = samples().map(|sample| sample.metrics.get(name).copied());
            values.map(Option::unwrap_or_default).collect()
        };
        let counted = |name: &str| -> Vec<f64> {
            let readings = samples().filter_map(|sample| sample.counters.get(name));
            readings.map(|reading| reading.count as f64).collect()
        };
        let counters = COUNTERS.into_iter().map(|name| (name, counted(name)));
        Self {
            duration_ns: median(&metric("duration_ns")),
            cpu_ns: median(&metric("cpu_ns")),
            minor_faults: median(&metric("minor_faults")),
            counters: counters
                .filter(|(_, counts)| !counts.is_empty())
                .map(|(name, counts)| (name.to_owned(), median(&counts)))
                .collect(),
        }
    }

    /// Formats the metrics as one line.
    pub(super) fn text(&self) -> String {
        let mut text = format!(
            "{}, {} of CPU time, {} faults",
            format::duration_ns(self.duration_ns),
            format::duration_ns(self.cpu_ns),
            self.minor_faults
        );
        for (name, count) in &self.counters {
            text += &format!(", {name} {count}");
        }
        text + "; every trial includes this besides its work"
    }
}

#[cfg(test)]
mod tests {
    use toll_wire::{CounterReading, Sample};

    use super::*;

    #[test]
    fn medians_are_those_of_what_was_measured() {
        let trial = |duration_ns: f64, cpu_ns: f64, count: u64| {
            let reading = CounterReading {
                count,
                enabled_ns: 1,
                running_ns: 1,
            };
            let metrics = [("duration_ns", duration_ns), ("cpu_ns", cpu_ns)];
            let sample = Sample {
                metrics: metrics.map(|(name, value)| (name.to_owned(), value)).into(),
                counters: BTreeMap::from([("task-clock-ns".to_owned(), reading)]),
                ..Sample::default()
            };
            TrialData {
                samples: vec![sample],
                ..TrialData::default()
            }
        };
        let region = EmptyRegion::from_trials(&[
            trial(50.0, 1_000.0, 900),
            trial(70.0, 1_500.0, 1_100),
            trial(9_000.0, 3_000.0, 1_000),
        ]);
        assert_eq!(
            region.text(),
            "70.0\u{a0}ns, 1.50\u{a0}µs of CPU time, 0 faults, task-clock-ns 1000; \
             every trial includes this besides its work"
        );
    }
}
