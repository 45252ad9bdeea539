//! Finds the files of a command: programs as `execvp` would (exec(3)).

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use toll_wire::Failure;

use crate::failure::OrFail;

/// Returns a path that names the same file when the probe has entered the command's directory.
pub fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path).failed_with("open", path)
}

/// Resolves a program's name to the first executable file in a directory of
/// `PATH`. A name with a slash, or one that is not found, is returned unchanged,
/// so that the system reports the error.
pub fn program(name: &OsStr) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    program_in(name, &path)
}

fn program_in(name: &OsStr, path: &OsStr) -> PathBuf {
    if Path::new(name).components().count() != 1 || name.as_encoded_bytes().contains(&b'/') {
        return PathBuf::from(name);
    }
    std::env::split_paths(path)
        // An empty entry means the current directory.
        .map(|directory| Path::new(".").join(directory).join(name))
        // Most directories do not have the file, and access(2) finds that out with less work.
        .find(|file| access(file, Access::EXEC_OK).is_ok() && file.is_file())
        .unwrap_or_else(|| PathBuf::from(name))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_first_executable_file_on_the_path_is_found() {
        let directory = tempfile::tempdir().unwrap();
        let make = |place: &str, mode: u32| {
            let parent = directory.path().join(place);
            std::fs::create_dir_all(&parent).unwrap();
            let file = parent.join("tool");
            std::fs::write(&file, "").unwrap();
            std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
            parent
        };
        let places = [
            make("plain", 0o644),
            make("first", 0o755),
            make("second", 0o755),
        ];
        let path = std::env::join_paths(&places).unwrap();
        assert_eq!(
            program_in(OsStr::new("tool"), &path),
            places[1].join("tool")
        );
    }

    #[test]
    fn other_names_are_left_as_they_are() {
        for name in ["./tool", "/bin/tool", "", "no-such-tool", "tool/"] {
            assert_eq!(
                program_in(OsStr::new(name), OsStr::new("/bin")),
                PathBuf::from(name)
            );
        }
    }
}
