//! One trial as it is kept.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toll_wire::{Disturbance, FailureKind, Outcome, TrialData};

/// One trial: where it stood in the plan, what it yielded, what disturbed it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrialRecord {
    /// Block, from 0.
    pub block: u32,
    /// Place within the block, from 0.
    pub position: u32,
    /// Index of the treatment.
    pub treatment: usize,
    /// When it began, RFC 3339 in UTC.
    pub started_at: String,
    /// How long it took in all, set-up and checks included, in nanoseconds.
    pub wall_ns: u64,
    /// How long the run had taken when it ended, over all sessions and without pauses, in
    /// nanoseconds.
    pub run_ns: u64,
    /// How it ended.
    pub state: TrialState,
    /// The error's message, unless it completed.
    pub message: Option<String>,
    /// One value a timed iteration, by metric.
    pub samples: BTreeMap<String, Vec<f64>>,
    /// What disturbed the machine meanwhile, by name; only what was recorded.
    pub disturbance: BTreeMap<String, f64>,
    /// Counters asked for and not to be had, with the reason.
    pub counters_missing: BTreeMap<String, String>,
    /// What the probe noted.
    pub notes: Vec<String>,
    /// Instructions by function of the kernel in the iteration whose path length is in the
    /// middle, of an even number the smaller one; `programs` is all outside of the kernel.
    /// Only of guests whose instructions were counted.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub functions: BTreeMap<String, u64>,
}

/// How a trial ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TrialState {
    /// It has samples.
    #[default]
    Completed,
    /// The work went wrong.
    Failed,
    /// The kernel or file system cannot do this.
    Unsupported,
    /// Set aside for a fault of the instrument.
    Excluded,
    /// It ran into its time limit.
    TimedOut,
    /// The probe died.
    Crashed,
}

impl TrialState {
    /// Its name in the store and in tables.
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
    /// Fills in what a probe answered.
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

    /// Sets aside metrics that not every iteration has, or that are no finite
    /// number: places in a column mean iterations, and JSON has no NaN.
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

/// Turns samples by iteration into values by metric.
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

/// The recorded disturbances by name.
fn numbers(disturbance: &Disturbance) -> BTreeMap<String, f64> {
    let told = serde_json::to_value(disturbance).expect("it is plain data");
    let told = told.as_object().into_iter().flatten();
    told.filter_map(|(name, value)| Some((name.clone(), value.as_f64()?)))
        .collect()
}
