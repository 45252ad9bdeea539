//! Exit statuses of failed commands.

use std::process::ExitCode;

use toll_core::spec::SpecError;
use toll_host::environment::kernel::BuildError;
use toll_host::trial::SessionError;
use toll_system::Failure;

/// The exit status of an error.
pub fn exit_code(error: &anyhow::Error) -> ExitCode {
    if error.is::<SpecError>() {
        return ExitCode::from(2);
    }
    if is_prerequisite(error) {
        return ExitCode::from(5);
    }
    toll_system::exit_code(error)
}

/// The signal that interrupted this program before anything was measured; `None` for another error.
pub fn signal(error: &anyhow::Error) -> Option<i32> {
    match error.downcast_ref() {
        Some(Failure::Interrupted(signal)) => Some(*signal),
        _ => None,
    }
}

/// Whether the error is a missing prerequisite.
pub fn is_prerequisite(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(Failure::Prerequisite(_)))
        || matches!(error.downcast_ref(), Some(SessionError::NothingRuns(_)))
        || matches!(error.downcast_ref(), Some(BuildError::Prerequisite(_)))
}

/// Whether the error concerns one experiment, so that another may still run.
pub fn is_of_one_experiment(error: &anyhow::Error) -> bool {
    let of_session = error.downcast_ref();
    is_prerequisite(error)
        || matches!(
            of_session,
            Some(SessionError::EverythingFailed(_) | SessionError::Setup(_))
        )
}
