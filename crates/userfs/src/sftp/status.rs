//! What a refusal of the server means. The protocol has eight codes, and
//! OpenSSH's server puts all error numbers into them (`errno_to_portable` in
//! `sftp-server.c`), so what a code means depends on what was asked; where
//! that is not enough, [`super::diagnosis`] asks further.

use super::packet::status;
use crate::source::Error;

/// Why a request was not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    /// There was no answer.
    Lost,
    /// The answer is a status code other than OK.
    Refused(u32),
}

impl From<super::mailbox::Ended> for Failure {
    fn from(_: super::mailbox::Ended) -> Self {
        Self::Lost
    }
}

impl Failure {
    /// The error that a code most often stands for.
    pub fn plain(self) -> Error {
        let Self::Refused(code) = self else {
            return Error::Lost;
        };
        Error::Errno(match code {
            status::NO_SUCH_FILE => libc::ENOENT,
            status::PERMISSION_DENIED => libc::EACCES,
            status::BAD_MESSAGE => libc::EINVAL,
            status::OP_UNSUPPORTED => libc::EOPNOTSUPP,
            // What a server says of connections of its own.
            status::NO_CONNECTION | status::CONNECTION_LOST => return Error::Lost,
            _ => libc::EIO,
        })
    }

    /// Whether the server gave this code.
    pub fn is(self, code: u32) -> bool {
        self == Self::Refused(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_become_the_error_numbers_that_they_most_often_stand_for() {
        for (code, errno) in [
            (status::EOF, libc::EIO),
            (status::NO_SUCH_FILE, libc::ENOENT),
            (status::PERMISSION_DENIED, libc::EACCES),
            (status::FAILURE, libc::EIO),
            (status::BAD_MESSAGE, libc::EINVAL),
            (status::OP_UNSUPPORTED, libc::EOPNOTSUPP),
            (4711, libc::EIO),
        ] {
            assert_eq!(
                Failure::Refused(code).plain(),
                Error::Errno(errno),
                "{code}"
            );
        }
        assert_eq!(
            Failure::Refused(status::CONNECTION_LOST).plain(),
            Error::Lost
        );
        assert_eq!(Failure::Lost.plain(), Error::Lost);
    }
}
