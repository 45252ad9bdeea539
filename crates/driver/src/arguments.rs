//! The options of `toll run`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::bail;
use clap::{Args, ValueEnum};
use toll_core::spec::quantity::{parse_duration, parse_share};
use toll_core::spec::{ComparisonGoal, Experiment, LevelOverride, parse_override};
use toll_host::trial::TimeLimit;
use toll_system::{Failure, kept_files, output};
use toll_wire::COUNTERS;

use crate::baseline::{BaselineArguments, parse_name};
use crate::exports::{RunExports, Schema};
use crate::gate::{GateArguments, why_no_ratio};
use crate::progress::Purpose;

/// How much time to spend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Profile {
    /// Minutes: fewer levels, small files, wide intervals
    Quick,
    /// An hour or less: the levels that matter
    Standard,
    /// The published levels, and more
    Full,
}

impl Profile {
    /// The profile's name in experiment files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Standard => "standard",
            Self::Full => "full",
        }
    }
}

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

/// Values of variables by name.
pub type Variables = BTreeMap<String, String>;

/// Parses variables with their values; the last value of a name counts.
fn parse_variables(text: &str) -> Result<Variables, String> {
    let words = shlex::split(text).ok_or("a quote or escape has no end")?;
    let variable = |word: String| match word.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(format!("expected NAME=VALUE, found {word}")),
    };
    words.into_iter().map(variable).collect()
}

