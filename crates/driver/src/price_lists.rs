//! Price lists in the store: the newest list of this machine, or a list made now.

use std::path::Path;

use toll_core::claim::Run;
use toll_core::run::Machine;
use toll_core::spec::{Experiment, Level, LevelOverride, ROW, apply_levels, builtin};
use toll_host::environment::inspect;
use toll_host::store::{RunStatus, Store};
use toll_host::trial::TimeLimit;
use toll_system::paths;

use crate::measuring_lock;
use crate::nearest;
use crate::{Launch, Launched, Purpose, WorkDirectories, launch, random_seed};

/// Name of the experiment, by which its runs are found in a store.
pub const EXPERIMENT: &str = "prices";

/// The row by which `toll trace` prices calls.
pub const PRICING_ROW: &str = "copies";

/// The experiment that comes with the program.
pub fn experiment() -> anyhow::Result<Experiment> {
    let builtin = builtin::find(EXPERIMENT).expect("it comes with the program");
    Ok(toll_core::spec::parse(
        builtin.toml,
        EXPERIMENT,
        "standard",
    )?)
}

/// Restricts the experiment to the rows of these names and the twins among them.
pub fn keep_rows<'a>(
    experiment: &mut Experiment,
    names: impl Iterator<Item = &'a str>,
) -> anyhow::Result<()> {
    let rows = LevelOverride {
        name: ROW.into(),
        levels: names.map(Level::new).collect(),
        is_size: false,
    };
    Ok(apply_levels(experiment, &[rows])?)
}

/// Complete runs of the experiment that were measured on a machine, the newest run first. Runs that
/// cannot be read are left out.
pub fn of_machine<'a>(
    store: &'a Store,
    machine: &'a Machine,
) -> anyhow::Result<impl Iterator<Item = Run> + 'a> {
    let is_one = |run: &toll_core::run::RunRecord| {
        run.experiment == EXPERIMENT
            && run.status == RunStatus::Complete
            && same_machine(&run.machine, machine)
    };
    let runs = store.runs()?.into_iter().rev();
    let ids = runs
        .filter(move |(run, _)| is_one(run))
        .map(|(run, _)| run.id);
    Ok(ids.filter_map(|id| Some(store.load(id).ok()?.into())))
}

/// The newest list of all rows that was measured on a machine.
pub fn newest_list(store: &Store, machine: &Machine) -> anyhow::Result<Option<Run>> {
    Ok(of_machine(store, machine)?.find(has_all_rows))
}

fn has_all_rows(run: &Run) -> bool {
    let experiment = &run.stored.experiment;
    let listed = experiment
        .factor(ROW)
        .map_or(0, |factor| factor.levels.len());
    listed == experiment.rows.len() && listed > 0
}

/// Describes this machine, as a run whose files are in this work directory records it.
pub fn here(work_dir: Option<&Path>) -> anyhow::Result<Machine> {
    let place = paths::work(work_dir).map_err(anyhow::Error::msg)?;
    Ok(inspect(&nearest(&place.unchecked_path())))
}

/// Measures a price list and keeps it in the store.
pub fn measure(
    store: &mut Store,
    experiment: Experiment,
    work_dir: Option<&Path>,
    (command_line, purpose): (String, Purpose),
) -> anyhow::Result<Launched> {
    let _lock = measuring_lock::take()?;
    launch(
        store,
        Launch {
            experiment,
            seed: random_seed()?,
            directories: WorkDirectories::at(work_dir.map(Path::to_owned)),
            command_line,
            purpose,
            time_limit: TimeLimit::Fixed,
        },
    )
}

/// Whether calls can be expected to cost the same on two machines. Mitigations of
/// the CPU's flaws alone can double the cost of a call.
fn same_machine(a: &Machine, b: &Machine) -> bool {
    a.cpu_model == b.cpu_model
        && a.kernel_release == b.kernel_release
        && a.kernel_version == b.kernel_version
        && a.kernel_command_line == b.kernel_command_line
        && a.mitigations == b.mitigations
        && a.virtualization == b.virtualization
}
