//! One trial, as it is stored.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toll_wire::{Disturbance, FailureKind, Outcome, TrialData};

/// One trial: its place in the plan, its results, and what disturbed it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrialRecord {
    /// Block of the trial, from 0.
    pub block: u32,
    /// Place within the block, from 0.
    pub position: u32,
    /// Index of the treatment.
    pub treatment: usize,
    /// When the trial began, RFC 3339 in UTC.
    pub started_at: String,
    /// Total time, including set-up and checks, in nanoseconds.
    pub wall_ns: u64,
    /// Time that the run had taken when this trial ended, over all sessions and without
    /// pauses, in nanoseconds.
    pub run_ns: u64,
    /// How the trial ended.
    pub state: TrialState,
    /// Error message, unless the trial completed.
    pub message: Option<String>,
    /// One value per timed iteration, by metric.
    pub samples: BTreeMap<String, Vec<f64>>,
    /// Disturbances of the machine during the trial, by name; only those that were recorded.
    pub disturbance: BTreeMap<String, f64>,
    /// Requested counters that were not available, with the reason.
    pub counters_missing: BTreeMap<String, String>,
    /// Notes of the probe.
    pub notes: Vec<String>,
    /// Instructions by kernel function in the iteration with the median path length (of an
    /// even number, the smaller of the two); `programs` is everything outside the kernel.
    /// Only for guests whose instructions were counted.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub functions: BTreeMap<String, u64>,
}

/// How a trial ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TrialState {
    /// The trial has samples.
    #[default]
    Completed,
    /// The work failed.
    Failed,
    /// The kernel or file system does not support what the trial does.
    Unsupported,
    /// The trial was set aside because of an instrument fault.
    Excluded,
    /// The trial exceeded its time limit.
    TimedOut,
    /// The probe died.
    Crashed,
}

impl TrialState {
    /// Returns the state's name in the store and in tables.
    pub fn name(self) -> &'static str {
        toll_wire::words::<Self>()[self as usize]
    }
}

impl From<FailureKind> for TrialState {
    fn from(kind: FailureKind) -> Self {
        match kind {
            FailureKind::Unsupported => Self::Unsupported,
            FailureKind::Failed => Self::Failed,
            FailureKind::Instrument => Self::Excluded,
            FailureKind::TimedOut => Self::TimedOut,
            FailureKind::Crashed => Self::Crashed,
        }
    }
}

impl TrialRecord {
    /// Fills in the reply of a probe.
    pub fn take_outcome(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Failed(failure) => {
                self.state = failure.kind.into();
                self.message = Some(failure.message);
            }
            Outcome::Completed(data) => {
                self.state = TrialState::Completed;
                self.message = None;
                self.samples = columns(&data);
                self.disturbance = numbers(&data.disturbance);
                self.counters_missing = data.counters_missing;
                self.notes = data.notes;
                self.functions = data.functions;
                self.drop_partial_metrics(data.samples.len());
            }
        }
    }

    /// Sets aside metrics that are missing from an iteration or not finite: positions in a
    /// column are iterations, and JSON has no NaN.
    fn drop_partial_metrics(&mut self, iterations: usize) {
        let notes = &mut self.notes;
        self.samples.retain(|name, values| {
            let whole = values.len() == iterations && values.iter().all(|v| v.is_finite());
            if !whole {
                notes.push(format!(
                    "{name} is missing from some iterations and was set aside"
                ));
            }
            whole
        });
    }
}

/// Converts samples by iteration to values by metric.
fn columns(data: &TrialData) -> BTreeMap<String, Vec<f64>> {
    let mut columns: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    let mut put = |name: String, value: f64| columns.entry(name).or_default().push(value);
    for sample in &data.samples {
        for (name, value) in &sample.metrics {
            put(name.clone(), *value);
        }
        for (name, reading) in &sample.counters {
            put(format!("counter.{name}"), reading.count as f64);
            put(
                format!("counter.{name}.enabled_ns"),
                reading.enabled_ns as f64,
            );
            put(
                format!("counter.{name}.running_ns"),
                reading.running_ns as f64,
            );
        }
    }
    columns
}

/// Returns the recorded disturbances by name.
fn numbers(disturbance: &Disturbance) -> BTreeMap<String, f64> {
    let fields = serde_json::to_value(disturbance).expect("it is plain data");
    let fields = fields.as_object().into_iter().flatten();
    fields
        .filter_map(|(name, value)| Some((name.clone(), value.as_f64()?)))
        .collect()
}
