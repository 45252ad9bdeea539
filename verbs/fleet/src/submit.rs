//! `toll fleet submit`: submits experiments for the nodes of a cluster.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, anyhow, bail, ensure};
use clap::Args;
use toll_core::spec::builtin;
use toll_core::spec::quantity::{parse_duration, parse_size};
use toll_host::trial::Probe;
use toll_report::words::plural;
use toll_system::{Failure, output};

use crate::directory::{DIRECTORY, make_directory};
use crate::kubernetes::{self, MOUNTED_AT, PodRequest};
use crate::run_options::run_options;
use crate::script::{SlurmRequest, sbatch_options, script};
use crate::slurm::Slurm;
use crate::submission::{FleetDirectory, JobArray, PlannedExperiment, Scheduler, Submission};

pub const NOTES: &str = "\
Examples:
  toll fleet submit cat prices --slurm --partition batch --time-limit 2h -- --profile quick
  toll fleet status
  toll fleet fetch && toll fleet report

All nodes must see the directory under the same path. One job measures each node: it has the node to
itself, runs the experiments one after the other and writes a document for each. A job that is
preempted, or whose node fails, starts again there and continues after its finished trials.

With --kubernetes, an indexed job is written, which kubectl apply submits. The directory must then
be the root of the volume that --claim names.";

/// What runs the jobs.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct WhichScheduler {
    /// Submit to Slurm: a job array with a task for each node of a partition
    #[arg(long)]
    slurm: bool,
    /// Write an indexed job for Kubernetes: one pod per node, quality of service Guaranteed
    #[arg(long, requires_all = ["nodes", "claim", "cpus", "memory"])]
    kubernetes: bool,
    /// Only write a script, measure.sh, for you to start on each machine
    #[arg(long)]
    script: bool,
}

#[derive(Debug, Args)]
pub struct SubmitArguments {
    /// Built-in experiments by name, or experiment files (*.toml)
    #[arg(required = true, value_name = "EXPERIMENT")]
    experiments: Vec<String>,
    #[command(flatten)]
    scheduler: WhichScheduler,
    /// Directory for the submission and its results
    #[arg(long, value_name = "DIR", default_value = DIRECTORY)]
    directory: PathBuf,
    /// Measure at most N nodes; with --kubernetes, exactly N
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "script")]
    nodes: Option<u32>,
    /// Slurm partition [default: Slurm's default]
    #[arg(long, value_name = "NAME", value_parser = plain, requires = "slurm")]
    partition: Option<String>,
    /// Features that nodes must have, as sbatch takes them; with --kubernetes, a
    /// label NAME=VALUE
    #[arg(long, value_name = "FEATURES", value_parser = plain, conflicts_with = "script")]
    constraint: Option<String>,
    /// Time limit of a job (2h); `toll fleet retry` continues a job that reached its limit
    #[arg(long, value_name = "TIME", value_parser = parse_duration, conflicts_with = "script")]
    time_limit: Option<Duration>,
    /// Directory on each node for work files, on the disk to measure
    #[arg(long, value_name = "DIR", default_value = "/var/tmp")]
    work_dir: PathBuf,
    /// Kubernetes volume claim whose volume holds the directory
    #[arg(long, value_name = "NAME", requires = "kubernetes")]
    claim: Option<String>,
    /// Whole CPUs of each pod: as many as a node can give
    #[arg(long, value_name = "N", requires = "kubernetes", value_parser = clap::value_parser!(u32).range(1..))]
    cpus: Option<u32>,
    /// Memory of each pod (8GiB)
    #[arg(long, value_name = "SIZE", requires = "kubernetes", value_parser = parse_size)]
    memory: Option<u64>,
    /// Image of the pods; the programs only need a shell in it
    #[arg(
        long,
        value_name = "NAME",
        requires = "kubernetes",
        default_value = "debian:stable-slim"
    )]
    image: String,
    /// Print the script or job, and submit nothing
    #[arg(long)]
    dry_run: bool,
    /// Options of `toll run` for all experiments, after --
    #[arg(last = true, value_name = "OPTION")]
    run_options: Vec<String>,
}

/// Accepts a string that scripts and schedulers read as one word.
fn plain(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_graphic() && !"'\"\\`$".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        Ok(text.to_owned())
    } else {
        Err("expected a word without spaces or quotes".into())
    }
}

