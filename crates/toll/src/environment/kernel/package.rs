//! Debian packages: which version the archive has, fetching, unpacking.
//! Nothing is installed, and no step needs root.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::BuildError;
use super::job::{Jobs, ask};

/// A version of a package that apt would install.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Package {
    pub name: String,
    pub version: String,
    pub architecture: String,
    pub bytes: u64,
    /// Of the file, from an index whose signature apt has checked.
    sha256: String,
    /// Names only, the first of each alternative.
    pub depends: Vec<String>,
}

impl Package {
    /// What apt's lists say of a package.
    ///
    /// # Errors
    /// If they do not have it.
    pub fn look_up(name: &str) -> Result<Self, BuildError> {
        let unknown = |why: String| {
            BuildError::Prerequisite(format!(
                "cannot fetch {name}: {why}; run `apt-get update` as root (it comes from Debian's \
                 archive)"
            ))
        };
        let record = ask("apt-cache", &["show", "--no-all-versions", name]).map_err(unknown)?;
        Self::parse(&record).ok_or_else(|| unknown("apt's lists have no file of it".into()))
    }

    fn parse(record: &str) -> Option<Self> {
        let field = |name: &str| {
            let of = |line: &'_ str| -> Option<String> {
                let (key, value) = line.split_once(':')?;
                (key == name).then(|| value.trim().to_owned())
            };
            record.lines().find_map(of)
        };
        let depends = field("Depends").unwrap_or_default();
        let first_word = |text: &str| {
            text.split([' ', '|'])
                .find(|word| !word.is_empty())
                .map(str::to_owned)
        };
        Some(Self {
            name: field("Package")?,
            version: field("Version")?,
            architecture: field("Architecture")?,
            bytes: field("Size")?.parse().ok()?,
            sha256: field("SHA256")?,
            depends: depends.split(',').filter_map(first_word).collect(),
        })
    }

    /// Name and version.
    pub fn identity(&self) -> String {
        format!("{} {}", self.name, self.version)
    }

    fn file_name(&self) -> String {
        // An epoch's colon would end a search path.
        let version = self.version.replace(':', "%3a");
        format!("{}_{version}_{}.deb", self.name, self.architecture)
    }

    /// Its file, fetched unless it is there. What is there was whole once: the
    /// name is given after the check.
    ///
    /// # Errors
    /// If it cannot be fetched or is not what apt's lists say.
    pub fn fetch(&self, jobs: &mut Jobs<'_>, packages: &Path) -> Result<PathBuf, BuildError> {
        let file = packages.join(self.file_name());
        if file.is_file() && self.is_whole(&file) {
            return Ok(file);
        }
        let megabytes = self.bytes.div_ceil(1_000_000);
        jobs.observer
            .step(&format!("fetching {} ({megabytes} MB)", self.identity()));
        // A directory of its own, so that what an interrupted fetch left goes.
        let partial = packages.join("partial");
        empty_directory(&partial)?;
        let wanted = format!("{}={}", self.name, self.version);
        jobs.run(&partial, "apt-get", &["-q", "download", &wanted], &[])
            .map_err(|error| match error {
                BuildError::Failed(why) => BuildError::Failed(format!(
                    "cannot fetch {} (if apt's lists are old, run `apt-get update` as root): {why}",
                    self.identity()
                )),
                error => error,
            })?;
        let found = std::fs::read_dir(&partial)
            .ok()
            .and_then(|mut entries| Some(entries.next()?.ok()?.path()));
        let found = found.filter(|found| self.is_whole(found)).ok_or_else(|| {
            BuildError::Failed(format!(
                "cannot fetch {}: what came is not what apt's lists say; run `apt-get update` as root",
                self.identity()
            ))
        })?;
        std::fs::rename(&found, &file).map_err(|error| BuildError::file(&file, &error))?;
        Ok(file)
    }

    fn is_whole(&self, file: &Path) -> bool {
        ask("sha256sum", &[file.as_os_str()])
            .is_ok_and(|line| line.trim_start_matches('\\').starts_with(&self.sha256))
    }
}

/// Unpacks a package's files below a directory.
pub(super) fn unpack(jobs: &mut Jobs<'_>, deb: &Path, root: &Path) -> Result<(), BuildError> {
    let arguments = [OsStr::new("-x"), deb.as_os_str(), root.as_os_str()];
    jobs.run(Path::new("/"), "dpkg-deb", &arguments, &[])
}

/// Makes a directory and removes what is in it.
pub(super) fn empty_directory(directory: &Path) -> Result<(), BuildError> {
    remove(directory)?;
    make_directory(directory)
}

/// Makes a directory with those above it.
pub(super) fn make_directory(directory: &Path) -> Result<(), BuildError> {
    std::fs::create_dir_all(directory).map_err(|error| BuildError::file(directory, &error))
}

/// Removes a directory with all below it, if it is there.
pub(super) fn remove(directory: &Path) -> Result<(), BuildError> {
    match std::fs::remove_dir_all(directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(BuildError::file(directory, &error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: &str = "\
Package: linux-headers-6.1.0-56-cloud-amd64
Source: linux
Version: 6.1.192-2
Architecture: amd64
Depends: linux-headers-6.1.0-56-common (= 6.1.192-2), linux-kbuild-6.1 (>= 6.1.192-2) | other, linux-compiler-gcc-12-x86
Description: Header files
 Depends: not this
Size: 1592924
SHA256: abc
";

    #[test]
    fn a_record_of_apt_is_read() {
        let package = Package::parse(RECORD).unwrap();
        assert_eq!(
            package.identity(),
            "linux-headers-6.1.0-56-cloud-amd64 6.1.192-2"
        );
        assert_eq!(package.bytes, 1_592_924);
        assert_eq!(
            package.depends,
            [
                "linux-headers-6.1.0-56-common",
                "linux-kbuild-6.1",
                "linux-compiler-gcc-12-x86"
            ]
        );
    }

    #[test]
    fn a_package_without_a_file_is_none() {
        let purely_virtual = "Package: linux-image\nVersion: 1\nArchitecture: amd64\n";
        assert_eq!(Package::parse(purely_virtual), None);
    }
}
