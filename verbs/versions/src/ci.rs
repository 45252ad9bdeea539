//! `toll ci`: compares a commit with its base.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{anyhow, bail};
use clap::Args;
use toll_core::spec::trees::{REGRESSION_LIMIT, SIDES, TREE, Trees};
use toll_core::spec::{Experiment, Level, LevelOverride};
use toll_driver::gate::GateArguments;
use toll_driver::measuring_lock;
use toll_driver::{
    ExplainOptions, Limits, NewRun, ResultOptions, RunArguments, RunOptions, WorkDirectories,
    listen,
};
use toll_host::environment::work_trees::{WorkTrees, check_out, check_out_submodules};
use toll_report::words::plural;
use toll_system::interrupt::Interrupt;
use toll_system::{Failure, exit_code_of, output};

use crate::repository::{BuildFailure, Repository, Version, last_of_build, run_build};

pub const NOTES: &str = "\
Examples:
  toll ci --build make '{tree}/prog input'
  toll ci --base v1.0 --build make benches.toml --fail-on regression=5%
  toll ci --build make '{tree}/prog a' '{tree}/prog b' --export-markdown to.md

Both commits are checked out and built outside the repository; its own work tree
is not touched. Each block runs every command in base, in head, and in base
again, in random order. The difference between the two runs of base is noise.
The exit status is 3 only if the whole interval of a difference is beyond both
the limit of --fail-on (default: regression=3%) and this noise. All commands
share one error budget of 5 %.

An experiment file may have a factor named tree with the level \".\", which stands
for the directory of the commit. toll run accepts the same file.";

/// Number of last lines that are shown of a failed build.
const LINES_SHOWN: usize = 20;

#[derive(Debug, Args)]
pub struct CiArguments {
    /// Commands to measure, with {tree} for the directory of a commit, or one
    /// experiment file (*.toml) with such commands
    #[arg(value_name = "COMMAND|FILE")]
    items: Vec<String>,
    /// Commit to compare with [default: where HEAD left the default branch]
    #[arg(long, value_name = "REV")]
    base: Option<String>,
    /// Commit to judge [default: HEAD, if no tracked file differs from it]
    #[arg(long, value_name = "REV")]
    head: Option<String>,
    /// Git repository
    #[arg(long, value_name = "DIR", default_value = ".")]
    tree: PathBuf,
    /// Command that builds a commit, run in its directory by sh
    #[arg(long, value_name = "COMMAND")]
    build: Option<String>,
    /// Also check out submodules, without fetching them: from those in the repository
    #[arg(long)]
    submodules: bool,
    /// Keep both work trees in DIR, so that the next call builds only what differs; concurrent
    /// calls have their own trees in DIR
    #[arg(long, value_name = "DIR")]
    keep_trees: Option<PathBuf>,
    /// Fail if another run is measuring on this machine, instead of waiting for its end before the
    /// builds
    #[arg(long)]
    no_wait: bool,
    #[command(flatten)]
    limits: Limits,
    #[command(flatten)]
    options: RunOptions,
    /// Show what would run, and what would not and why, but run nothing
    #[arg(long, conflicts_with = "why")]
    dry_run: bool,
    #[command(flatten)]
    explaining: ExplainOptions,
    #[command(flatten)]
    results: ResultOptions,
    #[command(flatten)]
    directories: WorkDirectories,
    #[command(flatten)]
    gate: GateArguments,
}

pub fn run(arguments: &CiArguments, store: &Path) -> anyhow::Result<ExitCode> {
    let mut asked = arguments.asked();
    let mut experiment = select(&asked)?;
    let repository = Repository::open(&arguments.tree).map_err(Failure::Prerequisite)?;
    let versions = arguments.versions(&repository).map_err(Failure::Usage)?;
    let take = || measuring_lock::take_or_wait(!arguments.no_wait, "leave out --no-wait to wait");
    let lock = (!arguments.dry_run).then(take).transpose()?;
    let trees = match &arguments.keep_trees {
        Some(directory) => WorkTrees::kept(directory),
        None => WorkTrees::temporary(),
    };
    let trees = trees.map_err(anyhow::Error::msg)?;
    experiment.compare_trees(Trees {
        directory: trees.directory().display().to_string(),
        commits: versions.each_ref().map(|version| version.hash.clone()),
    })?;
    let [base, head] = versions.each_ref().map(Version::short);
    experiment.title = format!("{head} against {base}");
    experiment.check().map_err(Failure::Usage)?;
    experiment.check_metric().map_err(Failure::Usage)?;
    toll_driver::check(&asked, &[&experiment])?;
    if !arguments.dry_run {
        arguments.results.check_files(1, &experiment)?;
        let interrupt = listen()?;
        for (side, version) in SIDES.iter().zip(&versions) {
            arguments.prepare(&repository, version, side, &trees, &interrupt)?;
            if let Some(signal) = interrupt.signal() {
                return Ok(exit_code_of(signal));
            }
        }
    }
    if arguments.keep_trees.is_none() {
        asked.how_to_go_on = Some(
            "the same command starts again from the beginning; with --keep-trees, `toll run \
             --resume` continues",
        );
    }
    toll_driver::run_all(&asked, store, vec![experiment], lock)
}

