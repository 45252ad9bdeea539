//! The options of `toll grade`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use toll_core::spec::Experiment;
use toll_core::spec::quantity::parse_duration;
use toll_driver::{Profile, WorkDirectories, named};
use toll_system::Failure;

const NOTES: &str = "\
Examples:
  toll export last --json ada.json                     what a student hands in
  toll grade ada.json                                  compare with a stored run
  toll grade --experiment lab.toml --measure ada.json  measure your copy here
  toll grade --experiment lab.toml *.json              a line each, then details

Programs of a submission are started only by --measure with
--run-foreign-commands.
Exit status: 0 every claim holds, 3 a claim is refuted, data are contradicted or
an experiment is changed, 4 a claim is undecided, 2 a file cannot be graded.";

#[derive(Debug, Args)]
#[command(after_help = NOTES)]
// Only --measure makes files.
#[command(mut_args(|option| match option.get_id().as_str() {
    "work_dir" | "foreign_dir" => option.requires("measure"),
    _ => option,
}))]
pub struct GradeArguments {
    /// Files that `toll export --json` wrote; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    pub(super) files: Vec<PathBuf>,
    /// Run of this machine to compare with: its number, the start of its identity, or
    /// `last` [default: the newest complete run of the same work]
    #[arg(long, value_name = "RUN", conflicts_with = "measure")]
    pub(super) run: Option<String>,
    /// Take the claims and the experiment from this file or built-in experiment, and list how the
    /// submitted experiment differs
    #[arg(long, value_name = "NAME|FILE")]
    pub(super) experiment: Option<String>,
    /// Profile of the experiment that --experiment names [default: the submission's]
    #[arg(long, value_enum, requires = "experiment")]
    profile: Option<Profile>,
    /// First measure each experiment here once, after listing the programs that this starts
    #[arg(long)]
    pub(super) measure: bool,
    /// Let --measure start the programs of a submission; without this option, the
    /// programs are listed, and the file is not graded
    #[arg(long, requires = "measure", conflicts_with = "experiment")]
    pub(super) run_foreign_commands: bool,
    /// Start no new block after this time, for each measured experiment
    #[arg(long, value_name = "TIME", value_parser = parse_duration, requires = "measure")]
    pub(super) time_budget: Option<Duration>,
    #[command(flatten)]
    pub(super) directories: WorkDirectories,
    /// Print one JSON document
    #[arg(long)]
    pub(super) json: bool,
    /// Show no progress
    #[arg(short = 'q', long)]
    pub(super) quiet: bool,
}

impl GradeArguments {
    /// Loads the grader's own copy of a submission's experiment, if one was named.
    pub(super) fn own_experiment(&self, profile: &str) -> anyhow::Result<Option<Experiment>> {
        let Some(name) = &self.experiment else {
            return Ok(None);
        };
        let profile = self.profile.as_ref().map_or(profile, |one| one.name());
        let found = named(name, profile)?.ok_or_else(|| {
            Failure::Usage(format!(
                "cannot take experiment {name}: it is neither a .toml file nor a built-in \
                 experiment; see `toll list`"
            ))
        });
        Ok(Some(found?))
    }
}
