//! The reason why a request failed.

use super::packet::status;
use crate::source::Error;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    Lost,
    Refused(u32),
    /// The request failed with this error number; no further request is needed.
    Errno(i32),
}

pub(super) type Requested<T> = Result<T, Failure>;

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Lost => Self::Lost,
            Error::Errno(errno) => Self::Errno(errno),
        }
    }
}

impl Failure {
    /// Returns the error that a code most often stands for. The protocol has eight
    /// codes, and OpenSSH's server maps all error numbers to them
    /// (`errno_to_portable` in `sftp-server.c`). Where the code is not enough,
    /// [`super::diagnosis`] sends further requests.
    pub fn plain(self) -> Error {
        let code = match self {
            Self::Refused(code) => code,
            Self::Errno(errno) => return Error::Errno(errno),
            Self::Lost => return Error::Lost,
        };
        Error::Errno(match code {
            status::NO_SUCH_FILE => libc::ENOENT,
            status::PERMISSION_DENIED => libc::EACCES,
            status::BAD_MESSAGE => libc::EINVAL,
            status::OP_UNSUPPORTED => libc::EOPNOTSUPP,
            // The server returns this code for connections of its own.
            status::NO_CONNECTION | status::CONNECTION_LOST => return Error::Lost,
            _ => libc::EIO,
        })
    }
}
