//! The evidence of all comparable runs of a store.

use toll_core::claim::Multiplied;
use toll_core::claim::model::OverRuns;
use toll_host::store::{Store, StoredRun};

/// Multiplies a run's evidence with the evidence of the experiment's other runs, earlier and later.
pub fn over_runs(store: &Store, run: &StoredRun) -> anyhow::Result<OverRuns> {
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
