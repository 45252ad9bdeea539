//! Errors of a source.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Error {
    /// A Linux error number, such as `libc::ENOENT`.
    Errno(i32),
    /// The connection to the source is lost. It is unknown whether the call had an
    /// effect. The source reconnects at the next call.
    Lost,
}

impl Error {
    /// Returns the error number for the program that uses the file system. It is `EIO`
    /// for a lost connection.
    pub fn errno(self) -> i32 {
        match self {
            Self::Errno(number) => number,
            Self::Lost => libc::EIO,
        }
    }

    pub fn is(self, errno: i32) -> bool {
        self == Self::Errno(errno)
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::Errno(error.raw_os_error().unwrap_or(libc::EIO))
    }
}

impl From<rustix::io::Errno> for Error {
    fn from(error: rustix::io::Errno) -> Self {
        Self::Errno(error.raw_os_error())
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Errno(number) => std::io::Error::from_raw_os_error(*number).fmt(out),
            Self::Lost => out.write_str("the connection to the source is lost"),
        }
    }
}

impl std::error::Error for Error {}

pub type Result<T, E = Error> = std::result::Result<T, E>;