pub fn run(arguments: &SubmitArguments) -> anyhow::Result<ExitCode> {
    let directory = FleetDirectory::at(&arguments.directory)?;
    ensure!(
        arguments.work_dir.is_absolute(),
        Failure::Usage(format!(
            "cannot use --work-dir {}: jobs do not start in the current directory; give an \
             absolute path",
            arguments.work_dir.display()
        ))
    );
    let planned = planned(arguments)?;
    match &arguments.scheduler {
        WhichScheduler { slurm: true, .. } => to_slurm(arguments, &directory, &planned)?,
        WhichScheduler { script: true, .. } => as_script(arguments, &directory, &planned)?,
        _ => for_kubernetes(arguments, &directory, &planned)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The experiments to measure.
struct Planned {
    experiments: Vec<PlannedExperiment>,
    /// The user's file of each experiment; `None` for a built-in experiment.
    files: Vec<Option<PathBuf>>,
    run_options: Vec<String>,
}

impl Planned {
    fn submission(&self, scheduler: Scheduler) -> Submission {
        Submission::new(
            self.experiments.clone(),
            self.run_options.clone(),
            scheduler,
        )
    }
}

/// Checks the experiments as far as possible on this machine, and returns them.
fn planned(arguments: &SubmitArguments) -> anyhow::Result<Planned> {
    let mut options = run_options(&arguments.run_options)?;
    let mut planned = Planned {
        experiments: Vec::new(),
        files: Vec::new(),
        run_options: arguments.run_options.clone(),
    };
    let mut names = BTreeSet::new();
    for item in &arguments.experiments {
        let file = match builtin::find(item) {
            Some(_) => None,
            None if Path::new(item).is_file() => Some(PathBuf::from(item)),
            None => bail!(Failure::Usage(format!(
                "cannot submit {item}: it is neither a built-in experiment (see toll list) nor a \
                 file; put commands into an experiment file"
            ))),
        };
        options.new.items = vec![item.clone()];
        let experiments = toll_driver::select(&options)?;
        let name = match experiments.as_slice() {
            [one] => {
                toll_driver::check(&options, &[one])?;
                one.name.clone()
            }
            _ => bail!(Failure::Usage(format!(
                "cannot submit {item}: it is not an experiment; give it a name that ends with .toml"
            ))),
        };
        ensure!(
            names.insert(name.clone()),
            Failure::Usage(format!(
                "cannot submit two experiments named {name}: their names must differ; rename or \
                 leave out one of the two"
            ))
        );
        let copy = file.as_ref().map(|_| format!("{name}.toml"));
        planned
            .experiments
            .push(PlannedExperiment { name, file: copy });
        planned.files.push(file);
    }
    Ok(planned)
}

fn to_slurm(
    arguments: &SubmitArguments,
    directory: &FleetDirectory,
    planned: &Planned,
) -> anyhow::Result<()> {
    let slurm = Slurm::find().map_err(Failure::Prerequisite)?;
    let request = SlurmRequest {
        partition: arguments.partition.as_deref(),
        constraint: arguments.constraint.as_deref(),
        time_limit: arguments.time_limit,
    };
    let options = sbatch_options(directory.path(), &request);
    let nodes = usable_nodes(&slurm, arguments, &options)?;
    let script = script(directory.path(), &arguments.work_dir, &options);
    if arguments.dry_run {
        let message = format!("{}: {}", plural(nodes.len(), "node"), nodes.join(" "));
        output::note(&message);
        return output::document(&script);
    }
    let mut submission = planned.submission(Scheduler::Slurm {
        options,
        arrays: Vec::new(),
    });
    let message = fill(directory, |directory| {
        lay_out(directory, planned, &script)?;
        submit_array(directory, &mut submission, &[], nodes)
    })?;
    // Comes after `fill`. Within `fill`, an error of standard output would remove the directory of
    // running jobs.
    output::line(&message)
}

/// Returns the nodes on which Slurm would run the job. Prints the nodes that are left out, and why.
fn usable_nodes(
    slurm: &Slurm,
    arguments: &SubmitArguments,
    options: &[String],
) -> anyhow::Result<Vec<String>> {
    let cannot = |why: String| anyhow!("cannot submit: {why}");
    let all = slurm
        .nodes_of(arguments.partition.as_deref())
        .map_err(cannot)?;
    let most = arguments.nodes.map_or(usize::MAX, |nodes| nodes as usize);
    let mut usable = Vec::new();
    let mut refused = Vec::new();
    for node in all {
        if usable.len() == most {
            break;
        }
        match node
            .obstacle()
            .or_else(|| slurm.refusal(options, &node.name))
        {
            None => usable.push(node.name),
            Some(why) => refused.push(format!("{}: {why}", node.name)),
        }
    }
    if usable.is_empty() {
        let first = refused.into_iter().next().unwrap_or_default();
        return Err(cannot(format!("no node can run the job; {first}")));
    }
    for one in refused {
        output::note(&format!("left out: {one}"));
    }
    Ok(usable)
}

/// Submits a job array for some nodes, adds it to the submission, and returns a line about it.
pub fn submit_array(
    directory: &FleetDirectory,
    submission: &mut Submission,
    options: &[String],
    nodes: Vec<String>,
) -> anyhow::Result<String> {
    let slurm = Slurm::find().map_err(Failure::Prerequisite)?;
    let count = nodes.len();
    let note = |job| {
        if let Scheduler::Slurm { arrays, .. } = &mut submission.scheduler {
            arrays.push(JobArray {
                job,
                nodes: nodes.clone(),
            });
        }
        let kept = directory.keep(submission, output::write_file);
        kept.map_err(|error| error.to_string())
    };
    let job = slurm
        .submit(&directory.script(), options, &nodes, note)
        .map_err(|why| anyhow!("cannot submit: {why}"))?;
    let nodes = plural(count, "node");
    let shown = directory.path().display();
    Ok(format!(
        "submitted job {job} for {nodes}; its files are in {shown}"
    ))
}

fn as_script(
    arguments: &SubmitArguments,
    directory: &FleetDirectory,
    planned: &Planned,
) -> anyhow::Result<()> {
    let script = script(directory.path(), &arguments.work_dir, &[]);
    if arguments.dry_run {
        return output::document(&script);
    }
    fill(directory, |directory| {
        lay_out(directory, planned, &script)?;
        directory.keep(&planned.submission(Scheduler::Script), output::write_file)
    })?;
    let shown = directory.script();
    output::line(&format!("start it on each machine: sh {}", shown.display()))
}

fn for_kubernetes(
    arguments: &SubmitArguments,
    directory: &FleetDirectory,
    planned: &Planned,
) -> anyhow::Result<()> {
    let (Some(nodes), Some(claim), Some(cpus), Some(memory_bytes)) = (
        arguments.nodes,
        &arguments.claim,
        arguments.cpus,
        arguments.memory,
    ) else {
        unreachable!("clap requires them");
    };
    let label = arguments.constraint.as_ref().map(|text| {
        let label = text.split_once('=');
        let label = label.map(|(name, value)| (name.to_owned(), value.to_owned()));
        label.ok_or_else(|| {
            Failure::Usage(format!(
                "cannot use --constraint {text}: a label is NAME=VALUE"
            ))
        })
    });
    let node_labels = Vec::from_iter(label.transpose()?);
    let job = kubernetes::job(&PodRequest {
        nodes,
        image: &arguments.image,
        claim,
        cpus,
        memory_bytes,
        node_labels: &node_labels,
        time_limit_s: arguments.time_limit.map(|limit| limit.as_secs()),
        work_dir: &arguments.work_dir,
    });
    if arguments.dry_run {
        return output::json(&job);
    }
    let submission = planned.submission(Scheduler::Kubernetes { nodes });
    let script = script(Path::new(MOUNTED_AT), &arguments.work_dir, &[]);
    fill(directory, |directory| {
        lay_out(directory, planned, &script)?;
        output::write_file(&directory.job(), output::json_text(&job)?.as_bytes())?;
        directory.keep(&submission, output::write_file)
    })?;
    let shown = directory.job();
    output::line(&format!(
        "submit it with: kubectl apply -f {}",
        shown.display()
    ))
}

/// Fills a directory that is new or empty. If that fails, the directory is as before.
fn fill<T>(
    directory: &FleetDirectory,
    work: impl FnOnce(&FleetDirectory) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let path = directory.path();
    ensure!(
        !directory.has_submission(),
        Failure::Usage(format!(
            "cannot submit from {}: it has a submission already; see toll fleet status, or name \
             another --directory",
            path.display()
        ))
    );
    let is_new = !path.exists();
    make_directory(path)?;
    let is_empty = fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
    ensure!(
        is_empty,
        Failure::Usage(format!(
            "cannot submit from {}: it is not empty; name another --directory",
            path.display()
        ))
    );
    work(directory).inspect_err(|_| {
        let _ = fs::remove_dir_all(path);
        if !is_new {
            let _ = fs::create_dir(path);
        }
    })
}

/// Creates the files and directories that jobs need.
fn lay_out(directory: &FleetDirectory, planned: &Planned, script: &str) -> anyhow::Result<()> {
    for path in [
        directory.programs(),
        directory.experiments(),
        directory.nodes(),
        directory.logs(),
    ] {
        make_directory(&path)?;
    }
    let probe = Probe::find().map_err(Failure::Prerequisite)?;
    let own = std::env::current_exe().context("cannot find the program toll")?;
    let programs = directory.programs();
    copy(&own, &programs.join("toll"))?;
    copy(probe.path(), &programs.join("toll-probe"))?;
    for (experiment, source) in planned.experiments.iter().zip(&planned.files) {
        if let (Some(file), Some(source)) = (&experiment.file, source) {
            copy(source, &directory.experiments().join(file))?;
        }
    }
    output::write_file(&directory.script(), script.as_bytes())
}

fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    let copied = fs::copy(from, to);
    copied.with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
    Ok(())
}
