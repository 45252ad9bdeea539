//! The slave's file, which gets its name when it is complete.

use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, linkat};

/// A file that is being received. If it is not kept, nothing of it remains. Most file
/// systems can create the file without a name (`O_TMPFILE`), so that it vanishes
/// however the program ends.
pub struct Output {
    file: File,
    path: PathBuf,
    /// Temporary name in the same directory, used until the file is complete.
    draft: PathBuf,
    is_named: bool,
}

impl Output {
    /// Begins a file. An existing file keeps its content until the new one is complete,
    /// which then gets its permissions.
    pub fn create(path: &Path) -> io::Result<Self> {
        // If the path is a symbolic link, the link stays and its target is replaced.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let permissions = match std::fs::metadata(&path) {
            Ok(there) if !there.is_file() => {
                return Err(io::Error::other("it exists and is not a regular file"));
            }
            Ok(there) => Some(there.permissions()),
            Err(_) => None,
        };
        let name = path
            .file_name()
            .ok_or_else(|| io::Error::from(io::ErrorKind::IsADirectory))?;
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}.tmp", std::process::id()));
        let draft = path.with_file_name(hidden);
        let (file, is_named) = open(directory_of(&path), &draft)?;
        let output = Self {
            file,
            path,
            draft,
            is_named,
        };
        if let Some(permissions) = permissions {
            let mode = permissions.mode() & 0o7777;
            output.file.set_permissions(Permissions::from_mode(mode))?;
        }
        Ok(output)
    }

    pub fn file(&self) -> &File {
        &self.file
    }

    /// Gives the file its name. When this returns, content and name are on the device,
    /// so that the sender may remove its own copy.
    pub fn keep(mut self) -> io::Result<()> {
        // The content is synchronised before the rename. Otherwise the rename could
        // reach the device first, and leave an empty file in place of the old one.
        self.file.sync_all()?;
        if !self.is_named {
            let unnamed = format!("/proc/self/fd/{}", self.file.as_raw_fd());
            linkat(CWD, unnamed, CWD, &self.draft, AtFlags::SYMLINK_FOLLOW)?;
            self.is_named = true;
        }
        std::fs::rename(&self.draft, &self.path)?;
        self.is_named = false;
        File::open(directory_of(&self.path))?.sync_all()
    }
}

fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if self.is_named {
            // The draft is useless now, and somebody else may have removed it already.
            let _ = std::fs::remove_file(&self.draft);
        }
    }
}

/// Opens a file without a name, or with the name `draft` if the file system does not
/// support that. Returns whether the file has a name.
fn open(directory: &Path, draft: &Path) -> io::Result<(File, bool)> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o666);
    let unnamed = options
        .clone()
        .custom_flags(libc::O_TMPFILE)
        .open(directory);
    match unnamed {
        Ok(file) => Ok((file, false)),
        Err(error) if is_without_unnamed(&error) => options
            .create_new(true)
            .open(draft)
            .map(|file| (file, true)),
        Err(error) => Err(error),
    }
}

/// Returns whether an error means that the file system has no files without names
/// (open(2)).
fn is_without_unnamed(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EOPNOTSUPP | libc::EISDIR | libc::EINVAL)
    )
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(directory).unwrap();
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    #[test]
    fn a_file_has_its_name_only_when_it_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out");
        std::fs::write(&path, "before").unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();

        let output = Output::create(&path).unwrap();
        output.file().write_all(b"half").unwrap();
        drop(output);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "before");
        assert_eq!(names(directory.path()), ["out"]);

        let output = Output::create(&path).unwrap();
        output.file().write_all(b"all").unwrap();
        output.keep().unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "all");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(names(directory.path()), ["out"]);
    }

    /// Returns the system calls of the test above, as strace prints them.
    #[expect(clippy::disallowed_methods, reason = "a test starts what it tests")]
    fn traced() -> io::Result<String> {
        let test = "output::tests::a_file_has_its_name_only_when_it_is_kept";
        let traced = std::process::Command::new("strace")
            .args(["-f", "-y", "-e", "trace=fsync,rename"])
            .arg(std::env::current_exe()?)
            .args(["--exact", test])
            .output()?;
        assert!(traced.status.success(), "{traced:?}");
        Ok(String::from_utf8_lossy(&traced.stderr).into_owned())
    }

    #[test]
    #[expect(clippy::print_stderr, reason = "a skip prints its reason")]
    fn content_and_then_the_name_are_on_the_device_when_it_is_kept() {
        let text = match traced() {
            Ok(text) => text,
            Err(error) => return eprintln!("skipped: cannot run strace: {error}"),
        };
        let calls = text.lines().filter(|line| line.contains(" = "));
        let calls: Vec<&str> = calls.collect();
        let [content, name, directory] = calls[..] else {
            panic!("{text}");
        };
        for (call, name) in [
            (content, "fsync("),
            (name, "rename("),
            (directory, "fsync("),
        ] {
            assert!(call.contains(name) && call.ends_with("= 0"), "{text}");
        }
        let (of, _) = name.split_once("/.out.").expect("the draft is beside it");
        let (_, of) = of.split_once('"').expect("a path");
        assert!(directory.contains(&format!("<{of}>")), "{text}");
    }

    #[test]
    fn a_link_stays_and_what_it_leads_to_is_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let (target, link) = (directory.path().join("t"), directory.path().join("l"));
        std::fs::write(&target, "before").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        let output = Output::create(&link).unwrap();
        output.file().write_all(b"all").unwrap();
        output.keep().unwrap();
        assert!(link.is_symlink());
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "all");
    }

    #[test]
    fn what_cannot_be_a_regular_file_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        for path in [
            Path::new("/dev/null"),
            directory.path(),
            &directory.path().join("missing/out"),
            Path::new("/"),
        ] {
            assert!(Output::create(path).is_err(), "{}", path.display());
        }
        assert_eq!(names(directory.path()), [""; 0]);
    }
}
