//! Exit statuses of failed commands.

use std::process::ExitCode;

use crate::environment::kernel::BuildError;
use crate::spec::SpecError;
use crate::trial::SessionError;

/// An error with an exit status of its own. All others end with 1.
#[derive(Debug)]
pub enum Failure {
    /// The command line or an experiment file is wrong.
    Usage(String),
    /// What came out meets a condition of `--fail-on`.
    Judged(String),
    /// Something that is needed is not there.
    Prerequisite(String),
    /// A signal came before there was a result; its number.
    Interrupted(i32),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Usage(message) | Self::Judged(message) | Self::Prerequisite(message) => {
                f.write_str(message)
            }
            Self::Interrupted(_) => f.write_str("interrupted before there was a result"),
        }
    }
}

impl std::error::Error for Failure {}

/// The exit status of an error.
pub(super) fn exit_code(error: &anyhow::Error) -> ExitCode {
    ExitCode::from(match error.downcast_ref() {
        Some(Failure::Usage(_)) => 2,
        Some(Failure::Judged(_)) => 3,
        Some(Failure::Prerequisite(_)) => 5,
        Some(Failure::Interrupted(signal)) => u8::try_from(128 + signal).unwrap_or(1),
        None if error.is::<SpecError>() => 2,
        None if is_prerequisite(error) => 5,
        None => 1,
    })
}

/// The signal that came before anything was measured.
pub(super) fn signal(error: &anyhow::Error) -> Option<i32> {
    match error.downcast_ref() {
        Some(Failure::Interrupted(signal)) => Some(*signal),
        _ => None,
    }
}

/// Whether something that is needed is not there.
pub(super) fn is_prerequisite(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(Failure::Prerequisite(_)))
        || matches!(error.downcast_ref(), Some(SessionError::NothingRuns(_)))
        || matches!(error.downcast_ref(), Some(BuildError::Prerequisite(_)))
}

/// Whether another experiment may run all the same.
pub(super) fn is_of_one_experiment(error: &anyhow::Error) -> bool {
    let of_session = error.downcast_ref();
    is_prerequisite(error)
        || matches!(
            of_session,
            Some(SessionError::EverythingFailed(_) | SessionError::Setup(_))
        )
}
