//! The options of `toll run`.

use std::path::PathBuf;

use clap::{Args, Command, Id};
use toll_core::spec::Experiment;
use toll_host::trial::TimeLimit;

use crate::baseline::BaselineArguments;
use crate::explain_options::ExplainOptions;
use crate::gate::GateArguments;
use crate::limits::Limits;
use crate::result_options::ResultOptions;
use crate::run_options::RunOptions;

/// Directories in which a run makes files.
#[derive(Debug, Clone, Default, Args)]
pub struct WorkDirectories {
    /// Where to make work files [default: $TOLL_WORK_DIR, else
    /// $XDG_CACHE_HOME/toll/work]
    #[arg(long, value_name = "DIR")]
    pub work_dir: Option<PathBuf>,
    /// Where to make files for fs=foreign, on a 9p, virtiofs, NFS, SMB, vboxsf or
    /// FUSE file system [default: the work directory through bindfs]
    #[arg(long, value_name = "DIR")]
    pub foreign_dir: Option<PathBuf>,
}

impl WorkDirectories {
    /// Sets the directory of work files, without a directory on a foreign file system.
    pub fn at(work_dir: Option<PathBuf>) -> Self {
        Self {
            work_dir,
            foreign_dir: None,
        }
    }
}

/// Returns the options of a struct as users type them: `--long` and `-s`.
pub fn spellings_of<T: Args>() -> Vec<String> {
    let command = T::augment_args(Command::default());
    let spellings = command.get_arguments().flat_map(|option| {
        let long = option.get_long_and_visible_aliases().unwrap_or_default();
        let long = long.into_iter().map(|name| format!("--{name}"));
        let short = option.get_short_and_visible_aliases().unwrap_or_default();
        long.chain(short.into_iter().map(|name| format!("-{name}")))
            .collect::<Vec<_>>()
    });
    spellings.collect()
}

/// Returns the names of a struct's options, as conflicts state them.
fn names_of<T: Args>() -> Vec<Id> {
    let command = T::augment_args(Command::default());
    let options = command.get_arguments();
    options.map(|option| option.get_id().clone()).collect()
}

/// Everything that `--resume` takes from the stored run instead.
#[derive(Debug, Clone, Default, Args)]
pub struct NewRun {
    /// Built-in experiments by name, experiment files (*.toml), or commands to
    /// compare; without any, all built-in experiments
    #[arg(value_name = "NAME|FILE|COMMAND")]
    pub items: Vec<String>,
    #[command(flatten)]
    pub options: RunOptions,
    /// Command with which the others are compared [default: the first]
    #[arg(long, value_name = "COMMAND")]
    pub reference: Option<String>,
    #[command(flatten)]
    pub guests: GuestOptions,
    /// Show what would run, and what would not and why, but run nothing
    #[arg(long, conflicts_with = "why")]
    pub dry_run: bool,
}

/// Options for runs in guests.
#[derive(Debug, Clone, Default, Args)]
pub struct GuestOptions {
    /// Run all trials in guests: virtual machines with a kernel made by `toll
    /// kernel build`, booted afresh in every block. Set their properties with -L:
    /// kernel, memory, vcpus, swap, partner, command_line, accelerator
    #[arg(long)]
    pub guest: bool,
    /// Build missing kernels that guests need, each before the first experiment
    /// that needs it
    #[arg(long)]
    pub build_kernels: bool,
}

/// How to continue a run.
#[derive(Debug, Clone, Default, Args)]
pub struct ResumeOptions {
    /// Continue an unfinished run, by default the last one; with other limits, or with --why, also
    /// a complete run
    #[arg(long, value_name = "RUN", num_args = 0..=1, default_missing_value = "",
          conflicts_with_all = names_of::<NewRun>())]
    pub resume: Option<String>,
    /// Let --resume start the programs of a run that this user's toll did not begin on
    /// this machine; without this option they are only listed
    #[arg(long, requires = "resume")]
    pub run_foreign_commands: bool,
}

#[derive(Debug, Clone, Default, Args)]
pub struct RunArguments {
    #[command(flatten)]
    pub limits: Limits,
    #[command(flatten)]
    pub new: NewRun,
    #[command(flatten)]
    pub resuming: ResumeOptions,
    /// Wait while another run measures on this machine, instead of failing
    #[arg(long)]
    pub wait: bool,
    #[command(flatten)]
    pub explaining: ExplainOptions,
    #[command(flatten)]
    pub results: ResultOptions,
    #[command(flatten)]
    pub directories: WorkDirectories,
    #[command(flatten)]
    pub against: BaselineArguments,
    #[command(flatten)]
    pub gate: GateArguments,
    /// Remedy in the message about an interrupted run, if not `toll run --resume`.
    #[arg(skip)]
    pub how_to_go_on: Option<&'static str>,
}

impl RunArguments {
    /// How strictly experiments keep their time budgets. They keep them strictly if an option sets
    /// limits. One of several experiments ends as soon as it is known to have no time for a
    /// verdict.
    pub fn time_limit(&self, experiments: usize) -> TimeLimit {
        if self.limits.is_any_set() {
            TimeLimit::Fixed
        } else if experiments > 1 {
            TimeLimit::OrGivenUp
        } else {
            TimeLimit::Stretched
        }
    }

    /// Applies the options that limit the length of a run to an experiment.
    pub fn apply_limits(&self, experiment: &mut Experiment) {
        // With a baseline, only the comparison with the earlier run counts.
        if let (Some(limit), None) = (self.gate.regression_limit(), &self.against.baseline) {
            experiment.decide_against(limit);
        }
        self.limits.apply(&mut experiment.run);
    }

    /// Applies the options about measuring to an experiment.
    pub fn apply_settings(&self, experiment: &mut Experiment) {
        self.apply_limits(experiment);
        self.new.options.apply(experiment);
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use clap::error::ErrorKind;
    use clap::{Arg, value_parser};

    use super::*;

    /// Options that --resume refuses. All others change how a run is continued or shown.
    const OF_NEW_RUNS: [&str; 23] = [
        "items",
        "profile",
        "seed",
        "levels",
        "scans",
        "warmup",
        "prepare",
        "conclude",
        "setup",
        "cleanup",
        "names",
        "shell",
        "no_shell",
        "ignore_failure",
        "input",
        "output",
        "environment",
        "metric",
        "counters",
        "reference",
        "guest",
        "build_kernels",
        "dry_run",
    ];

    #[test]
    fn a_resumed_run_takes_no_option_of_a_new_run_and_all_others() {
        let command = RunArguments::augment_args(Command::new("run"));
        let any_value = command.clone().mut_args(|option| {
            if option.get_action().takes_values() {
                option.value_parser(value_parser!(OsString))
            } else {
                option
            }
        });
        let is_refused = |option: &&Arg| {
            let long = option.get_long().map(|long| format!("--{long}"));
            let name = long.or(option.get_short().map(|short| format!("-{short}")));
            let value = option.get_action().takes_values().then(|| "x".to_owned());
            let words = ["run", "--resume=1"].map(str::to_owned).into_iter();
            let words = words.chain(name).chain(value);
            let parsed = any_value.clone().try_get_matches_from(words);
            parsed.is_err_and(|error| error.kind() == ErrorKind::ArgumentConflict)
        };
        let others = command.get_arguments();
        let others = others.filter(|option| *option.get_id() != "resume");
        let refused = others.filter(is_refused);
        let refused: Vec<&str> = refused.map(|option| option.get_id().as_str()).collect();
        assert_eq!(refused, OF_NEW_RUNS);
    }
}
