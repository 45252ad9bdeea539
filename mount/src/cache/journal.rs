//! The journal lists the temporary files that a mount would leave at its source if it
//! were killed.
//!
//! Each mount has a journal file and records a temporary file in it before creating
//! it. The journal file is locked while the mount lives. The next mount of the same
//! source removes everything that unlocked journals list, and then these journals.

use std::ffi::OsStr;
use std::fs::{File, TryLockError};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read, Seek, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::source::Source;

/// Prefix of the names of temporary files. The mount's token follows it.
const PREFIX: &str = ".toll-";

pub(crate) struct Journal {
    path: PathBuf,
    /// Distinguishes this mount's temporary files from all others.
    token: u64,
    next: AtomicU64,
    state: Mutex<State>,
}

struct State {
    file: File,
    under_way: usize,
}

/// Hashes a name, with the same result in every process (FNV-1a, 64 bits).
pub(super) fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Removes the files at the source that the journals of dead mounts list. Returns
/// how many files were removed.
fn clear(directory: &Path, source: &dyn Source, id: u64) -> io::Result<usize> {
    let mut removed = 0;
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if !name.starts_with(&format!("{id:016x}-")) || !name.ends_with(".journal") {
            continue;
        }
        let file = File::options().read(true).write(true).open(&path);
        let Some(mut file) = file.ok().filter(|file| file.try_lock().is_ok()) else {
            continue;
        };
        let mut text = Vec::new();
        file.read_to_end(&mut text)?;
        let mut is_clear = true;
        let names = text.split(|byte| *byte == 0);
        for name in names.filter(|name| is_temporary(name)) {
            match source.remove(Path::new(OsStr::from_bytes(name)), false) {
                Ok(_) => removed += 1,
                Err(error) if error.is(libc::ENOENT) || error.is(libc::ENOTDIR) => {}
                Err(_) => is_clear = false,
            }
        }
        if is_clear {
            std::fs::remove_file(&path)?;
        }
    }
    Ok(removed)
}

/// Returns whether a path has the form of a temporary file's path. A damaged journal
/// must not remove anything else.
fn is_temporary(path: &[u8]) -> bool {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    let is_inside =
        !path.starts_with(b"/") && !path.split(|byte| *byte == b'/').any(|part| part == b"..");
    is_inside && name.starts_with(PREFIX.as_bytes())
}

impl Journal {
    /// Removes the files that dead mounts left at the source, and starts a journal in
    /// `directory`. Also returns how many files were removed.
    pub fn begin(directory: &Path, source: &dyn Source) -> io::Result<(Self, usize)> {
        let id = hash(source.name().as_bytes());
        let removed = clear(directory, source, id)?;
        loop {
            let prefix = format!("{id:016x}-");
            let mut named = tempfile::Builder::new();
            named.prefix(&prefix).rand_bytes(16).suffix(".journal");
            let (file, path) = named.tempfile_in(directory)?.keep()?;
            match file.try_lock() {
                Ok(()) => {}
                // Another mount that is starting took the new journal for one of a dead
                // mount.
                Err(TryLockError::WouldBlock) => continue,
                Err(TryLockError::Error(error)) => return Err(error),
            }
            let journal = Self {
                // Random, because other hosts may have mounts of the source too.
                token: RandomState::new().hash_one(&path),
                path,
                next: AtomicU64::new(0),
                state: Mutex::new(State { file, under_way: 0 }),
            };
            return Ok((journal, removed));
        }
    }

    /// Returns the number that distinguishes this mount from all others.
    pub fn token(&self) -> u64 {
        self.token
    }

    /// Returns a path for a new temporary file in the directory of `path`. The path is
    /// in the journal before the caller creates the file.
    pub fn temporary_beside(&self, path: &Path) -> io::Result<PathBuf> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let name = format!("{PREFIX}{:016x}-{number}", self.token);
        let temporary = path.with_file_name(name);
        let mut state = self.state.lock();
        let mut line = temporary.clone().into_os_string().into_vec();
        line.push(0);
        state.file.write_all(&line)?;
        state.under_way += 1;
        Ok(temporary)
    }

    /// Records that a temporary file is gone or has its final name.
    pub fn done(&self) {
        let mut state = self.state.lock();
        state.under_way -= 1;
        if state.under_way == 0 {
            // A journal that lists too much does no harm.
            let _ = state.file.set_len(0);
            let _ = state.file.rewind();
        }
    }

    /// Removes the journal at the end of the mount, unless it lists something that
    /// is still to be removed.
    pub fn end(&self) {
        if self.state.lock().under_way == 0 {
            let _ = std::fs::remove_file(&self.path);
        }
    }

    /// Returns whether a name belongs to a temporary file of this mount. Listings leave
    /// such files out.
    pub fn is_own(&self, name: &OsStr) -> bool {
        let rest = name.as_bytes().strip_prefix(PREFIX.as_bytes());
        rest.is_some_and(|rest| rest.starts_with(format!("{:016x}", self.token).as_bytes()))
    }
}