#[derive(Debug, Clone, Args)]
pub struct RunArguments {
    /// Built-in experiments by name, experiment files (*.toml), or commands to
    /// compare; without any, all built-in experiments
    #[arg(value_name = "NAME|FILE|COMMAND")]
    pub items: Vec<String>,
    /// How much time to spend
    #[arg(long, value_enum, default_value = "standard")]
    pub profile: Profile,
    /// Time after which no new block begins, for all experiments together
    /// (90s, 5min, 2h); without it, commands are compared for 3 s each
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub time_budget: Option<Duration>,
    /// Time after which a single trial is stopped and counted as failed, instead
    /// of the experiment's own limit (60s; 10min in a guest)
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub trial_timeout: Option<Duration>,
    /// Relative half-width at which an interval is narrow enough (2%)
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    pub target_ci: Option<f64>,
    /// Seed of the order of trials [default: random]
    #[arg(long)]
    pub seed: Option<u64>,
    /// Continue an unfinished run, by default the last one; with other limits, also a complete run
    #[arg(long, value_name = "RUN", num_args = 0..=1, default_missing_value = "",
          conflicts_with_all = ["items", "seed", "dry_run", "levels", "scans", "profile", "warmup",
              "prepare", "conclude", "setup", "cleanup", "names", "reference", "shell", "no_shell",
              "input", "output", "environment", "ignore_failure", "counters", "metric", "guest",
              "build_kernels"])]
    pub resume: Option<String>,
    /// Let --resume start the programs of a run that this user's toll did not begin on
    /// this machine; without this option they are only listed
    #[arg(long, requires = "resume")]
    pub run_foreign_commands: bool,
    /// Show what would run, and what would not and why, but run nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Wait while another run measures on this machine, instead of failing
    #[arg(long)]
    pub wait: bool,
    /// Set the levels of a factor: NAME=LEVEL,LEVEL; fills {NAME} in commands
    #[arg(short = 'L', long = "parameter-list", value_name = "NAME=LEVELS", value_parser = parse_override)]
    pub levels: Vec<LevelOverride>,
    /// Set the levels of a factor to a range: NAME=FROM..TO, followed by *FACTOR,
    /// +STEP or /POINTS
    #[arg(short = 'P', long = "parameter-scan", value_name = "NAME=RANGE", value_parser = parse_override)]
    pub scans: Vec<LevelOverride>,
    /// Run all trials in guests: virtual machines with a kernel made by `toll
    /// kernel build`, booted afresh in every block. Set their properties with -L:
    /// kernel, memory, vcpus, swap, partner, command_line, accelerator
    #[arg(long)]
    pub guest: bool,
    /// Build missing kernels that guests need, each before the first experiment
    /// that needs it
    #[arg(long)]
    pub build_kernels: bool,
    /// Run this many whole blocks first and discard them
    #[arg(short = 'w', long, value_name = "BLOCKS")]
    pub warmup: Option<u32>,
    /// Run exactly this many blocks, unless the time budget ends first
    #[arg(short = 'r', long, value_name = "BLOCKS", conflicts_with_all = ["min_runs", "max_runs"])]
    pub runs: Option<u32>,
    /// Run at least this many blocks
    #[arg(short = 'm', long, value_name = "BLOCKS")]
    pub min_runs: Option<u32>,
    /// Run at most this many blocks
    #[arg(short = 'M', long, value_name = "BLOCKS")]
    pub max_runs: Option<u32>,
    /// Command to run before every timed run of a command; given several times,
    /// the first is for the first command, and so on
    #[arg(short = 'p', long, value_name = "COMMAND")]
    pub prepare: Vec<String>,
    /// Command to run after every timed run of a command; may be given several times, as --prepare
    #[arg(short = 'C', long, value_name = "COMMAND")]
    pub conclude: Vec<String>,
    /// Command to run once before the first trial of each treatment
    #[arg(short = 's', long, value_name = "COMMAND")]
    pub setup: Option<String>,
    /// Command to run once after the last trial of each treatment
    #[arg(short = 'c', long, value_name = "COMMAND")]
    pub cleanup: Option<String>,
    /// Name for a command, in order
    #[arg(short = 'n', long = "command-name", value_name = "NAME")]
    pub names: Vec<String>,
    /// Command with which the others are compared [default: the first]
    #[arg(long, value_name = "COMMAND")]
    pub reference: Option<String>,
    /// Shell for commands, or `none`; by default sh, but only for a command that
    /// needs one
    #[arg(short = 'S', long, value_name = "SHELL")]
    pub shell: Option<String>,
    /// The same as --shell=none
    #[arg(short = 'N', conflicts_with = "shell")]
    pub no_shell: bool,
    /// Accept a run with a non-zero exit status as a measurement
    #[arg(short = 'i', long)]
    pub ignore_failure: bool,
    /// Source of the standard input of commands: null, file or pipe (SIZE random bytes
    /// with -L size=SIZE), or the name of a file
    #[arg(long, value_name = "WHERE")]
    pub input: Option<String>,
    /// Destination of the standard output of commands: null, pipe, pipe-spliced, socket,
    /// file (a new one each time), or the name of a file; given several times, the
    /// first is for the first command, and so on
    #[arg(long, value_name = "WHERE")]
    pub output: Vec<String>,
    /// Variables for commands and for the commands that run around them: NAME=VALUE, separated by
    /// spaces and quoted as in a shell; given several times, the first is for the first command,
    /// and so on
    #[arg(long = "env", value_name = "VARIABLES", value_parser = parse_variables)]
    pub environment: Vec<Variables>,
    /// The metric to compare and judge by, such as user_ns, max_rss_bytes or minor_faults; may be
    /// given several times, with the main metric first [default: the experiment's; duration_ns for
    /// commands]
    #[arg(
        long,
        visible_alias = "metrics",
        value_name = "NAME",
        value_delimiter = ','
    )]
    pub metric: Vec<String>,
    #[arg(
        long = "counter",
        value_name = "EVENT",
        value_delimiter = ',',
        help = format!("Count these events too: {}, or one by number: raw:0x01c2", COUNTERS.join(", "))
    )]
    pub counters: Vec<String>,
    /// After the run, explain the largest difference between two treatments: profile both in
    /// separate trials, and split the difference into functions and waits
    #[arg(long, conflicts_with_all = ["resume", "dry_run", "guest"])]
    pub why: bool,
    #[command(flatten)]
    pub exports: RunExports,
    /// Schema of hyperfine's JSON: 2 for hyperfine 2.0, 1 for earlier versions
    #[arg(
        long,
        value_name = "N",
        default_value = "2",
        requires = "export-hyperfine"
    )]
    pub hyperfine_schema: Schema,
    /// Write the report to this file [default: a file in
    /// $XDG_DATA_HOME/toll/reports]
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write no report
    #[arg(long, conflicts_with = "html")]
    pub no_html: bool,
    /// Write each plot as SVG into this directory
    #[arg(long, value_name = "DIR")]
    pub plots: Option<PathBuf>,
    #[command(flatten)]
    pub directories: WorkDirectories,
    #[command(flatten)]
    pub against: BaselineArguments,
    /// Save the runs under this name, for comparison with later runs of their experiments; only
    /// complete runs that pass --fail-on are saved
    #[arg(long, value_name = "NAME", value_parser = parse_name, conflicts_with = "dry_run")]
    pub save_baseline: Option<String>,
    #[command(flatten)]
    pub gate: GateArguments,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Show no progress
    #[arg(short = 'q', long)]
    pub quiet: bool,
    /// Remedy in the message about an interrupted run.
    #[arg(skip = "`toll run --resume` continues it")]
    pub how_to_go_on: &'static str,
}

