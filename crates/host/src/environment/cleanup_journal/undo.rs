//! Undoes the changes of a journal, which belongs to this process or to a process that has ended.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{FileType, OFlags};
use rustix::process::geteuid;
use toll_system::Cannot;
use toll_system::mount_table::mounts;
use toll_system::private_directory::{Directory, Identity, identity, is_plain};
use toll_system::{paths, process};

use super::origin::{Origin, State};
use super::{Change, Journal, with_path};
use crate::environment::instance::Instance;
use crate::environment::{filesystem, memory_limit, swap};

/// Largest journal that is read: a thousand times what a run of all experiments writes.
const JOURNAL_BYTES_MAX: u64 = 4 << 20;

/// Longest wait for programs that a killed instance had started.
const LOCK_PATIENCE: Duration = Duration::from_secs(30);

/// Interval between checks whether those programs have ended.
const LOCK_POLL: Duration = Duration::from_millis(10);

/// What a killed instance left.
#[derive(Debug)]
pub enum Leftover {
    /// The leftover was undone.
    Cleared(String),
    /// The leftover could not be undone.
    Failed(String),
    /// The leftover may still be in use elsewhere.
    LeftAlone(String),
}

impl Journal {
    /// Undoes all changes and removes the journal.
    pub fn close(&self) -> Result<(), String> {
        let changes = self.changes.iter().rev();
        changes
            .filter(|change| self.is_of_this_boot || matches!(change, Change::Directory { .. }))
            .try_for_each(|change| self.put_back(change))?;
        match fs::remove_file(&self.path) {
            // Another start undid the changes at the same time.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed.cannot("remove", &self.path),
        }
    }

    /// Undoes one change. A change that was not made, or is already undone, is no error.
    fn put_back(&self, change: &Change) -> Result<(), String> {
        match change {
            Change::Directory { path, made } => self.remove_directory(path, *made),
            Change::ControlGroup { path, made } => {
                // Without an identity the group was only about to be made, and is empty.
                let is_ours =
                    made.is_some_and(|made| identity(path).map(|one| one.0) == Some(made));
                memory_limit::remove(path, is_ours)
            }
            Change::LoopImage(path) | Change::MountPoint(path) | Change::SwapFile(path)
                if !self.is_inside(path) =>
            {
                Ok(())
            }
            Change::LoopImage(path) => {
                detach(path);
                Ok(())
            }
            Change::MountPoint(path) => {
                filesystem::unmount_left(path);
                Ok(())
            }
            Change::SwapFile(path) => swap::take_out(path),
            Change::Process(instance) => {
                instance.end();
                Ok(())
            }
        }
    }

    /// Whether a path is inside a directory that the instance made and that still exists.
    fn is_inside(&self, path: &Path) -> bool {
        is_plain(path)
            && self.changes.iter().any(|change| match change {
                Change::Directory {
                    path: directory,
                    made: Some(made),
                } => path.starts_with(directory) && self.is_still(directory, *made),
                _ => false,
            })
    }

    /// Whether a directory is the one that the instance made. Its name has 64 random bits. The
    /// device number counts only within a boot, since it may change with the next boot.
    fn is_still(&self, path: &Path, made: Identity) -> bool {
        identity(path).is_some_and(|(found, stat)| {
            FileType::from_raw_mode(stat.st_mode) == FileType::Directory
                && stat.st_uid == geteuid().as_raw()
                && found.inode == made.inode
                && (found.device == made.device || !self.is_of_this_boot)
        })
    }

    fn remove_directory(&self, path: &Path, made: Option<Identity>) -> Result<(), String> {
        if identity(path).is_none() {
            return Ok(());
        }
        let Some(made) = made else {
            // The directory was only about to be made, and is empty. Once it is made, the next line
            // of the journal says so, and undoing that line removes it.
            return match fs::remove_dir(path) {
                Err(error) if identity(path).is_some() => Err(format!(
                    "cannot remove {}: {error}; look at it and remove it",
                    path.display()
                )),
                _ => Ok(()),
            };
        };
        if !is_plain(path) || !self.is_still(path, made) {
            return Err(format!(
                "cannot remove {}: it is not what the run made; look at it, then remove {}",
                path.display(),
                self.path.display()
            ));
        }
        remove_tree(path)
    }

    /// Waits until no program that the instance started holds the lock.
    fn wait_for_helpers(&self) -> Result<(), String> {
        let deadline = Instant::now() + LOCK_PATIENCE;
        while self.file.try_lock().is_err() {
            if Instant::now() > deadline {
                return Err(
                    "cannot clean up after a killed run: a program that it started is still making \
                     a file system or swap; wait for it, or end it"
                        .into(),
                );
            }
            std::thread::sleep(LOCK_POLL);
        }
        Ok(())
    }

