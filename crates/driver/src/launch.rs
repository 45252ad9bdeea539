//! Starting a run, or continuing one.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, anyhow, bail};
use toll_core::plan::{Plan, Treatment};
use toll_core::spec::Experiment;
use toll_host::environment::{
    Leftover, Workspace, WorkspaceRequest, check_foreign, inspect, restore, variables,
};
use toll_host::store::{BootRecord, RunRecord, Store, StoredRun, TrialRecord};
use toll_host::trial::{
    Guests, Probe, ProfileEnd, RunTime, Session, SessionEnd, TimeLimit, command_files, unquotable,
    workspace_request,
};
use toll_system::interrupt::Interrupt;
use toll_system::kept_files::Identity;
use toll_system::{Failure, kept_files, output, paths};

use crate::arguments::WorkDirectories;
use crate::busy_machine;
use crate::consent;
use crate::progress::{Progress, Purpose};

/// What to run.
pub struct Launch {
    /// The experiment, with levels and settings applied.
    pub experiment: Experiment,
    /// Seed of the run's plan.
    pub seed: u64,
    /// Directories in which to make files.
    pub directories: WorkDirectories,
    /// The command line, for the record.
    pub command_line: String,
    /// Who watches the run.
    pub purpose: Purpose,
    pub time_limit: TimeLimit,
}

/// How a run ended.
pub struct Launched {
    /// Number of the run in the store.
    pub run_id: i64,
    /// How the session ended. Results from before an error are kept.
    pub end: anyhow::Result<SessionEnd>,
}

/// Starts a run and measures it to its end.
pub fn launch(store: &mut Store, launch: Launch) -> anyhow::Result<Launched> {
    let Launch {
        experiment,
        seed,
        directories,
        command_line,
        purpose,
        time_limit,
    } = launch;
    let plan = Plan::new(&experiment, seed).map_err(Failure::Usage)?;
    require_some_guest(&plan)?;
    refuse_lost_files(&experiment, &plan.treatments)?;
    consent::sign_by_own_key(store)?;
    let mut prepared = Prepared::new(experiment, plan, &directories, purpose)?;
    prepared.time_limit = time_limit;
    let experiment = &prepared.experiment;
    let now = jiff::Timestamp::now();
    let record = RunRecord {
        uid: format!("{:016x}", random_seed()?),
        seed,
        created_at: now.to_string(),
        toll_version: env!("CARGO_PKG_VERSION").into(),
        command_line,
        machine: inspect(prepared.workspace.root()),
        variables: recorded_variables(experiment),
        ..RunRecord::from_experiment(experiment)
    };
    if let Some(warning) = record.warning_of_variables() {
        output::note(&format!("warning: {warning}"));
    }
    let run_id = store.add_run(&record, experiment, &prepared.plan.treatments)?;
    prepared.run(store, run_id, Vec::new(), Vec::new())
}

/// Refuses commands whose output would overwrite a file that a command or this program reads.
fn refuse_lost_files(experiment: &Experiment, treatments: &[Treatment]) -> anyhow::Result<()> {
    let files: Vec<[Option<PathBuf>; 2]> = treatments
        .iter()
        .map(|treatment| command_files(experiment, treatment))
        .collect();
    let inputs: BTreeSet<Identity> = files
        .iter()
        .filter_map(|[input, _]| Identity::of_path(input.as_deref()?))
        .collect();
    for output in files.iter().filter_map(|[_, output]| output.as_deref()) {
        kept_files::check(output)?;
        if Identity::of_path(output).is_some_and(|output| inputs.contains(&output)) {
            bail!(Failure::Usage(format!(
                "cannot write {}: input and output are the same file; name another --output",
                output.display()
            )));
        }
    }
    Ok(())
}

/// The inherited variables that are recorded with an experiment's commands. Commands in a guest do
/// not inherit them.
fn recorded_variables(experiment: &Experiment) -> BTreeMap<String, String> {
    if experiment.workload.commands.is_empty() || experiment.guest.is_some() {
        return BTreeMap::new();
    }
    variables::that_change_measurements()
}

/// Continues a run where it stopped.
pub fn resume(
    store: &mut Store,
    stored: StoredRun,
    directories: &WorkDirectories,
    purpose: Purpose,
) -> anyhow::Result<Launched> {
    consent::of_run(store, &stored, false)?;
    let plan = planned(&stored)?;
    if recorded_variables(&stored.experiment) != stored.run.variables {
        output::note(
            "warning: variables that can change the cost of commands have changed since the run \
             began: LD_*, GLIBC_TUNABLES, MALLOC_*, LANG, LC_* or PATH; further trials use the \
             current ones",
        );
    }
    let prepared = Prepared::new(stored.experiment, plan, directories, purpose)?;
    prepared.run(store, stored.run.id, stored.trials, stored.boots)
}

