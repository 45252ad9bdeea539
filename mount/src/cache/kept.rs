//! Kept copies on disk: content that could not be written back, each with a record.
//! They outlive the mount, and the next mount of the same source sends them. A user
//! gives up a copy by removing its content file.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, Read};
use std::ops::Range;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::source::{Attributes, Timespec};
use crate::tree::Version;

/// Directory of kept copies, inside the directory of all copies.
const DIRECTORY: &str = "kept";
/// Suffix of a record's file name. `NEW_RECORD` is the suffix while the record is being
/// written.
const RECORD: &str = ".json";
const NEW_RECORD: &str = ".new";
/// Longest record that is read. A record grows with the number of changed ranges, but
/// this program writes none this long.
const RECORD_BYTES_MAX: u64 = 64 << 20;

/// Version of the source's file when its copy was kept. The device number is left out,
/// because it may change at a restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Base {
    inode: Option<u64>,
    size_bytes: u64,
    mtime: (i64, i64),
    ctime: (i64, i64),
}

impl Base {
    pub fn from_version(version: &Version) -> Self {
        Self {
            inode: version.identity.map(|identity| identity.inode),
            size_bytes: version.size_bytes,
            mtime: numbers(version.mtime),
            ctime: numbers(version.ctime),
        }
    }

    pub fn is(&self, found: &Attributes) -> bool {
        Self::from_version(&Version::from_attributes(found)) == *self
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Record {
    pub source: String,
    pub path: OsString,
    pub size_bytes: u64,
    pub kept_at_s: u64,
    pub why: String,
    /// `None` if the version of the source's file is unknown.
    pub base: Option<Base>,
    /// Changed ranges, which the source lacks. `present` are the ranges that the copy
    /// has.
    pub dirty: Vec<Range<u64>>,
    pub present: Vec<Range<u64>>,
    /// Below this offset, the source has the bytes that are not present in the copy.
    pub valid_bytes: u64,
    pub mtime: Option<(i64, i64)>,
    pub atime: Option<(i64, i64)>,
}

/// A kept copy, as described to users.
#[derive(Debug, Clone)]
pub struct KeptCopy {
    /// Name of the source. `path` is the file's path in the source.
    pub source: String,
    pub path: PathBuf,
    pub size_bytes: u64,
    pub kept_at: SystemTime,
    /// Why the content could not be written back.
    pub why: String,
    /// Path of the content.
    pub place: PathBuf,
    /// Whether a running mount holds the copy and retries.
    pub is_served: bool,
}

/// A kept copy that no other mount can take while this value lives.
pub(super) struct Claimed {
    pub record: Record,
    pub place: PathBuf,
    pub content: File,
}

/// Returns a time in the form that a record stores: whole seconds and nanoseconds.
pub(super) fn numbers(time: Timespec) -> (i64, i64) {
    (time.tv_sec, time.tv_nsec)
}

pub(super) fn time(numbers: (i64, i64)) -> Timespec {
    Timespec {
        tv_sec: numbers.0,
        tv_nsec: numbers.1,
    }
}

pub(super) fn directory(copies: &Path) -> PathBuf {
    copies.join(DIRECTORY)
}

fn beside(place: &Path, ending: &str) -> PathBuf {
    let mut name = place.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

fn record_of(place: &Path) -> PathBuf {
    beside(place, RECORD)
}

impl Record {
    pub fn now_s() -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        since.map_or(0, |since| since.as_secs())
    }

    /// Writes the record beside its content, and replaces an earlier record. If the
    /// process is killed meanwhile, an incomplete record stays, which [`remove`]
    /// deletes with the content.
    pub fn write(&self, place: &Path) -> io::Result<()> {
        let path = beside(place, NEW_RECORD);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut options = File::options();
        let new = options.write(true).create_new(true).mode(0o600);
        let mut new = BufWriter::new(new.open(&path)?);
        let written = serde_json::to_writer(&mut new, self)
            .map_err(io::Error::from)
            .and_then(|()| new.into_inner().map_err(|error| error.into_error()))
            .and_then(|file| file.sync_all())
            .and_then(|()| std::fs::rename(&path, record_of(place)));
        if written.is_err() {
            let _ = std::fs::remove_file(path);
        }
        written
    }
}

/// Removes content and its record.
pub(super) fn remove(place: &Path) {
    let new = beside(place, NEW_RECORD);
    for path in [place.to_path_buf(), new, record_of(place)] {
        // Somebody else may have removed the file already.
        let _ = std::fs::remove_file(path);
    }
}

/// Opens a regular file that belongs to this user, without following a symbolic
/// link.
fn open_own(path: &Path, writes: bool) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).write(writes);
    let file = options
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path)?;
    let found = file.metadata()?;
    let user = rustix::process::geteuid().as_raw();
    if found.is_file() && found.uid() == user {
        Ok(file)
    } else {
        Err(io::ErrorKind::PermissionDenied.into())
    }
}