    /// Undoes what a killed run left. Returns a description, or `None` if the run had
    /// not changed anything yet.
    fn restore(&self) -> Result<Option<String>, String> {
        self.wait_for_helpers()?;
        self.close()?;
        let directories = self.changes.iter().filter_map(|change| match change {
            Change::Directory {
                path,
                made: Some(_),
            } => Some(path.display().to_string()),
            _ => None,
        });
        let directories: Vec<String> = directories.collect();
        let message = format!("cleared after a killed run: {}", directories.join(", "));
        Ok((!self.changes.is_empty()).then_some(message))
    }
}

/// Reads a journal. Its origin is `None` if the first line is incomplete.
fn read(directory: &Directory, name: &OsStr) -> Result<(Option<Origin>, Journal), String> {
    let path = directory.path().join(name);
    let wrong = |why: &dyn std::fmt::Display| {
        format!(
            "cannot use the journal {}: {why}; look into it and remove it",
            path.display()
        )
    };
    let mut file = directory
        .open_private(name, OFlags::RDWR)
        .map_err(|why| wrong(&why))?;
    let mut text = String::new();
    let mut limited = Read::by_ref(&mut file).take(JOURNAL_BYTES_MAX + 1);
    limited
        .read_to_string(&mut text)
        .map_err(|error| wrong(&error))?;
    if text.len() as u64 > JOURNAL_BYTES_MAX {
        return Err(wrong(&"it is larger than any journal"));
    }
    // A line that a kill cut short belongs to a change that was not made.
    let mut lines = text
        .split_inclusive('\n')
        .filter(|line| line.ends_with('\n'));
    let origin = lines.next().map(serde_json::from_str).transpose();
    let origin = origin.map_err(|error| wrong(&error))?;
    let changes = lines.map(serde_json::from_str).collect::<Result<_, _>>();
    let journal = Journal {
        path: path.clone(),
        file,
        changes: changes.map_err(|error| wrong(&error))?,
        is_of_this_boot: false,
    };
    Ok((origin, journal))
}

/// Undoes what ended instances left behind, and reports each leftover.
pub fn restore() -> Vec<Leftover> {
    let directory = match paths::leftovers().and_then(|place| place.open()) {
        Ok(Some(directory)) => directory,
        Ok(None) => return Vec::new(),
        Err(why) => return vec![Leftover::Failed(why)],
    };
    let here = Origin::here();
    let names = match directory.names() {
        Ok(names) => names,
        Err(why) => return vec![Leftover::Failed(why)],
    };
    let journals = names
        .iter()
        .filter(|name| Path::new(name).extension() == Some("jsonl".as_ref()));
    journals
        .filter_map(|name| restore_one(&directory, name, &here))
        .collect()
}

fn restore_one(directory: &Directory, name: &OsStr, here: &Origin) -> Option<Leftover> {
    let (origin, mut journal) = match read(directory, name) {
        Ok(read) => read,
        // The owner removed its journal.
        Err(_) if identity(&directory.path().join(name)).is_none() => return None,
        Err(why) => return Some(Leftover::Failed(why)),
    };
    let Some(origin) = origin else {
        // The run has changed nothing yet. A live owner holds the lock, and its PID is in the name.
        let is_free = journal.file.try_lock().is_ok() && !is_named_after_a_process(name);
        let removed = is_free.then(|| fs::remove_file(&journal.path));
        return match removed {
            Some(Err(error)) => Some(Leftover::Failed(format!(
                "cannot remove {}: {error}",
                journal.path.display()
            ))),
            _ => None,
        };
    };
    let left_alone = |whose: &str| {
        Some(Leftover::LeftAlone(format!(
            "{} belongs to {whose} (process {} on {}) and was left alone; if that run is over, \
             remove what the file lists, then the file",
            journal.path.display(),
            origin.process.pid,
            origin.host
        )))
    };
    match origin.state(here) {
        State::Lives => return None,
        State::OtherMachine => return left_alone("another machine"),
        State::OtherNamespace => {
            return left_alone("another PID namespace, such as a container's");
        }
        State::Rebooted => {}
        State::Gone => journal.is_of_this_boot = true,
    }
    let restored = journal.restore().transpose()?;
    Some(restored.map_or_else(Leftover::Failed, Leftover::Cleared))
}