impl RunArguments {
    /// Checks conditions that the parser cannot.
    pub fn check(&self) -> anyhow::Result<()> {
        let (min, max) = (
            self.min_runs.unwrap_or(1),
            self.max_runs.unwrap_or(u32::MAX),
        );
        if self.runs == Some(0) || min == 0 || max < min {
            bail!(Failure::Usage(
                "cannot run: --runs and --min-runs must be at least 1, and --max-runs at least \
                 --min-runs"
                    .into(),
            ));
        }
        Ok(())
    }

    /// Refuses files of a single run for several experiments, and files that cannot be written.
    /// Also refuses a JUnit report without claims or comparisons.
    pub fn check_files(&self, runs: usize, experiment: &Experiment) -> anyhow::Result<()> {
        if self.exports.junit.is_some()
            && experiment.claim_family().next().is_none()
            && let Some(reason) = why_no_ratio(experiment)
        {
            bail!(Failure::Usage(format!(
                "cannot write JUnit's XML of {}: it has no claims, and {reason}",
                experiment.name
            )));
        }
        output::check_standard_output()?;
        let files = self.exports.files();
        let named = || files.iter().copied().chain(self.html.as_deref());
        kept_files::check_distinct(named())?;
        for path in named() {
            output::check_file(path)?;
        }
        self.plots
            .as_deref()
            .map_or(Ok(()), output::check_directory)?;
        if runs > 1 && !files.is_empty() {
            bail!(Failure::Usage(
                "cannot export several experiments to one file: name one experiment, or use `toll \
                 export` afterwards"
                    .into(),
            ));
        }
        Ok(())
    }

    /// Decides how to show the progress of run `number` of `of`.
    pub fn purpose(&self, number: usize, of: usize) -> Purpose {
        if self.quiet {
            Purpose::Quiet
        } else {
            Purpose::Shown { number, of }
        }
    }

    /// How strictly experiments keep their time budgets. They keep them strictly if an option sets
    /// limits. One of several experiments ends as soon as it is known to have no time for a
    /// verdict.
    pub fn time_limit(&self, experiments: usize) -> TimeLimit {
        match self.sets_limits() {
            true => TimeLimit::Fixed,
            false if experiments > 1 => TimeLimit::OrGivenUp,
            false => TimeLimit::Stretched,
        }
    }

    /// All levels that options set, lists first.
    pub fn overrides(&self) -> Vec<LevelOverride> {
        self.levels.iter().chain(&self.scans).cloned().collect()
    }

    /// Whether any option limits the length of a run.
    pub fn sets_limits(&self) -> bool {
        let blocks = [self.runs, self.min_runs, self.max_runs];
        let times = [self.time_budget, self.trial_timeout];
        blocks.iter().any(Option::is_some)
            || times.iter().any(Option::is_some)
            || self.target_ci.is_some()
    }

    /// Applies the options that limit the length of a run to an experiment.
    pub fn apply_limits(&self, experiment: &mut Experiment) {
        // With a baseline, only the comparison with the earlier run counts.
        if let (Some(limit), None) = (self.gate.regression_limit(), &self.against.baseline) {
            experiment.decide_against(limit);
        }
        let run = &mut experiment.run;
        if let Some(blocks) = self.runs {
            (run.min_blocks, run.max_blocks) = (blocks, blocks);
        }
        if let Some(blocks) = self.max_runs {
            run.max_blocks = blocks;
            run.min_blocks = run.min_blocks.min(blocks);
        }
        if let Some(blocks) = self.min_runs {
            run.min_blocks = blocks;
            run.max_blocks = run.max_blocks.max(blocks);
        }
        if let Some(share) = self.target_ci {
            run.target_ci = share;
            run.comparison_goal = ComparisonGoal::Precision;
        }
        if let Some(budget) = self.time_budget {
            run.time_budget_s = budget.as_secs_f64();
            run.comparison_goal = ComparisonGoal::Decision;
        }
        if let Some(limit) = self.trial_timeout {
            run.trial_timeout_s = Some(limit.as_secs_f64());
        }
    }

    /// Applies the options about measuring to an experiment.
    pub fn apply_settings(&self, experiment: &mut Experiment) {
        self.apply_limits(experiment);
        let run = &mut experiment.run;
        if let Some(blocks) = self.warmup {
            run.warmup_blocks = blocks;
        }
        experiment.compare_in(&self.metric);
        for counter in &self.counters {
            if !experiment.counters.contains(counter) {
                experiment.counters.push(counter.clone());
            }
        }
    }
}
