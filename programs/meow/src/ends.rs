//! Classifies a file descriptor by the way in which bytes enter or leave it.

use std::os::fd::BorrowedFd;

use rustix::fs::{
    FileType, OFlags, SeekFrom, Stat, fcntl_getfl, fstat, fstatfs, major, minor, seek,
};
use rustix::io::Errno;
use rustix::net::AddressFamily;
use rustix::net::sockopt::socket_domain;
use toll_wire::Sink;

/// Major and minor number of `/dev/null` (Documentation/admin-guide/devices.txt).
const NULL_DEVICE: (u32, u32) = (1, 3);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A regular file or a block device that has bytes and a page cache.
    File,
    /// A regular file to write to whose file system implements copy_file_range(2) by
    /// copying 64 KiB at a time (fs/splice.c). Larger writes are faster there.
    CopiedFile,
    /// A regular file whose size is 0. It may be empty, or the kernel generates its
    /// content on read, as below /proc.
    EmptyFile,
    /// A regular file opened for appending, which splice(2) and
    /// copy_file_range(2) refuse.
    AppendedFile,
    Pipe,
    Socket,
    /// A socket to write to that sends its bytes over a network protocol.
    NetworkSocket,
    Null,
    /// A terminal or another character device.
    Device,
    /// Anything else, such as a directory.
    Other,
}

impl Kind {
    /// Returns the kind in words, with an article.
    pub fn name(self) -> &'static str {
        match self {
            Self::File | Self::CopiedFile => "a file",
            Self::EmptyFile => "a file of unknown size",
            Self::AppendedFile => "a file that is appended to",
            Self::Pipe => "a pipe",
            Self::Socket | Self::NetworkSocket => "a socket",
            Self::Null => "/dev/null",
            Self::Device => "a character device",
            Self::Other => "a special file",
        }
    }
}

impl From<Kind> for Sink {
    /// Converts to the kinds that the probe's methods know. Those only distinguish
    /// sockets from everything else.
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Socket | Kind::NetworkSocket => Self::Socket,
            Kind::Pipe => Self::Pipe,
            Kind::Null => Self::Null,
            _ => Self::File,
        }
    }
}

pub struct End<'a> {
    pub fd: BorrowedFd<'a>,
    pub kind: Kind,
    status: Stat,
}

impl<'a> End<'a> {
    pub fn source(fd: BorrowedFd<'a>) -> Result<Self, Errno> {
        let status = fstat(fd)?;
        let kind = match kind_of(&status) {
            Kind::File if is_regular(&status) && status.st_size == 0 => Kind::EmptyFile,
            kind => kind,
        };
        Ok(Self { fd, kind, status })
    }

    pub fn sink(fd: BorrowedFd<'a>) -> Result<Self, Errno> {
        let status = fstat(fd)?;
        let kind = match kind_of(&status) {
            Kind::File if is_appending(fd) => Kind::AppendedFile,
            Kind::File if only_copies(fd) => Kind::CopiedFile,
            Kind::Socket if !is_local(fd) => Kind::NetworkSocket,
            kind => kind,
        };
        Ok(Self { fd, kind, status })
    }

    /// Returns the size of a regular file in bytes; `None` for anything else.
    pub fn size_bytes(&self) -> Option<u64> {
        is_regular(&self.status).then(|| u64::try_from(self.status.st_size).unwrap_or(0))
    }

    /// Returns a regular file's offset, and how many bytes are left from there.
    pub fn left(&self) -> Option<(u64, u64)> {
        let size_bytes = self.size_bytes()?;
        let position = seek(self.fd, SeekFrom::Current(0)).ok()?;
        Some((position, size_bytes.saturating_sub(position)))
    }

    /// Returns whether copying `source` to this sink would read its own output, and so
    /// go on until the device is full.
    pub fn would_read_its_own_output(&self, source: &End<'_>) -> bool {
        let is_same = (self.status.st_dev, self.status.st_ino)
            == (source.status.st_dev, source.status.st_ino);
        if !is_same || !is_regular(&self.status) {
            return false;
        }
        let Ok(read_from) = seek(source.fd, SeekFrom::Current(0)) else {
            return false;
        };
        if self.kind == Kind::AppendedFile {
            // The source's size was read after the sink's. Earlier operands may have
            // made the file longer in between.
            return Some(read_from) < source.size_bytes();
        }
        seek(self.fd, SeekFrom::Current(0)).is_ok_and(|write_to| read_from < write_to)
    }
}

fn kind_of(status: &Stat) -> Kind {
    match FileType::from_raw_mode(status.st_mode) {
        FileType::RegularFile | FileType::BlockDevice => Kind::File,
        FileType::Fifo => Kind::Pipe,
        FileType::Socket => Kind::Socket,
        FileType::CharacterDevice => {
            if (major(status.st_rdev), minor(status.st_rdev)) == NULL_DEVICE {
                Kind::Null
            } else {
                Kind::Device
            }
        }
        _ => Kind::Other,
    }
}

fn is_regular(status: &Stat) -> bool {
    FileType::from_raw_mode(status.st_mode) == FileType::RegularFile
}

/// Returns whether the file system is ext2, ext3 or ext4. These share no blocks, and
/// allocate more at once if a write is larger. Nothing is assumed about other file
/// systems.
fn only_copies(fd: BorrowedFd<'_>) -> bool {
    fstatfs(fd).is_ok_and(|status| status.f_type == libc::EXT4_SUPER_MAGIC)
}

/// Returns whether both ends of a socket are on this machine, judging by its address
/// family.
fn is_local(fd: BorrowedFd<'_>) -> bool {
    socket_domain(fd).is_ok_and(|family| family == AddressFamily::UNIX)
}

fn is_appending(fd: BorrowedFd<'_>) -> bool {
    fcntl_getfl(fd).is_ok_and(|flags| flags.contains(OFlags::APPEND))
}
