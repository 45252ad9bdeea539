//! File attributes as plain data.

pub use rustix::time::Timespec;

/// File type. The discriminants are the `S_IFMT` bits of a mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u32)]
pub enum Kind {
    #[default]
    File = libc::S_IFREG,
    Directory = libc::S_IFDIR,
    Symlink = libc::S_IFLNK,
    Pipe = libc::S_IFIFO,
    Socket = libc::S_IFSOCK,
    CharacterDevice = libc::S_IFCHR,
    BlockDevice = libc::S_IFBLK,
}

impl Kind {
    pub fn of_mode(mode: u32) -> Option<Self> {
        Some(match mode & libc::S_IFMT {
            libc::S_IFREG => Self::File,
            libc::S_IFDIR => Self::Directory,
            libc::S_IFLNK => Self::Symlink,
            libc::S_IFIFO => Self::Pipe,
            libc::S_IFSOCK => Self::Socket,
            libc::S_IFCHR => Self::CharacterDevice,
            libc::S_IFBLK => Self::BlockDevice,
            _ => return None,
        })
    }
}

/// Identifies a file of a source independently of its names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Identity {
    pub device: u64,
    pub inode: u64,
    /// Creation time in seconds and nanoseconds, 0 if unknown. It is part of the
    /// identity because file systems reuse the inode numbers of deleted files.
    pub birth: (i64, u32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Attributes {
    pub kind: Kind,
    /// Permissions, including set-user-id, set-group-id and sticky: `07777` at most.
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    pub size_bytes: u64,
    /// Allocated storage, in units of 512 bytes.
    pub blocks: u64,
    /// Number of names (hard links); 1 if the source does not know.
    pub links: u32,
    /// Device number of a device file, packed as by `makedev`; 0 for other files.
    pub device_number: u64,
    pub atime: Timespec,
    pub mtime: Timespec,
    /// Time of the last change of content or attributes; `mtime` if the source does
    /// not know.
    pub ctime: Timespec,
    /// Identity of the file, if the source has one. Names with the same identity
    /// are hard links to one file.
    pub identity: Option<Identity>,
}
