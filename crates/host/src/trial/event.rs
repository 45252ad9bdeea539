//! The events of a session, and how a session ends.

use crate::claim::Question;
use crate::store::{StoreError, TrialRecord};

/// Events during a run, for its display.
#[derive(Debug)]
pub enum Event<'a> {
    /// A trial is about to begin.
    TrialStarts {
        /// Trials of this block that are done.
        done: usize,
        of: usize,
        label: &'a str,
    },
    /// A guest is booted for the trial that is about to begin.
    GuestBoots,
    TrialEnds(&'a TrialRecord),
    BlockEnds {
        blocks: u32,
    },
    /// The current state of the run's questions.
    Look(&'a [Question]),
    /// The program is about to be stopped, on request.
    Pauses,
    Continues,
    /// Something went wrong that does not end the run.
    Trouble(&'a str),
    /// A treatment is no longer run.
    Skipped {
        label: &'a str,
        reason: &'a str,
    },
}

/// Shows a run's progress.
pub trait Observer {
    /// Receives an event.
    fn notice(&mut self, event: &Event<'_>);

    /// Whether the observer shows the state of the claims during a run.
    fn wants_looks(&self) -> bool {
        false
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionEnd {
    /// The run is complete; the text is the reason.
    Complete(String),
    /// A signal ended the session; the run can be resumed.
    Interrupted(i32),
}

/// Why a session could not continue.
#[derive(Debug)]
pub enum SessionError {
    Store(StoreError),
    /// No treatment can run here; the text is the first reason.
    NothingRuns(String),
    /// Trials ran, and every treatment failed; the text is the last error.
    EverythingFailed(String),
    /// The work directory has changed, or is full.
    WorkDirectory(String),
    /// A set-up command failed.
    Setup(String),
    /// A clean-up command failed; what was measured is kept.
    Cleanup(String),
}

impl From<StoreError> for SessionError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl std::fmt::Display for SessionError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Store(error) => error.fmt(f),
            Self::NothingRuns(reason) => {
                write!(
                    f,
                    "cannot measure anything: no treatment can run here: {reason}"
                )
            }
            Self::EverythingFailed(message) => {
                write!(f, "cannot continue: every treatment failed: {message}")
            }
            Self::WorkDirectory(why) => write!(
                f,
                "cannot continue: {why}; all earlier trials are kept; fix this, and continue with \
                 `toll run --resume`"
            ),
            Self::Setup(message) => write!(f, "cannot set up the experiment: {message}"),
            Self::Cleanup(message) => {
                write!(
                    f,
                    "cannot clean up after the experiment: {message}; clean up by hand"
                )
            }
        }
    }
}

impl std::error::Error for SessionError {}
