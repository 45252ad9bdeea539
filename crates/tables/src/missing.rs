//! Replaces the tables in a build without the feature `parquet`.

use std::path::Path;

use toll_core::claim::Run;
use toll_core::claim::model::OverRuns;
use toll_core::fleet::model::FleetMachine;

const MISSING: &str = "this toll was built without parquet; build it with --features parquet";

pub fn write(
    directory: &Path,
    _run: &Run,
    _over: Option<&OverRuns>,
    _put: impl FnMut(&Path, &[u8]) -> anyhow::Result<()>,
) -> anyhow::Result<u64> {
    anyhow::bail!("cannot write tables to {}: {MISSING}", directory.display())
}

pub fn read(directory: &Path) -> anyhow::Result<Vec<FleetMachine>> {
    anyhow::bail!("cannot report on {}: {MISSING}", directory.display())
}
