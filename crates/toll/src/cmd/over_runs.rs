//! The evidence of all comparable runs of a store.

use crate::claim::Multiplied;
use crate::claim::model::OverRuns;
use crate::store::{Store, StoredRun};

/// Multiplies a run's evidence with that of the experiment's other runs, earlier and later.
pub(super) fn over_runs(store: &Store, run: &StoredRun) -> anyhow::Result<OverRuns> {
    let mut multiplied = Multiplied::new(run);
    for (record, _) in store.runs()? {
        if record.experiment != run.run.experiment || record.id == run.run.id {
            continue;
        }
        match store.load(record.id) {
            Ok(other) => multiplied.add(&other),
            Err(_) => multiplied.exclude(record.id, "it cannot be read"),
        }
    }
    Ok(multiplied.conclude())
}