/// Reads the commands or the file to measure.
fn select(asked: &RunArguments) -> anyhow::Result<Experiment> {
    if asked.new.items.is_empty() {
        bail!(Failure::Usage(
            "cannot compare: name a command, such as '{tree}/prog input', or an experiment file"
                .into()
        ));
    }
    let mut experiments = toll_driver::select(asked)?;
    match (experiments.pop(), experiments.is_empty()) {
        (Some(experiment), true) => Ok(experiment),
        _ => bail!(Failure::Usage(
            "cannot compare several files at once: one error budget covers all comparisons; \
             put the commands into one file"
                .into()
        )),
    }
}

/// Prints the last lines of the build in a directory.
pub fn tell_last_of_build(directory: &Path) {
    let tail = last_of_build(directory, LINES_SHOWN);
    let lines = tail.iter();
    lines.for_each(|line| output::note(&format!("  {line}")));
}

impl CiArguments {
    /// Returns the run that compares the commits.
    fn asked(&self) -> RunArguments {
        let mut options = self.options.clone();
        // The levels are replaced once the directories exist.
        options.levels.push(LevelOverride {
            name: TREE.into(),
            levels: SIDES.map(Level::new).into(),
            is_size: false,
        });
        let mut gate = self.gate.clone();
        gate.or_regression(REGRESSION_LIMIT);
        RunArguments {
            limits: self.limits.clone(),
            new: NewRun {
                items: self.items.clone(),
                options,
                dry_run: self.dry_run,
                ..NewRun::default()
            },
            explaining: self.explaining.clone(),
            results: self.results.clone(),
            directories: self.directories.clone(),
            gate,
            ..RunArguments::default()
        }
    }

    /// Finds the base commit and the head commit.
    fn versions(&self, repository: &Repository) -> Result<[Version; 2], String> {
        let head = repository.find(self.head.as_deref().unwrap_or("HEAD"))?;
        if self.head.is_none()
            && let changed = repository.changed_files()?
            && let Some(first) = changed.first()
        {
            return Err(format!(
                "cannot compare HEAD: the work tree differs from it in {} ({first}); commit or stash \
                 the changes, or ignore them with --head HEAD",
                plural(changed.len(), "file")
            ));
        }
        let base = match &self.base {
            Some(name) => repository.find(name)?,
            None => repository.merge_base(&head)?,
        };
        if base == head {
            Err(format!(
                "cannot compare {} with itself; name another commit with --base or --head",
                head.short()
            ))
        } else {
            Ok([base, head])
        }
    }

    /// Checks out a commit and builds it.
    fn prepare(
        &self,
        repository: &Repository,
        version: &Version,
        side: &str,
        trees: &WorkTrees,
        interrupt: &Interrupt,
    ) -> anyhow::Result<()> {
        let directory = trees.directory().join(side);
        let commit = format!("{} {}", version.short(), version.subject);
        if !self.results.quiet {
            output::note(&format!("{side}: {commit}"));
        }
        check_out(repository.directory(), &version.hash, &directory).map_err(anyhow::Error::msg)?;
        if self.submodules {
            let laid_out = check_out_submodules(repository.directory(), &directory);
            laid_out.map_err(anyhow::Error::msg)?;
        }
        let Some(command) = &self.build else {
            return Ok(());
        };
        let is_interrupted = || interrupt.signal().is_some();
        match run_build(command, &directory, &is_interrupted) {
            Err(BuildFailure::OfVersion(why)) => {
                tell_last_of_build(&directory);
                Err(anyhow!(
                    "cannot build {side} ({commit}) with {command}: {why}; the lines above are \
                     the last of its output"
                ))
            }
            Err(BuildFailure::Other(_)) if is_interrupted() => Ok(()),
            Err(BuildFailure::Other(why)) => Err(anyhow!(why)),
            Ok(()) => Ok(()),
        }
    }
}
