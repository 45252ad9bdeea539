//! Prepares a guest for trials.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use toll_wire::guest::{
    BOOT_MODULES_DIRECTORY, SHARED_DIRECTORY, SHARED_VARIABLE, SWAP_DISK, SWAP_VARIABLE,
    TMPFS_DIRECTORY, TRIAL_MODULES_DIRECTORY, WORK_DIRECTORY, WORK_DISK,
};

use super::kernel_log::KernelLog;
use super::mounts;

/// Longest wait for a device whose driver is loaded. Under emulation on a busy
/// machine drivers take seconds.
const DEVICE_PATIENCE: Duration = Duration::from_secs(120);

const DEVICE_POLL: Duration = Duration::from_millis(5);

/// Mounts the kernel's file systems, and sets what trials rely on.
pub fn file_systems() -> Result<(), String> {
    mounts::mount_all()?;
    // Memory layouts differ from trial to trial, as on the host. A kernel with
    // CONFIG_COMPAT_BRK starts with less randomisation.
    let _ = fs::write("/proc/sys/kernel/randomize_va_space", "2");
    Ok(())
}

/// Inserts the modules that disks and ports need.
pub fn boot_modules() -> Result<(), String> {
    insert(&modules_in(BOOT_MODULES_DIRECTORY))
}

/// Modules that are loaded only during a trial or a command.
pub struct TrialModules(Vec<PathBuf>);

impl TrialModules {
    /// Inserts the modules. If the kernel refuses one, removes those inserted
    /// before it.
    ///
    /// # Errors
    /// Returns the kernel's own message, which says more than the error number.
    pub fn insert() -> Result<Self, String> {
        let log = KernelLog::from_now();
        let modules = Self(modules_in(TRIAL_MODULES_DIRECTORY));
        insert(&modules.0).map_err(|why| match log.last_line() {
            Some(line) => format!("{why}; the guest's kernel said: {line}"),
            None => why,
        })?;
        Ok(modules)
    }
}

impl Drop for TrialModules {
    fn drop(&mut self) {
        for module in self.0.iter().rev() {
            // Modules of a refused insertion are not loaded. A module in use stays, and the next
            // insertion finds it.
            let name = module.file_stem().unwrap_or_default().as_bytes();
            // The name follows the number that orders the modules.
            let name = name.get(4..).unwrap_or_default();
            let name = name
                .iter()
                .map(|byte| if *byte == b'-' { b'_' } else { *byte });
            if let Ok(name) = CString::new(name.collect::<Vec<u8>>()) {
                let _ = rustix::system::delete_module(&name, 0);
            }
        }
    }
}

fn modules_in(directory: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut modules: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    modules.sort();
    modules
}

fn insert(modules: &[PathBuf]) -> Result<(), String> {
    for module in modules {
        let cannot = |error: io::Error| {
            format!(
                "cannot insert {}: {error}; use modules of the kernel that is booted",
                module.display()
            )
        };
        let file = File::open(module).map_err(cannot)?;
        match rustix::system::finit_module(&file, c"", 0) {
            // The module is built into the kernel, or already loaded for another module.
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(errno) => return Err(cannot(errno.into())),
        }
    }
    Ok(())
}

/// Mounts the work disk and, if requested, swaps to the swap disk. Returns the directories for work
/// files, by kind of file system.
pub fn disks() -> Result<BTreeMap<String, PathBuf>, String> {
    mounts::mount_work(&disk(WORK_DISK)?)?;
    if std::env::var_os(SWAP_VARIABLE).is_some() {
        let device = disk(SWAP_DISK)?;
        swap_on(&device).map_err(|error| {
            format!(
                "cannot swap to {}: {error}; use a kernel with swap",
                device.display()
            )
        })?;
    }
    let mut directories = BTreeMap::from([
        ("ext4".to_owned(), WORK_DIRECTORY.into()),
        ("tmpfs".to_owned(), TMPFS_DIRECTORY.into()),
    ]);
    if std::env::var_os(SHARED_VARIABLE).is_some() {
        mounts::mount_shared()?;
        directories.insert("9p".to_owned(), SHARED_DIRECTORY.into());
    }
    Ok(directories)
}

fn disk(serial: &str) -> Result<PathBuf, String> {
    let has_serial = |path: &Path| {
        fs::read_to_string(path.join("serial")).is_ok_and(|text| text.trim() == serial)
    };
    let found = wait_for(|| {
        let entries = fs::read_dir("/sys/block").ok()?;
        let device = entries
            .flatten()
            .find(|entry| has_serial(&entry.path()))?
            .file_name();
        Some(Path::new("/dev").join(device)).filter(|path| path.exists())
    });
    found.ok_or_else(|| {
        format!("cannot find the disk {serial}: no driver exposes it; use a kernel with virtio_blk")
    })
}

/// Polls until `look` finds something; `None` after `DEVICE_PATIENCE`.
pub fn wait_for<T>(look: impl Fn() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + DEVICE_PATIENCE;
    loop {
        if let Some(found) = look() {
            return Some(found);
        }
        if Instant::now() > deadline {
            return None;
        }
        std::thread::sleep(DEVICE_POLL);
    }
}

fn swap_on(device: &Path) -> io::Result<()> {
    let path = CString::new(device.as_os_str().as_bytes())?;
    // SAFETY: swapon(2) reads the path, which ends with a zero byte and lives
    // until the call returns.
    match unsafe { libc::swapon(path.as_ptr(), 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
