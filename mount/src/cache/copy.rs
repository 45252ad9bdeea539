//! The local copy of a file's content. A copy is in memory while there is room, and
//! then in an unnamed file, which vanishes however the program ends. Only a copy that
//! could not be written back gets a name.

use std::fs::{File, Permissions};
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, CWD, MemfdFlags, SeekFrom};

use crate::source::{Content, Error, Result};

/// Limit on the total length of copies in memory. Small copies stay in memory, because
/// creating a file on disk takes many times as long as copying one.
const IN_MEMORY_BYTES_MAX: u64 = 64 << 20;
/// Space that copies leave free on their file system: a twentieth of it, but no more
/// than this.
const FREE_BYTES_MAX: u64 = 1 << 30;

/// Total length of the copies in memory, for all mounts of this process.
static IN_MEMORY_BYTES: AtomicU64 = AtomicU64::new(0);

pub(super) struct Copy {
    file: Arc<File>,
    directory: PathBuf,
    pub is_on_disk: bool,
    /// This copy's share of [`IN_MEMORY_BYTES`].
    in_memory_bytes: u64,
    name: Option<PathBuf>,
}

impl Copy {
    /// Creates an empty copy, which moves to a file in `directory` when it outgrows
    /// memory.
    pub fn new(directory: &Path) -> io::Result<Self> {
        let file = rustix::fs::memfd_create("toll-mount", MemfdFlags::CLOEXEC)?;
        Ok(Self {
            file: Arc::new(file.into()),
            directory: directory.to_path_buf(),
            is_on_disk: false,
            in_memory_bytes: 0,
            name: None,
        })
    }

    /// Makes a copy of content that already has a name.
    pub fn named(directory: &Path, file: File, name: PathBuf) -> Self {
        Self {
            file: Arc::new(file),
            directory: directory.to_path_buf(),
            is_on_disk: true,
            in_memory_bytes: 0,
            name: Some(name),
        }
    }

    pub fn file(&self) -> Arc<File> {
        Arc::clone(&self.file)
    }

    fn move_to_disk(&mut self) -> Result<()> {
        let disk = tempfile::tempfile_in(&self.directory)?;
        disk.set_permissions(Permissions::from_mode(0o600))?;
        copy_data(&self.file, &disk)?;
        self.file = Arc::new(disk);
        self.is_on_disk = true;
        self.give_memory_back(0);
        Ok(())
    }

    /// Reserves memory for this length. Returns whether there was room.
    fn take_memory(&mut self, size_bytes: u64) -> bool {
        let more = size_bytes.saturating_sub(self.in_memory_bytes);
        let taken = IN_MEMORY_BYTES.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |all| {
            all.checked_add(more)
                .filter(|all| *all <= IN_MEMORY_BYTES_MAX)
        });
        self.in_memory_bytes += if taken.is_ok() { more } else { 0 };
        taken.is_ok()
    }

    fn make_room(&mut self, end: u64) -> Result<()> {
        if self.is_on_disk || self.take_memory(end) {
            return Ok(());
        }
        self.move_to_disk()
    }

    pub fn write_at(&mut self, bytes: &[u8], offset: u64) -> Result<()> {
        self.make_room(offset + bytes.len() as u64)?;
        Ok(self.file.write_all_at(bytes, offset)?)
    }

    pub fn set_len(&mut self, size_bytes: u64) -> Result<()> {
        self.make_room(size_bytes)?;
        self.file.set_len(size_bytes)?;
        self.give_memory_back(size_bytes);
        Ok(())
    }

    fn give_memory_back(&mut self, size_bytes: u64) {
        let less = self.in_memory_bytes.saturating_sub(size_bytes);
        IN_MEMORY_BYTES.fetch_sub(less, Ordering::Relaxed);
        self.in_memory_bytes -= less;
    }

    /// Returns `ENOSPC` if the file system of the copies has no room for `more_bytes`
    /// more. A source may report a wrong length, and other users need space as well.
    pub fn check_space(&self, more_bytes: u64) -> Result<()> {
        let in_memory = !self.is_on_disk && more_bytes <= IN_MEMORY_BYTES_MAX;
        if in_memory {
            return Ok(());
        }
        let found = rustix::fs::statvfs(&self.directory)?;
        let kept = (found.f_blocks.saturating_mul(found.f_frsize) / 20).min(FREE_BYTES_MAX);
        let free = found.f_bavail.saturating_mul(found.f_frsize);
        if more_bytes <= free.saturating_sub(kept) {
            Ok(())
        } else {
            Err(Error::Errno(libc::ENOSPC))
        }
    }

    pub fn is_named(&self) -> bool {
        self.name.is_some()
    }

    /// Gives the copy a name, unless it has one, so that it outlives the program.
    /// Returns the name.
    pub fn keep(&mut self, name: &Path) -> Result<PathBuf> {
        if let Some(name) = &self.name {
            return Ok(name.clone());
        }
        if !self.is_on_disk {
            self.move_to_disk()?;
        }
        // The file is locked before others can find it. Anyone who locks it meanwhile
        // only checks whether it is in use.
        let _ = self.file.try_lock();
        let by_descriptor = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        match rustix::fs::linkat(CWD, by_descriptor, CWD, name, AtFlags::SYMLINK_FOLLOW) {
            Ok(()) => {}
            Err(rustix::io::Errno::NOENT) => self.move_to_name(name)?,
            Err(error) => return Err(error.into()),
        }
        self.file.sync_all()?;
        Ok(self.name.insert(name.to_path_buf()).clone())
    }

    /// Copies the content to a new named file, because a file whose name was
    /// removed cannot be linked again.
    fn move_to_name(&mut self, name: &Path) -> Result<()> {
        let mut options = File::options();
        options.read(true).write(true).create_new(true).mode(0o600);
        let named = options.open(name)?;
        let _ = named.try_lock();
        copy_data(&self.file, &named)?;
        self.file = Arc::new(named);
        Ok(())
    }

    /// Takes the name from a copy whose content nobody needs any more. Returns the name,
    /// or `None` if the copy has none.
    pub fn take_name(&mut self) -> Option<PathBuf> {
        self.name.take()
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        self.give_memory_back(0);
    }
}

fn copy_data(from: &File, to: &File) -> Result<()> {
    let size_bytes = from.metadata()?.len();
    to.set_len(size_bytes)?;
    for range in data_ranges(from, 0..size_bytes) {
        let content = Content::File(from, range.start, (range.end - range.start) as usize);
        content.copy(
            range.start,
            &mut |bytes, at| Ok(to.write_all_at(bytes, at)?),
        )?;
    }
    Ok(())
}

/// Returns the parts of a range that are not holes. Returns the whole range if the file
/// system does not report holes.
pub(super) fn data_ranges(file: &File, range: Range<u64>) -> Vec<Range<u64>> {
    let mut ranges = Vec::new();
    let mut at = range.start;
    while at < range.end {
        let start = match rustix::fs::seek(file, SeekFrom::Data(at)) {
            Ok(start) => start,
            Err(rustix::io::Errno::NXIO) => break,
            Err(_) => at,
        };
        if start >= range.end {
            break;
        }
        let end = rustix::fs::seek(file, SeekFrom::Hole(start)).unwrap_or(range.end);
        let end = end.clamp(start + 1, range.end);
        ranges.push(start..end);
        at = end;
    }
    ranges
}

#[cfg(test)]
mod tests;
