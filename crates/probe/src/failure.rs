//! Makes the failures that a response carries.

use std::fmt::Display;
use std::io;
use std::path::Path;

use toll_wire::{Failure, FailureKind};

/// Returns the failure of something that the kernel, file system or device cannot do at all.
pub fn unsupported(message: impl Into<String>) -> Failure {
    with_kind(FailureKind::Unsupported, message)
}

/// Returns the failure of work that went wrong.
pub fn failed(message: impl Into<String>) -> Failure {
    with_kind(FailureKind::Failed, message)
}

/// Returns the failure of a measurement that could not be set up or read.
pub fn instrument(message: impl Into<String>) -> Failure {
    with_kind(FailureKind::Instrument, message)
}

fn with_kind(kind: FailureKind, message: impl Into<String>) -> Failure {
    let message = message.into();
    Failure { kind, message }
}

/// Turns errors of calls into failures. A message ends with the advice that the caller
/// gives, or else with the result of [`advice`].
pub trait OrFail<T>: Sized {
    fn or_fail(
        self,
        kind: FailureKind,
        action: impl Display,
        advice: Option<&str>,
    ) -> Result<T, Failure>;

    #[inline]
    fn failed_to(self, action: impl Display) -> Result<T, Failure> {
        self.or_fail(FailureKind::Failed, action, None)
    }

    /// Like [`Self::failed_to`], for an action on the file at a path.
    fn failed_with(self, verb: &str, path: impl AsRef<Path>) -> Result<T, Failure> {
        self.failed_to(format_args!("{verb} {}", path.as_ref().display()))
    }

    fn failed_by(self, action: impl Display, advice: &str) -> Result<T, Failure> {
        self.or_fail(FailureKind::Failed, action, Some(advice))
    }

    fn instrument_to(self, action: impl Display) -> Result<T, Failure> {
        self.or_fail(FailureKind::Instrument, action, None)
    }

    fn instrument_by(self, action: impl Display, advice: &str) -> Result<T, Failure> {
        self.or_fail(FailureKind::Instrument, action, Some(advice))
    }

    fn unsupported_by(self, action: impl Display, advice: &str) -> Result<T, Failure> {
        self.or_fail(FailureKind::Unsupported, action, Some(advice))
    }
}

impl<T, E: Into<io::Error>> OrFail<T> for Result<T, E> {
    #[inline]
    fn or_fail(
        self,
        kind: FailureKind,
        action: impl Display,
        advice_given: Option<&str>,
    ) -> Result<T, Failure> {
        self.map_err(|error| {
            let error = error.into();
            let advice = advice_given.unwrap_or_else(|| advice(&error));
            with_kind(kind, cannot(&action.to_string(), &error, advice))
        })
    }
}

/// Returns the failure of an action, with the advice of [`advice`] for the error.
pub fn failed_to(action: &str, error: &io::Error) -> Failure {
    failed(cannot(action, error, advice(error)))
}

pub fn instrument_to(action: &str, error: &io::Error) -> Failure {
    instrument(cannot(action, error, advice(error)))
}

pub fn unsupported_by(action: &str, error: &io::Error, advice: &str) -> Failure {
    unsupported(cannot(action, error, advice))
}

/// Formats a message in the form that all messages have: action, reason and advice.
pub fn cannot(action: &str, error: &io::Error, advice: &str) -> String {
    format!("cannot {action}: {}; {advice}", reason(error))
}

/// Returns the system's text for an error, without the "(os error N)" that Rust adds.
pub fn text(error: &io::Error) -> String {
    let mut text = error.to_string();
    if let Some(end) = text.find(" (os error ") {
        text.truncate(end);
    }
    text
}

/// Returns the system's text for an error with a lower-case first letter, to follow a colon.
pub fn reason(error: &io::Error) -> String {
    let text = text(error);
    let mut characters = text.chars();
    match characters.next() {
        Some(first) => first.to_lowercase().chain(characters).collect(),
        None => text,
    }
}

/// Whether an error means that no network interface serves an address.
pub fn is_without_network(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::ENETUNREACH | libc::ENETDOWN | libc::EADDRNOTAVAIL | libc::EAFNOSUPPORT)
    )
}

/// Returns what a user can do about an error of a data-moving call.
pub fn advice(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::ENOSPC | libc::EDQUOT) => "free space there or lower the size",
        Some(libc::EACCES | libc::EPERM | libc::EROFS) => "check the permissions",
        Some(libc::ENOENT) => "check the path",
        Some(libc::ECHILD) => "do not ignore SIGCHLD",
        Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM) => "raise the limit or free resources",
        _ => "see the kernel log for more",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_a_lower_case_fragment() {
        let error = io::Error::from_raw_os_error(libc::ENOENT);
        assert_eq!(reason(&error), "no such file or directory");
        assert_eq!(reason(&io::Error::other("")), "");
        assert_eq!(reason(&io::Error::other("Été")), "été");
    }
}