/// Plans a stored run again, and refuses a plan whose treatments differ from the stored treatments.
fn planned(stored: &StoredRun) -> anyhow::Result<Plan> {
    let mut plan = Plan::new(&stored.experiment, stored.run.seed).map_err(Failure::Usage)?;
    let bare = |treatments: &[Treatment]| -> Vec<Treatment> {
        let clear = |treatment: &Treatment| Treatment {
            skipped: None,
            ..treatment.clone()
        };
        treatments.iter().map(clear).collect()
    };
    if bare(&plan.treatments) != bare(&stored.treatments) {
        bail!(
            "cannot continue run {}: this toll would plan it differently from the one that began \
             it; start a new run",
            stored.run.id
        );
    }
    plan.treatments.clone_from(&stored.treatments);
    refuse_lost_files(&stored.experiment, &plan.treatments)?;
    Ok(plan)
}

/// Refuses an experiment that runs only in guests if none is available. Otherwise an unfinished run
/// without a trial would be the last one in the store.
fn require_some_guest(plan: &Plan) -> anyhow::Result<()> {
    let obstacles = plan
        .treatments
        .iter()
        .map(|treatment| Guests::obstacle(&treatment.boot()?));
    match obstacles.collect::<Option<Vec<String>>>() {
        Some(reasons) if !reasons.is_empty() => Err(Failure::Prerequisite(format!(
            "cannot measure anything: no treatment can run here: {}",
            reasons[0]
        ))
        .into()),
        _ => Ok(()),
    }
}

/// The work directories that a run needs.
pub fn workspace_of(
    experiment: &Experiment,
    plan: &Plan,
    directories: &WorkDirectories,
) -> anyhow::Result<WorkspaceRequest> {
    let mut request = workspace_request(experiment, plan).map_err(Failure::Usage)?;
    let WorkDirectories {
        work_dir,
        foreign_dir,
    } = directories.clone();
    let absolute = |path: PathBuf| {
        std::path::absolute(&path)
            .map_err(|error| anyhow!("cannot use {}: {error}", path.display()))
    };
    let place = paths::work(work_dir.as_deref()).map_err(anyhow::Error::msg)?;
    request.foreign = foreign_dir.map(absolute).transpose()?;
    if let Some(named) = &request.foreign {
        check_foreign(named).map_err(Failure::Usage)?;
    }
    let base = place.unchecked_path();
    if experiment.workload.uses_work_directory() {
        check_path(experiment, plan, &base)?;
    }
    request.base = work_dir;
    Ok(request)
}

/// Makes the work directories, and returns the size of a guest's work disk in bytes.
fn lay_out(
    experiment: &Experiment,
    plan: &Plan,
    directories: &WorkDirectories,
    interrupt: &Interrupt,
) -> anyhow::Result<(Workspace, u64)> {
    let request = workspace_of(experiment, plan, directories)?;
    let laid = Workspace::create(&request, &|| interrupt.signal().is_some());
    // A ^C also ends the programs that make file systems. Their failure then is not a missing
    // prerequisite of this machine.
    if let Some(signal) = interrupt.signal() {
        bail!(Failure::Interrupted(signal));
    }
    Ok((
        laid.map_err(Failure::Prerequisite)?,
        request.guest_disk_bytes(),
    ))
}

/// Listens for signals. Must be called before anything is made that must be removed again.
pub fn listen() -> anyhow::Result<Interrupt> {
    Interrupt::listen().context("cannot listen for signals")
}

/// Refuses a place for work directories if the commands cannot contain its path.
fn check_path(experiment: &Experiment, plan: &Plan, base: &Path) -> anyhow::Result<()> {
    let why = match base.to_str() {
        Some(text) => unquotable(experiment, plan, text),
        None => Some(format!(
            "cannot replace {{workdir}} in a command by {}: its path is not UTF-8",
            base.display()
        )),
    };
    match why {
        None => Ok(()),
        Some(why) => bail!(Failure::Usage(format!(
            "{why}; choose another place with --work-dir"
        ))),
    }
}

/// Profiles two treatments of a run and stores the profile with it. Returns the signal that
/// interrupted profiling, if one did.
pub fn profile(
    store: &mut Store,
    stored: StoredRun,
    pair: [usize; 2],
    directories: &WorkDirectories,
    is_quiet: bool,
) -> anyhow::Result<Option<i32>> {
    let id = stored.run.id;
    if stored.run.imported {
        bail!(Failure::Usage(format!(
            "cannot explain run {id}: it was made on another machine; explain it there"
        )));
    }
    let treatments = pair.map(|index| &stored.treatments[index]);
    if let Some(one) = treatments.iter().find(|one| one.boot().is_some()) {
        bail!(Failure::Usage(format!(
            "cannot explain {}: it runs in a guest, which cannot be profiled; `toll count` counts \
             the instructions of commands by function",
            one.label
        )));
    }
    if let Some((one, reason)) = treatments
        .iter()
        .find_map(|one| Some((one, one.skipped.as_ref()?)))
    {
        bail!(Failure::Prerequisite(format!(
            "cannot explain {}: it cannot run here: {reason}",
            one.label
        )));
    }
    if !is_quiet {
        output::note(&format!(
            "profiling {} and {}",
            treatments[0].label, treatments[1].label
        ));
    }
    consent::of_run(store, &stored, false)?;
    let plan = planned(&stored)?;
    let prepared = Prepared::new(stored.experiment, plan, directories, Purpose::Quiet)?;
    match prepared.profile(store, id, pair, stored.trials)? {
        ProfileEnd::Made(record) => {
            store.add_profile(id, &record)?;
            Ok(None)
        }
        ProfileEnd::Interrupted(signal) => Ok(Some(signal)),
        ProfileEnd::Failed(message) => bail!("cannot explain run {id}: {message}"),
    }
}

