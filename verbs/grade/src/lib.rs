//! `toll grade`: checks submitted runs and judges their claims.

pub mod grading;
mod here;
mod report;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use here::RunsHere;
use toll_core::spec::Experiment;
use toll_core::spec::quantity::parse_duration;
use toll_driver::consent;
use toll_driver::{Profile, WorkDirectories, named};
use toll_host::store::exchange::{DOCUMENT_BYTES_MAX, RunDocument};
use toll_system::{Failure, output};

use crate::grading::model::{GradeReport, GradeResult, GradedFile};
use crate::grading::{Submission, grade};

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
pub struct GradeArguments {
    /// Files that `toll export --json` wrote; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Run of this machine to compare with: its number, the start of its identity, or
    /// `last` [default: the newest complete run of the same work]
    #[arg(long, value_name = "RUN", conflicts_with = "measure")]
    run: Option<String>,
    /// Take the claims and the experiment from this file or built-in experiment, and list
    /// how the submitted one differs
    #[arg(long, value_name = "NAME|FILE")]
    experiment: Option<String>,
    /// Profile of that experiment [default: the submission's]
    #[arg(long, value_enum, requires = "experiment")]
    profile: Option<Profile>,
    /// First measure each experiment here once, after listing what that starts
    #[arg(long)]
    measure: bool,
    /// Let --measure start the programs of a submission; without this option they are
    /// listed, and the file is not graded
    #[arg(long, requires = "measure", conflicts_with = "experiment")]
    run_foreign_commands: bool,
    /// Start no new block after this time, for each measured experiment
    #[arg(long, value_name = "TIME", value_parser = parse_duration, requires = "measure")]
    time_budget: Option<Duration>,
    #[command(flatten)]
    directories: WorkDirectories,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    /// Show no progress
    #[arg(short = 'q', long)]
    quiet: bool,
}

impl GradeArguments {
    /// Loads the grader's own copy of a submission's experiment, if one was named.
    fn own_experiment(&self, profile: &str) -> anyhow::Result<Option<Experiment>> {
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

pub fn run(arguments: &GradeArguments, store: &Path) -> anyhow::Result<ExitCode> {
    let mut runs = RunsHere::new(arguments, store)?;
    let mut files = Vec::new();
    for path in &arguments.files {
        let file = path.display().to_string();
        let graded = match read(path) {
            Ok(submission) => grade_file(file, submission, arguments, &mut runs)?,
            // A single file has no overview: the error says everything.
            Err(failure) if arguments.files.len() == 1 => return Err(failure),
            Err(failure) => ungraded(file, failure.to_string()),
        };
        files.push(graded);
    }
    let report = GradeReport { files };
    if arguments.json {
        output::json(&report)?
    } else {
        output::result(&report::of_report(&report, output::style()))?
    }
    Ok(exit_code(&report))
}

fn read(path: &Path) -> anyhow::Result<Submission> {
    let bytes = output::read_file(path, DOCUMENT_BYTES_MAX)?;
    let read = RunDocument::parse_with_analysis(&String::from_utf8_lossy(&bytes));
    let (stored, concluded) =
        read.map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))?;
    Ok(Submission { stored, concluded })
}

fn grade_file(
    file: String,
    submission: Submission,
    arguments: &GradeArguments,
    runs: &mut RunsHere,
) -> anyhow::Result<GradedFile> {
    let own = arguments.own_experiment(&submission.stored.experiment.profile)?;
    // Only the submission's own experiment is untrusted; the grader's copy is not.
    let is_asked = arguments.measure && arguments.experiment.is_none();
    let is_allowed = !is_asked || arguments.run_foreign_commands;
    let submitted = &submission.stored.experiment;
    let remedy = "name your own copy with --experiment";
    let graded = match consent::ask(submitted, &file, is_allowed, remedy) {
        Ok(()) => {
            let here = runs.find(&submission.stored, own.as_ref(), &file)?;
            grade(submission, own.as_ref(), here, env!("CARGO_PKG_VERSION"))
        }
        Err(why) => Err(why),
    };
    Ok(match graded {
        Err(why) if arguments.files.len() == 1 => {
            return Err(Failure::Usage(format!("cannot grade {file}: {why}")).into());
        }
        Err(why) => ungraded(file, why),
        Ok(grade) => GradedFile {
            file,
            result: grade.result(),
            reason: grade.sentence(),
            grade: Some(grade),
        },
    })
}

fn ungraded(file: String, reason: String) -> GradedFile {
    GradedFile {
        file,
        result: GradeResult::Ungraded,
        reason,
        grade: None,
    }
}

/// Results that fail a submission.
const FAILED: [GradeResult; 3] = [
    GradeResult::Refuted,
    GradeResult::Changed,
    GradeResult::Contradicted,
];

/// Exit status for the worst result of all files.
fn exit_code(report: &GradeReport) -> ExitCode {
    let has = |wanted: GradeResult| report.files.iter().any(|file| file.result == wanted);
    ExitCode::from(match () {
        () if FAILED.into_iter().any(has) => 3,
        () if has(GradeResult::Ungraded) => 2,
        () if has(GradeResult::Undecided) => 4,
        () => 0,
    })
}