/// Whether a journal's name begins with the PID of a live process.
fn is_named_after_a_process(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let pid = name.split('-').next().and_then(|pid| pid.parse().ok());
    pid.and_then(Instance::from_pid).is_some()
}

/// Removes one of our directories with everything in it. The standard library opens each
/// subdirectory relative to its parent's descriptor and follows no link (O_NOFOLLOW). So a link
/// that replaces a subdirectory meanwhile cannot redirect the removal.
fn remove_tree(directory: &Path) -> Result<(), String> {
    // The removal would empty a file system that is mounted below the directory in a live
    // namespace. The kernel lists mount points by paths without links.
    let real = directory.canonicalize().cannot("look at", directory)?;
    let mut mounts = mounts().into_iter();
    if let Some(mount) = mounts.find(|mount| mount.point.starts_with(&real)) {
        return Err(format!(
            "cannot remove {}: {point} is mounted in it; unmount {point} first",
            directory.display(),
            point = mount.point.display()
        ));
    }
    match fs::remove_dir_all(directory) {
        Err(error) if identity(directory).is_some() => {
            Err(format!("cannot remove {}: {error}", directory.display()))
        }
        _ => Ok(()),
    }
}

/// Detaches loop devices from an image. Normally there are none, since each is set to clear itself
/// right after the mount.
fn detach(image: &Path) {
    let listed = process::run("losetup", &with_path(&["-n", "-O", "NAME", "-j"], image));
    for device in listed.unwrap_or_default().lines() {
        // Busy devices detach when their last user leaves.
        let _ = process::run("losetup", &with_path(&["-d"], Path::new(device.trim())));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn journal(changes: Vec<Change>) -> Journal {
        Journal {
            path: "/nonexistent/journal".into(),
            file: tempfile::tempfile().unwrap(),
            changes,
            is_of_this_boot: true,
        }
    }

    fn directory(path: &Path, made: Option<Identity>) -> Change {
        Change::Directory {
            path: path.to_owned(),
            made,
        }
    }

    #[test]
    fn putting_back_twice_is_no_error() {
        let base = tempfile::tempdir().unwrap();
        let work = base.path().join("work");
        fs::create_dir_all(work.join("deep")).unwrap();
        let made = identity(&work).unwrap().0;
        let gone = Instance {
            pid: u32::MAX,
            start_ticks: 0,
        };
        let group = Change::ControlGroup {
            path: base.path().join("group"),
            made: Some(made),
        };
        let journal = journal(vec![
            directory(&work, None),
            directory(&work, Some(made)),
            Change::LoopImage(work.join("image")),
            Change::MountPoint(work.join("mount")),
            Change::SwapFile(work.join("swap")),
            group,
            Change::Process(gone),
        ]);
        for _ in 0..2 {
            journal.close().unwrap();
            assert!(!work.exists());
        }
    }

    #[test]
    fn only_what_the_run_made_is_removed() {
        let base = tempfile::tempdir().unwrap();
        let [made, other] = ["made", "other"].map(|name| base.path().join(name));
        for path in [&made, &other] {
            fs::create_dir(path).unwrap();
            fs::write(path.join("file"), "kept").unwrap();
        }
        let [of_made, of_other] = [&made, &other].map(|path| identity(path).unwrap().0);
        // A directory that was about to be made, one that another directory has replaced, and one
        // that is reached through `..`.
        let around = base.path().join("made/../other");
        for change in [
            directory(&other, None),
            directory(&other, Some(of_made)),
            directory(&around, Some(of_other)),
        ] {
            let error = journal(vec![change]).close().unwrap_err();
            assert!(error.contains("look at it"), "{error}");
        }
        let link = base.path().join("link");
        std::os::unix::fs::symlink(&other, &link).unwrap();
        let of_link = identity(&link).unwrap().0;
        for made in [of_link, of_other] {
            let error = journal(vec![directory(&link, Some(made))]).close();
            assert!(error.is_err(), "{error:?}");
        }
        assert!(other.join("file").exists());
        journal(vec![directory(&made, Some(of_made))])
            .close()
            .unwrap();
        assert!(!made.exists());
    }

    #[test]
    fn what_lies_in_no_directory_of_the_run_is_left_alone() {
        let base = tempfile::tempdir().unwrap();
        let made = identity(base.path()).unwrap().0;
        let journal = journal(vec![directory(base.path(), Some(made))]);
        assert!(journal.is_inside(&base.path().join("swap")));
        assert!(!journal.is_inside(&base.path().join("../swap")));
        assert!(!journal.is_inside(Path::new("/swap")));
    }
}
