//! Errors with a special exit status.

use std::process::ExitCode;

/// An error with a special exit status. All other errors end the program with 1.
#[derive(Debug)]
pub enum Failure {
    /// The command line or an experiment file is wrong.
    Usage(String),
    /// The results meet a condition of `--fail-on`.
    Judged(String),
    /// Something required is missing.
    Prerequisite(String),
    /// A signal with this number came before there was a result.
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

impl Failure {
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Usage(_) => 2,
            Self::Judged(_) => 3,
            Self::Prerequisite(_) => 5,
            Self::Interrupted(signal) => u8::try_from(128 + signal).unwrap_or(1),
        })
    }
}

/// The exit status of an error, 1 unless it is a [`Failure`].
pub fn exit_code(error: &anyhow::Error) -> ExitCode {
    let failure = error.downcast_ref::<Failure>();
    failure.map_or(ExitCode::FAILURE, Failure::exit_code)
}

/// The exit status that reports the end of a program by a signal.
pub fn exit_code_of(signal: i32) -> ExitCode {
    Failure::Interrupted(signal).exit_code()
}
