//! Where the prices of calls come from: a stored run, or one made now.

use std::path::{Path, PathBuf};

use crate::cmd::Failure;
use crate::cmd::output;
use crate::cmd::run::{Launch, Purpose, WorkDirectories, launch, random_seed};
use crate::environment::{inspect, paths};
use crate::run::Machine;
use crate::store::{RunStatus, Store};
use crate::trace::costs::Costs;
use crate::trace::{COSTS_NAME, COSTS_TOML};
use crate::trial::{RunLock, SessionEnd};
use anyhow::anyhow;

/// What is known of prices before the command has run.
pub(super) enum Prices {
    NotWanted,
    /// They have to be measured.
    Missing,
    Found(Box<Costs>),
}

/// Prices from the store: of the run that is named, or of the newest one that
/// measured what calls cost on this machine while it was quiet, or else of the
/// newest.
pub(super) fn stored(name: Option<&str>, store: &Path, work_dir: &Path) -> anyhow::Result<Prices> {
    if let Some(name) = name {
        let store = Store::read(store)?;
        let costs = costs_of(&store, name)?;
        return Ok(Prices::Found(Box::new(costs)));
    }
    // What is wrong with the store is told when prices have to be kept in it;
    // it is no reason not to trace.
    let newest = newest(store, work_dir).ok().flatten();
    Ok(newest.map_or(Prices::Missing, |costs| Prices::Found(Box::new(costs))))
}

fn newest(store: &Path, work_dir: &Path) -> anyhow::Result<Option<Costs>> {
    let store = Store::read(store)?;
    let here = inspect(&nearest(work_dir));
    let mut noisy = None;
    for (run, _) in store.runs()?.into_iter().rev() {
        let is_one = run.experiment == COSTS_NAME
            && run.status == RunStatus::Complete
            && !run.imported
            && same_machine(&run.machine, &here);
        if is_one && let Ok(costs) = costs_of(&store, &run.id.to_string()) {
            if !costs.is_noisy() {
                return Ok(Some(costs));
            }
            noisy = noisy.or(Some(costs));
        }
    }
    Ok(noisy)
}

fn costs_of(store: &Store, name: &str) -> anyhow::Result<Costs> {
    let run = output::load_run(store, name)?;
    let mut costs = Costs::from_run(&run.stored).map_err(Failure::Usage)?;
    costs.noise_band = run.analysis.twins.first().map(|twin| twin.reach());
    Ok(costs)
}

/// Whether calls may be taken to cost the same: mitigations of the CPU's flaws
/// alone can double what a call costs.
fn same_machine(a: &Machine, b: &Machine) -> bool {
    a.cpu_model == b.cpu_model
        && a.kernel_release == b.kernel_release
        && a.kernel_version == b.kernel_version
        && a.kernel_command_line == b.kernel_command_line
        && a.mitigations == b.mitigations
        && a.virtualization == b.virtualization
}

/// The path itself, or the closest directory above it that exists.
fn nearest(path: &Path) -> PathBuf {
    let found = path.ancestors().find(|ancestor| ancestor.exists());
    found.map_or_else(|| PathBuf::from("."), Path::to_owned)
}

/// Measures what calls cost here, and keeps it.
pub(super) fn measure(store: &Path, work_dir: Option<&Path>) -> anyhow::Result<Costs> {
    let experiment = crate::spec::parse(COSTS_TOML, COSTS_NAME, "standard")?;
    let _lock = RunLock::take(&paths::run_lock()).map_err(anyhow::Error::msg)?;
    let mut store = output::open_store(store)?;
    let launched = launch(
        &mut store,
        Launch {
            experiment,
            seed: random_seed()?,
            directories: WorkDirectories::at(work_dir.map(Path::to_owned)),
            command_line: "toll trace".into(),
            purpose: Purpose::Aside,
        },
    )?;
    match launched.end? {
        SessionEnd::Complete(_) => costs_of(&store, &launched.run_id.to_string()),
        SessionEnd::Interrupted(_) => Err(anyhow!("measuring what calls cost was interrupted")),
    }
}
