//! The disks of a guest.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use toll_system::process;

/// Name of the work disk's image in the directory of a [`GuestDisk`].
pub(super) const WORK_IMAGE: &str = "work.img";

/// Name of the socket in the directory of a [`GuestDisk`] on which the caller may serve the work
/// disk by NBD.
pub(super) const WORK_SOCKET: &str = "work.nbd";

/// Name of the swap disk's image in the directory of a [`GuestDisk`].
pub(super) const SWAP_IMAGE: &str = "swap.img";

/// Name of the directory that the guest has over 9p, inside the directory of a [`GuestDisk`].
pub(super) const SHARED: &str = "shared";

/// Name of the archive from which a guest boots, in the directory of a [`GuestDisk`].
pub(super) const INITRAMFS: &str = "initramfs.cpio";

/// Name of the kernel's image in the directory of a [`GuestDisk`].
pub(super) const KERNEL: &str = "kernel";

/// UUID of the work file system, and the seed of its directories' hashes. All guests use the same
/// value, so that a guest's work on the file system is repeatable.
const IDENTITY: &str = "746f6c6c-0000-4000-8000-67756573740a";

/// Bytes of the header of a swap area: one page.
const SWAP_HEADER_BYTES: usize = 4096;

/// The disks of a guest. They are sparse image files in a directory of the caller, and are removed
/// with that directory.
#[derive(Debug)]
pub struct GuestDisk {
    directory: PathBuf,
    /// QEMU's name for the work disk, relative to `directory`.
    work: String,
    /// Size of the work disk's image in bytes; 0 without one.
    bytes: u64,
}

impl GuestDisk {
    /// Makes a work disk of `size_bytes` with ext4. If `content` is given, copies that directory to
    /// the disk, with the same relative paths. Makes `directory` if it is missing; it serves one
    /// guest at a time.
    pub fn create(
        directory: &Path,
        size_bytes: u64,
        content: Option<&Path>,
    ) -> Result<Self, String> {
        let cannot = |why: &dyn std::fmt::Display| {
            format!(
                "cannot make a disk for a guest in {}: {why}",
                directory.display()
            )
        };
        if process::find("mke2fs").is_none() {
            return Err(cannot(&"mke2fs is missing; install the package e2fsprogs"));
        }
        std::fs::create_dir_all(directory).map_err(|error| cannot(&error))?;
        let image = directory.join(WORK_IMAGE);
        let made = File::create(&image).and_then(|file| file.set_len(size_bytes));
        made.map_err(|error| cannot(&error))?;
        let extended = format!(
            // Otherwise a thread of the guest's kernel would finish the file system during the
            // trials.
            "lazy_itable_init=0,lazy_journal_init=0,hash_seed={IDENTITY},root_owner=0:0"
        );
        // No blocks are reserved for root (-m): there is no other user.
        let options = [
            "-F", "-q", "-t", "ext4", "-m", "0", "-U", IDENTITY, "-E", &extended,
        ];
        let mut arguments: Vec<&OsStr> = options.iter().map(|word| word.as_ref()).collect();
        if let Some(content) = content {
            arguments.extend(["-d".as_ref(), content.as_os_str()]);
        }
        arguments.push(image.as_os_str());
        process::run("mke2fs", &arguments)
            .map_err(|why| format!("{}; make the guest's disk larger", cannot(&why)))?;
        Ok(Self {
            directory: directory.to_owned(),
            work: WORK_IMAGE.into(),
            bytes: size_bytes,
        })
    }

    /// Makes the directory that the guest has over 9p, with a copy of another directory's content.
    pub fn share(&self, content: Option<&Path>) -> Result<(), String> {
        let shared = self.directory.join(SHARED);
        let cannot =
            |why: &dyn std::fmt::Display| format!("cannot fill {}: {why}", shared.display());
        std::fs::create_dir(&shared).map_err(|error| cannot(&error))?;
        let Some(content) = content else {
            return Ok(());
        };
        // Copies everything in the directory, but not the directory itself.
        let source = content.join(".");
        let arguments = ["-R".as_ref(), source.as_os_str(), shared.as_os_str()];
        process::run("cp", &arguments)
            .map(drop)
            .map_err(|why| cannot(&why))
    }

    /// Describes a guest without a work disk, for counting.
    pub(super) fn none(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            work: String::new(),
            bytes: 0,
        }
    }

    /// Describes a work disk with ext4 that the caller serves by NBD, on a socket
    /// `work.nbd` in `directory`.
    pub fn served(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            work: format!("nbd:unix:{WORK_SOCKET}"),
            bytes: 0,
        }
    }

    /// QEMU's name for the work disk.
    pub(super) fn work(&self) -> &str {
        &self.work
    }

    /// Size of the largest image that QEMU writes to, except for swap, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The directory of the disks' images.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Makes an empty swap area of `size_bytes`, a new one for each guest.
    pub(super) fn make_swap(&self, size_bytes: u64) -> Result<(), String> {
        let path = self.directory.join(SWAP_IMAGE);
        let write = || {
            let mut file = File::create(&path)?;
            file.set_len(size_bytes)?;
            file.write_all(&swap_header(size_bytes))
        };
        write().map_err(|error| format!("cannot write {}: {error}", path.display()))
    }
}

/// Builds the first page of a swap area (`union swap_header` in include/linux/swap.h). It has
/// version 1, the number of the last page, no bad pages, and the magic word at the end.
fn swap_header(size_bytes: u64) -> [u8; SWAP_HEADER_BYTES] {
    let pages = size_bytes / SWAP_HEADER_BYTES as u64;
    let last = u32::try_from(pages.saturating_sub(1)).unwrap_or(u32::MAX);
    let mut header = [0; SWAP_HEADER_BYTES];
    header[1024..1028].copy_from_slice(&1_u32.to_le_bytes());
    header[1028..1032].copy_from_slice(&last.to_le_bytes());
    header[SWAP_HEADER_BYTES - 10..].copy_from_slice(b"SWAPSPACE2");
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_swap_area_has_the_header_that_the_kernel_wants() {
        let directory = tempfile::tempdir().unwrap();
        let disk = GuestDisk {
            directory: directory.path().to_owned(),
            work: WORK_IMAGE.into(),
            bytes: 0,
        };
        disk.make_swap(1 << 20).unwrap();
        let image = std::fs::read(directory.path().join(SWAP_IMAGE)).unwrap();
        assert_eq!(image.len(), 1 << 20);
        assert_eq!(&image[4086..4096], b"SWAPSPACE2");
        assert_eq!(image[1024..1032], [1, 0, 0, 0, 255, 0, 0, 0]);
    }

    #[test]
    fn a_work_disk_holds_what_is_laid_there() {
        if process::find("mke2fs").is_none() {
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let content = directory.path().join("content");
        std::fs::create_dir_all(content.join("below")).unwrap();
        std::fs::write(content.join("below/file"), "text").unwrap();
        let disk =
            GuestDisk::create(&directory.path().join("disk"), 8 << 20, Some(&content)).unwrap();
        let image = disk.directory().join(WORK_IMAGE);
        let shown = process::run(
            "debugfs",
            &["-R".as_ref(), "cat /below/file".as_ref(), image.as_ref()],
        );
        assert_eq!(shown.unwrap(), "text");
        let full = GuestDisk::create(directory.path(), 64 << 10, Some(&content)).unwrap_err();
        assert!(full.contains("larger"), "{full}");
    }
}
