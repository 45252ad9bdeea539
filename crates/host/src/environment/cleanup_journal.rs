//! Journal of what a run must undo, written before each change.
//!
//! Each running instance appends one line per change to its own file, and removes the file when
//! everything is undone. A file whose process is gone was left by a killed run: the next start, or
//! `toll doctor --restore`, undoes what it lists. A program that the killed instance had started
//! for a change may still run. That program holds a lock on the file, and the next start waits for
//! it to end.
//!
//! A journal is followed only if this user wrote it: its directory belongs to this user alone, and
//! nobody else may write the file. Its first line names the machine, the boot and the PID
//! namespace. Journals of other machines and namespaces are left alone, since this process cannot
//! see whether their process lives. After a reboot only the directories of a run remain.

mod origin;
mod undo;

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use toll_system::private_directory::{Directory, Identity};
use toll_system::{paths, process};

use self::origin::Origin;
use super::instance::Instance;

pub use self::undo::{Leftover, restore};

/// A change that must be undone. A change with a path is recorded twice: without an identity before
/// it is made, and with one afterwards.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Change {
    /// A directory, which is removed with everything in it.
    Directory {
        path: PathBuf,
        made: Option<Identity>,
    },
    /// The image file of a loop device, which is detached. Like the paths of the next two variants,
    /// the file is inside a directory of the same journal.
    LoopImage(PathBuf),
    /// A directory on which a program mounts a file system. That file system is unmounted.
    MountPoint(PathBuf),
    /// A swap file, which is taken out of use.
    SwapFile(PathBuf),
    /// A control group, which is removed with all processes in it.
    ControlGroup {
        path: PathBuf,
        made: Option<Identity>,
    },
    /// A process, which is killed with all its descendants.
    Process(Instance),
}

/// The journal of this process, or of a process that has ended.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    /// The journal's file, locked by this process and by the programs that [`Self::run`] starts, as
    /// long as any of them lives.
    file: File,
    changes: Vec<Change>,
    /// Whether the changes were made in the current boot.
    is_of_this_boot: bool,
}

impl Journal {
    pub fn open() -> Result<Self, String> {
        let directory = paths::leftovers()?.make()?;
        let origin = Origin::here();
        let path = directory.unused_path(&origin.process.pid.to_string())?;
        let path = path.with_extension("jsonl");
        let wrong = |why: &dyn std::fmt::Display| format!("cannot write {}: {why}", path.display());
        let name = path.file_name().unwrap_or_default();
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::APPEND;
        let file = directory.open_private(name, flags);
        let mut file = file.map_err(|why| wrong(&why))?;
        file.try_lock().map_err(|error| wrong(&error))?;
        let line = serde_json::to_string(&origin).map_err(|error| wrong(&error))?;
        let written = file.write_all(format!("{line}\n").as_bytes());
        written.map_err(|error| wrong(&error))?;
        Ok(Self {
            path,
            file,
            changes: Vec::new(),
            is_of_this_boot: true,
        })
    }

    /// Makes a directory that this instance removes with everything in it.
    pub fn make_directory(&mut self, parent: &Directory, prefix: &str) -> Result<PathBuf, String> {
        let path = parent.unused_path(prefix)?;
        let note = |made| Change::Directory {
            path: path.clone(),
            made,
        };
        self.note(note(None))?;
        let made = parent.make_new(&path)?;
        self.note(note(Some(made)))?;
        Ok(path)
    }

    /// Records a change before it is made.
    pub fn note(&mut self, change: Change) -> Result<(), String> {
        let wrong = |error: io::Error| format!("cannot write {}: {error}", self.path.display());
        let line = serde_json::to_string(&change).map_err(|error| wrong(error.into()))?;
        self.file
            .write_all(format!("{line}\n").as_bytes())
            .map_err(wrong)?;
        self.changes.push(change);
        Ok(())
    }

    /// Runs a program that makes a recorded change, as [`process::run`] does. If
    /// this process is killed meanwhile, the change is not undone before that
    /// program has ended, too.
    pub fn run(&self, program: &str, options: &[&str], path: &Path) -> Result<String, String> {
        // The program inherits the lock as its standard input, which is at end of file.
        let lock = self
            .file
            .try_clone()
            .map_err(|error| format!("cannot run {program}: {error}"))?;
        process::run_on(Stdio::from(lock), program, &with_path(options, path))
    }
}

/// Builds a command line that ends with a path.
pub(super) fn with_path<'a>(options: &'a [&str], path: &'a Path) -> Vec<&'a OsStr> {
    let options = options.iter().map(OsStr::new);
    options.chain([path.as_os_str()]).collect()
}

/// Returns a number that is unique among the workspaces of this process.
pub(super) fn serial() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
