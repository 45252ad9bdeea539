//! The options that describe what a new run measures, for all verbs that make runs.

use std::collections::BTreeMap;

use clap::{Args, ValueEnum};
use toll_core::spec::{Experiment, LevelOverride, parse_override};
use toll_wire::COUNTERS;

/// How much time to spend.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Profile {
    /// Minutes: fewer levels, small files, wide intervals
    Quick,
    /// An hour or less: the levels that matter
    #[default]
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

/// What a new run measures, and how. `toll ci` and the jobs of `toll fleet` take these options too.
#[derive(Debug, Clone, Default, Args)]
pub struct RunOptions {
    /// How much time to spend
    #[arg(long, value_enum, default_value_t)]
    pub profile: Profile,
    /// Seed of the order of trials [default: random]
    #[arg(long)]
    pub seed: Option<u64>,
    /// Set the levels of a factor: NAME=LEVEL,LEVEL; fills {NAME} in commands
    #[arg(short = 'L', long = "parameter-list", value_name = "NAME=LEVELS", value_parser = parse_override)]
    pub levels: Vec<LevelOverride>,
    /// Set the levels of a factor to a range: NAME=FROM..TO, followed by *FACTOR,
    /// +STEP or /POINTS
    #[arg(short = 'P', long = "parameter-scan", value_name = "NAME=RANGE", value_parser = parse_override)]
    pub scans: Vec<LevelOverride>,
    /// Run this many whole blocks first and discard them
    #[arg(short = 'w', long, value_name = "BLOCKS")]
    pub warmup: Option<u32>,
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
}

impl RunOptions {
    /// All levels that options set, lists first.
    pub fn overrides(&self) -> Vec<LevelOverride> {
        self.levels.iter().chain(&self.scans).cloned().collect()
    }

    /// Applies the options about measuring to an experiment.
    pub fn apply(&self, experiment: &mut Experiment) {
        if let Some(blocks) = self.warmup {
            experiment.run.warmup_blocks = blocks;
        }
        experiment.compare_in(&self.metric);
        for counter in &self.counters {
            if !experiment.counters.contains(counter) {
                experiment.counters.push(counter.clone());
            }
        }
    }
}