/// Everything that a session of a run needs except the store.
struct Prepared {
    experiment: Experiment,
    plan: Plan,
    workspace: Workspace,
    /// Size of a guest's work disk, in bytes.
    disk_bytes: u64,
    probe: Probe,
    purpose: Purpose,
    time_limit: TimeLimit,
    interrupt: Interrupt,
}

impl Prepared {
    fn new(
        experiment: Experiment,
        plan: Plan,
        directories: &WorkDirectories,
        purpose: Purpose,
    ) -> anyhow::Result<Self> {
        let probe = Probe::find().map_err(Failure::Prerequisite)?;
        let interrupt = listen()?;
        let (workspace, disk_bytes) = lay_out(&experiment, &plan, directories, &interrupt)?;
        Ok(Self {
            experiment,
            plan,
            workspace,
            disk_bytes,
            probe,
            purpose,
            time_limit: TimeLimit::Fixed,
            interrupt,
        })
    }

    /// Runs the session, which continues after the given trials and boots.
    fn run(
        mut self,
        store: &mut Store,
        run_id: i64,
        trials: Vec<TrialRecord>,
        boots: Vec<BootRecord>,
    ) -> anyhow::Result<Launched> {
        if let Purpose::Shown { number: 1, .. } = self.purpose {
            busy_machine::warn();
        }
        let mut progress = Progress::new(&self.experiment, run_id, self.purpose);
        let end = self
            .session(store, run_id, trials, boots)
            .run(&mut progress);
        progress.finish();
        Ok(Launched {
            run_id,
            end: end.map_err(anyhow::Error::from),
        })
    }

    fn profile(
        mut self,
        store: &mut Store,
        run_id: i64,
        pair: [usize; 2],
        trials: Vec<TrialRecord>,
    ) -> anyhow::Result<ProfileEnd> {
        let mut progress = Progress::new(&self.experiment, run_id, self.purpose);
        let seed = random_seed()?;
        let mut session = self.session(store, run_id, trials, Vec::new());
        let end = session.profile(pair, seed, &mut progress);
        progress.finish();
        Ok(end?)
    }

    fn session<'a>(
        &'a mut self,
        store: &'a mut Store,
        run_id: i64,
        trials: Vec<TrialRecord>,
        boots: Vec<BootRecord>,
    ) -> Session<'a> {
        let guests = Guests::new(
            (&self.experiment, &self.plan),
            &self.workspace,
            &self.probe,
            &self.interrupt,
            self.disk_bytes,
        );
        Session {
            store,
            run_id,
            experiment: &self.experiment,
            plan: &mut self.plan,
            workspace: &self.workspace,
            probe: &self.probe,
            guests,
            interrupt: &self.interrupt,
            time_limit: self.time_limit,
            time: RunTime::after(&trials),
            saved: (trials.len(), Instant::now()),
            trials,
            boots,
            servers: BTreeSet::new(),
            prestarted: None,
            next_peek: Instant::now(),
            open: None,
            comparison_time: None,
        }
    }
}

/// A random number from the kernel.
pub fn random_seed() -> anyhow::Result<u64> {
    let mut bytes = [0_u8; 8];
    match rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()) {
        Ok(8) => Ok(u64::from_le_bytes(bytes)),
        Ok(_) => Err(anyhow!("cannot draw a seed: too few random bytes")),
        Err(error) => Err(anyhow!("cannot draw a seed: {error}")),
    }
}

/// Restores what killed runs left changed, and prints what was restored.
pub fn clear_leftovers() {
    for left in restore() {
        match left {
            Leftover::Cleared(done) => output::note(&done),
            Leftover::Failed(problem) => output::note(&format!("warning: {problem}")),
            // Such a leftover does not disturb measurements; `toll doctor` lists it.
            Leftover::LeftAlone(_) => {}
        }
    }
}

/// Whether two paths are on one file system.
pub fn same_device(a: &Path, b: &Path) -> bool {
    let device = |path: &Path| std::fs::metadata(path).map(|metadata| metadata.dev()).ok();
    device(a).is_some() && device(a) == device(b)
}

/// Warns if the store is on the file system that the level `work` tests.
pub fn warn_of_shared_device(store: &Path, work_dir: Option<&Path>) {
    let work = paths::work(work_dir).and_then(|place| place.make());
    if work.is_ok_and(|work| same_device(store, work.path())) {
        output::long_note(
            "note: the store is on the file system under test, and writes to it between trials. \
             --store or --work-dir can separate them.",
        );
    }
}

/// The path itself, or the closest directory above it that exists.
pub fn nearest(path: &Path) -> PathBuf {
    let found = path.ancestors().find(|ancestor| ancestor.exists());
    found.map_or_else(|| PathBuf::from("."), Path::to_owned)
}
