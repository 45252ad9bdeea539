//! Why a command failed, with the exit status that says so.

use std::process::ExitCode;

use crate::environment::kernel::BuildError;
use crate::report::ReportError;
use crate::spec::SpecError;
use crate::store::StoreError;
use crate::trial::SessionError;

/// Why a command failed.
#[derive(Debug)]
pub enum Failure {
    /// Something went wrong at run time.
    Runtime(String),
    /// The command line or an experiment file is wrong.
    Usage(String),
    /// What came out meets a condition of `--fail-on`.
    Judged(String),
    /// Something that is needed is not there.
    Prerequisite(String),
    /// A signal came before anything was measured; its number.
    Interrupted(i32),
}

impl Failure {
    /// The exit status.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Runtime(_) => 1,
            Self::Usage(_) => 2,
            Self::Judged(_) => 3,
            Self::Prerequisite(_) => 5,
            Self::Interrupted(signal) => u8::try_from(128 + signal).unwrap_or(1),
        })
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Runtime(message)
            | Self::Usage(message)
            | Self::Judged(message)
            | Self::Prerequisite(message) => f.write_str(message),
            Self::Interrupted(_) => f.write_str("interrupted before anything was measured"),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Runtime(error.to_string())
    }
}

impl From<ReportError> for Failure {
    fn from(error: ReportError) -> Self {
        Self::Runtime(error.to_string())
    }
}

impl From<SpecError> for Failure {
    fn from(error: SpecError) -> Self {
        Self::Usage(error.to_string())
    }
}

impl From<SessionError> for Failure {
    fn from(error: SessionError) -> Self {
        match error {
            SessionError::NothingRuns(_) => Self::Prerequisite(error.to_string()),
            _ => Self::Runtime(error.to_string()),
        }
    }
}

impl From<BuildError> for Failure {
    fn from(error: BuildError) -> Self {
        match error {
            BuildError::Prerequisite(message) => Self::Prerequisite(message),
            BuildError::Failed(_) | BuildError::Interrupted => Self::Runtime(error.to_string()),
        }
    }
}
