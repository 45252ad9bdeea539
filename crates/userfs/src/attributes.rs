//! What is told of a file, in plain data.

/// A point in time since 1970-01-01 UTC, as `struct timespec` has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time {
    /// Whole seconds, negative before 1970.
    pub seconds: i64,
    /// Nanoseconds after that second, below 1,000,000,000.
    pub nanoseconds: u32,
}

/// What kind of file a path leads to, by its bits of a mode (`S_IFMT`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u32)]
pub enum Kind {
    /// A regular file.
    #[default]
    File = libc::S_IFREG,
    /// A directory.
    Directory = libc::S_IFDIR,
    /// A symbolic link.
    Symlink = libc::S_IFLNK,
    /// A named pipe.
    Pipe = libc::S_IFIFO,
    /// A socket.
    Socket = libc::S_IFSOCK,
    /// A character device.
    CharacterDevice = libc::S_IFCHR,
    /// A block device.
    BlockDevice = libc::S_IFBLK,
}

impl Kind {
    /// The kind of file that the bits of a mode say, if they do.
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
    /// The source's device number.
    pub device: u64,
    /// The source's inode number.
    pub inode: u64,
}

/// What `lstat` tells about a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Attributes {
    /// The kind of file.
    pub kind: Kind,
    /// Permissions with set-user-id, set-group-id and sticky: `07777` at most.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Length in bytes.
    pub size_bytes: u64,
    /// Storage that it takes, in units of 512 bytes.
    pub blocks: u64,
    /// Number of names (hard links), 1 if the source does not know.
    pub links: u32,
    /// Number of the device that a device file stands for, as `makedev` packs
    /// it; else 0.
    pub device_number: u64,
    /// Time of the last access.
    pub atime: Time,
    /// Time of the last change of the content.
    pub mtime: Time,
    /// Time of the last change of anything; `mtime` if the source does not
    /// know.
    pub ctime: Time,
    /// What tells it from all other files, if the source can; names with one
    /// identity are hard links to one file.
    pub identity: Option<Identity>,
}
