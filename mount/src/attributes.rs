//! What is told of a file, in plain data.

pub use rustix::time::Timespec;

/// What kind of file a path leads to, by its bits of a mode (`S_IFMT`).
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

/// What tells one file of a source from all others, whatever its names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Identity {
    pub device: u64,
    pub inode: u64,
    /// When it was made, in seconds and nanoseconds: a file system gives the
    /// inode number of a file that is gone to the next. 0 where that is unknown.
    pub birth: (i64, u32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Attributes {
    pub kind: Kind,
    /// Permissions with set-user-id, set-group-id and sticky: `07777` at most.
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    pub size_bytes: u64,
    /// Storage that it takes, in units of 512 bytes.
    pub blocks: u64,
    /// Number of names (hard links), 1 if the source does not know.
    pub links: u32,
    /// Number of the device that a device file stands for, as `makedev` packs
    /// it; else 0.
    pub device_number: u64,
    pub atime: Timespec,
    pub mtime: Timespec,
    /// Time of the last change of anything; `mtime` if the source does not
    /// know.
    pub ctime: Timespec,
    /// What tells it from all other files, if the source can; names with one
    /// identity are hard links to one file.
    pub identity: Option<Identity>,
}
