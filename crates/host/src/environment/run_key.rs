//! The key by which this user's toll recognises the experiments that it wrote into a store.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;
use rustix::rand::{GetRandomFlags, getrandom};
use toll_system::paths;

/// Length of the key.
const BYTES: usize = 32;

/// The key itself.
type Key = [u8; BYTES];

/// Returns the user's key, which is made at its first use.
///
/// # Errors
///
/// If the key cannot be read or made, or somebody else may read it.
pub fn own() -> Result<Key, String> {
    let directory = paths::run_key_directory()?.make()?;
    read_or_make(&directory.path().join("run.key"))
}

fn read_or_make(path: &Path) -> Result<Key, String> {
    let cannot = |why: &str| {
        format!(
            "cannot use the key {}: {why}; remove it, and toll makes a new key, which does \
             not fit earlier runs",
            path.display()
        )
    };
    match read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            make(path).map_err(|error| cannot(&error.to_string()))?;
            read(path).map_err(|error| cannot(&error.to_string()))
        }
        other => other.map_err(|error| cannot(&error.to_string())),
    }
}

fn read(path: &Path) -> io::Result<Key> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut file = File::options()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    let found = file.metadata()?;
    let own = rustix::process::geteuid().as_raw();
    if !found.is_file() || found.uid() != own || found.mode() & 0o077 != 0 {
        return Err(io::Error::other(
            "it is not a file that belongs to this user and that nobody else may read",
        ));
    }
    let mut bytes = [0; BYTES];
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Writes a key under a temporary name first, so that no other toll reads a partial key.
fn make(path: &Path) -> io::Result<()> {
    let (mut bytes, mut name) = ([0; BYTES], [0; 8]);
    for part in [&mut bytes[..], &mut name[..]] {
        if getrandom(&mut *part, GetRandomFlags::empty())? != part.len() {
            return Err(io::Error::other("there are too few random bytes"));
        }
    }
    // If the name had the PID in it, a file that a killed process left could have the same name.
    let new = path.with_extension(format!("{:016x}", u64::from_le_bytes(name)));
    let made = File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&new);
    let linked = made
        .and_then(|mut file| file.write_all(&bytes))
        .and_then(|()| fs::hard_link(&new, path));
    let _ = fs::remove_file(&new);
    match linked {
        // Another toll made a key meanwhile.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_key_is_made_once_and_for_this_user_alone() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("run.key");
        let made = read_or_make(&path).unwrap();
        assert_eq!(read_or_make(&path).unwrap(), made);
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        let other = read_or_make(&scratch.path().join("other.key")).unwrap();
        assert_ne!(made, other);
    }

    #[test]
    fn what_a_killed_process_of_the_same_number_left_keeps_no_key_from_being_made() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("run.key");
        fs::write(path.with_extension(std::process::id().to_string()), "").unwrap();
        read_or_make(&path).unwrap();
    }

    #[test]
    fn a_key_that_others_may_read_or_that_is_a_link_is_refused() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("run.key");
        read_or_make(&path).unwrap();
        let link = scratch.path().join("link.key");
        symlink(&path, &link).unwrap();
        assert!(read_or_make(&link).is_err());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let error = read_or_make(&path).unwrap_err();
        assert!(error.contains("nobody else may read"), "{error}");
    }
}
