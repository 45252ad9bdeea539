//! What the tests of mounts and those of the source over SFTP share.

use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

/// Compares long contents without printing them.
#[track_caller]
pub fn assert_same(found: &[u8], expected: &[u8], what: &str) {
    if found != expected {
        let mut pairs = found.iter().zip(expected);
        let at = pairs.position(|(one, other)| one != other);
        let (is, should) = (found.len(), expected.len());
        panic!("{what}: {is} bytes instead of {should}, the first difference at {at:?}");
    }
}

/// So many bytes of which any eight tell the seed and where they are.
pub fn content(seed: usize, bytes: usize) -> Vec<u8> {
    let words = (0..bytes as u64 / 8 + 1).map(|number| number << 24 | seed as u64);
    let mut content: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
    content.truncate(bytes);
    content
}

pub fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

/// A file system in memory until it is dropped.
pub struct Small(PathBuf);

impl Small {
    /// With options such as `size=4m`.
    pub fn new(at: &Path, options: &str) -> rustix::io::Result<Self> {
        std::fs::create_dir_all(at).unwrap();
        let options = std::ffi::CString::new(options).unwrap();
        mount("none", at, "tmpfs", MountFlags::empty(), Some(&*options))?;
        Ok(Self(at.to_path_buf()))
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        unmount(&self.0, UnmountFlags::DETACH).unwrap();
    }
}
