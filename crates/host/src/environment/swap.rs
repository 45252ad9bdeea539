//! A run's own swap, for what a memory limit pushes out.

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::FallocateFlags;
use toll_system::process;

use super::cleanup_journal::{Change, Journal, with_path};

/// A swap file in use. Dropping it takes it out of use. The file is removed with the run's
/// directory.
#[derive(Debug)]
pub(super) struct Swap {
    path: PathBuf,
}

impl Swap {
    /// Makes a file of `size_bytes` and makes the kernel swap to it.
    pub fn create(
        directory: &Path,
        size_bytes: u64,
        journal: &mut Journal,
    ) -> Result<Self, String> {
        let path = directory.join("swap");
        let cannot = |why: &dyn std::fmt::Display| {
            format!(
                "cannot swap to a file in {}: {why}; choose another file system with --work-dir",
                directory.display()
            )
        };
        let file = File::options()
            .write(true)
            .create_new(true)
            // The mode excludes others: a user who can read swap can read memory (swapon(8)).
            .mode(0o600)
            .open(&path)
            .map_err(|error| cannot(&error))?;
        // Allocates all blocks, since swapon(2) refuses holes.
        rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, size_bytes)
            .map_err(|errno| cannot(&std::io::Error::from(errno)))?;
        drop(file);
        journal.note(Change::SwapFile(path.clone()))?;
        for program in ["mkswap", "swapon"] {
            let made = journal.run(program, &[], &path);
            made.map_err(|why| cannot(&why))?;
        }
        Ok(Self { path })
    }
}

impl Drop for Swap {
    fn drop(&mut self) {
        // If this fails, the file stays in the journal for the next start.
        let _ = take_out(&self.path);
    }
}

/// Takes a swap file out of use. A file that is not in use is no error.
pub(super) fn take_out(path: &Path) -> Result<(), String> {
    if !is_in_use(path) {
        return Ok(());
    }
    process::run("swapoff", &with_path(&[], path)).map(drop)
}

fn is_in_use(path: &Path) -> bool {
    let list = std::fs::read_to_string("/proc/swaps").unwrap_or_default();
    list.lines()
        .skip(1)
        .filter_map(|line| line.split_whitespace().next())
        // A space in a name is shown in octal (proc(5)).
        .any(|name| Path::new(&name.replace("\\040", " ")) == path)
}

/// Returns why swap is not available here; `None` if it is.
pub(super) fn swap_obstacle() -> Option<String> {
    if !Path::new("/proc/swaps").exists() {
        return Some("this kernel has no swap".into());
    }
    let missing = ["mkswap", "swapon", "swapoff"]
        .into_iter()
        .find(|program| process::find(program).is_none())?;
    Some(format!(
        "{missing} is missing; install the packages mount and util-linux"
    ))
}