fn read_record(path: &Path) -> io::Result<Record> {
    let mut text = Vec::new();
    open_own(path, false)?
        .take(RECORD_BYTES_MAX)
        .read_to_end(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}

/// Returns all records with the paths of their contents, oldest first. Removes records
/// whose content is gone.
fn records(copies: &Path) -> io::Result<Vec<(Record, PathBuf)>> {
    let names = match std::fs::read_dir(directory(copies)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        names => names?,
    };
    let mut found = Vec::new();
    for name in names {
        let path = name?.path();
        if path.extension() != Some("json".as_ref()) {
            continue;
        }
        // Damaged records and records of other users are left alone.
        let Ok(record) = read_record(&path) else {
            continue;
        };
        let place = path.with_extension("");
        match place.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => remove(&place),
            _ => found.push((record, place)),
        }
    }
    found.sort_by(|one, other| (one.0.kept_at_s, &one.1).cmp(&(other.0.kept_at_s, &other.1)));
    Ok(found)
}

/// Returns the kept copies of all sources, oldest first.
pub fn kept(copies: &Path) -> io::Result<Vec<KeptCopy>> {
    let described = |(record, place): (Record, PathBuf)| {
        let content = open_own(&place, true).ok()?;
        Some(KeptCopy {
            source: record.source,
            path: record.path.into(),
            size_bytes: record.size_bytes,
            kept_at: UNIX_EPOCH
                .checked_add(Duration::from_secs(record.kept_at_s))
                .unwrap_or(UNIX_EPOCH),
            why: record.why,
            place,
            is_served: content.try_lock().is_err(),
        })
    };
    Ok(records(copies)?.into_iter().filter_map(described).collect())
}

/// Claims the kept copies of a source that no running mount holds. The iterator opens
/// one after another, because there may be more copies than descriptors.
pub(super) fn claim(copies: &Path, source: &str) -> io::Result<impl Iterator<Item = Claimed>> {
    let mut found = records(copies)?;
    found.retain(|(record, _)| record.source == source);
    let places = found.into_iter().map(|(_, place)| place);
    Ok(places.filter_map(claim_one))
}

fn claim_one(place: PathBuf) -> Option<Claimed> {
    let content = open_own(&place, true).ok()?;
    content.try_lock().ok()?;
    // A mount that held it earlier may have sent it and removed both files.
    let record = read_record(&record_of(&place)).ok()?;
    Some(Claimed {
        record,
        place,
        content,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_mount_left_of_a_record_goes_with_the_content() {
        let copies = tempfile::tempdir().unwrap();
        let kept = directory(copies.path());
        std::fs::create_dir(&kept).unwrap();
        let place = kept.join("content");
        std::fs::write(&place, "x").unwrap();
        std::fs::write(beside(&place, NEW_RECORD), "{\"source\":").unwrap();
        let record = Record {
            source: "/source".into(),
            path: "f".into(),
            size_bytes: 1,
            kept_at_s: 1,
            why: "full".into(),
            base: None,
            dirty: Vec::new(),
            present: Vec::new(),
            valid_bytes: 0,
            mtime: None,
            atime: None,
        };
        record.write(&place).unwrap();
        assert_eq!(records(copies.path()).unwrap().len(), 1);
        std::fs::write(beside(&place, NEW_RECORD), "{\"source\":").unwrap();
        assert_eq!(records(copies.path()).unwrap().len(), 1);
        remove(&place);
        assert_eq!(std::fs::read_dir(kept).unwrap().count(), 0);
    }
}
