//! `toll grade`: checks submitted runs and judges their claims.

mod arguments;
pub mod grading;
mod here;
mod report;

use std::path::Path;
use std::process::ExitCode;

use here::RunsHere;
use toll_driver::consent;
use toll_host::store::exchange::{DOCUMENT_BYTES_MAX, RunDocument};
use toll_system::{Failure, output};

use crate::grading::model::{GradeReport, GradeResult, GradedFile};
use crate::grading::{Submission, grade};

pub use arguments::GradeArguments;

pub fn run(arguments: &GradeArguments, store: &Path) -> anyhow::Result<ExitCode> {
    let mut runs = RunsHere::new(arguments, store)?;
    let mut files = Vec::new();
    for path in &arguments.files {
        let file = path.display().to_string();
        let graded = match read(path) {
            Ok(submission) => grade_file(file, submission, arguments, &mut runs)?,
            // With a single file there is no overview, so the error says everything.
            Err(failure) if arguments.files.len() == 1 => return Err(failure),
            Err(failure) => ungraded(file, failure.to_string()),
        };
        files.push(graded);
    }
    let report = GradeReport { files };
    if arguments.json {
        output::json(&report)?
    } else {
        output::result(&report::of_report(&report))?
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
