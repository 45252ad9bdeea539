//! Making the failures that a response carries.

use std::io;

use toll_wire::{Failure, FailureKind};

/// The kernel, file system or device cannot do this at all.
pub fn unsupported(message: String) -> Failure {
    Failure {
        kind: FailureKind::Unsupported,
        message,
    }
}

pub fn failed(message: String) -> Failure {
    Failure {
        kind: FailureKind::Failed,
        message,
    }
}

/// The measurement could not be set up or read as it must be.
pub fn instrument(message: String) -> Failure {
    Failure {
        kind: FailureKind::Instrument,
        message,
    }
}

/// The system's text for an error, fit to stand after a colon: it begins in
/// lower case and has no "(os error N)" behind it.
pub fn reason(error: &io::Error) -> String {
    let mut text = error.to_string();
    if let Some(end) = text.find(" (os error ") {
        text.truncate(end);
    }
    let mut characters = text.chars();
    match characters.next() {
        Some(first) => first.to_lowercase().chain(characters).collect(),
        None => text,
    }
}

/// What a reader can do about an error of a data-moving call.
pub fn advice(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::ENOSPC | libc::EDQUOT) => "free space there or lower the size",
        Some(libc::EACCES | libc::EPERM | libc::EROFS) => "check the permissions",
        Some(libc::ENOENT) => "check the path",
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
