//! Where a trial finds its files: on this machine, or on a guest's disks.

use std::path::{Path, PathBuf};

use toll_wire::guest::{SHARED_DIRECTORY, TMPFS_DIRECTORY, WORK_DIRECTORY};

use crate::environment::{SourceFile, SourceSpec, Workspace};

/// Name of the directory on this machine whose files are copied to a guest's work disk.
pub(super) const LAID_FOR_GUESTS: &str = "work";

/// Where a trial finds its files.
#[derive(Debug, Clone, Copy)]
pub(super) enum Files<'a> {
    /// In the work directories of this machine.
    Host(&'a Workspace),
    /// In a guest, with the files that the workspace made for the guest.
    Guest(&'a Workspace),
}

impl Files<'_> {
    /// Returns the directory on a file system.
    pub fn directory(&self, file_system: &str) -> Result<PathBuf, String> {
        match self {
            Self::Host(workspace) => Ok(workspace.directory(file_system)?.to_owned()),
            Self::Guest(_) => match file_system {
                "work" | "ext4" => Ok(WORK_DIRECTORY.into()),
                "tmpfs" => Ok(TMPFS_DIRECTORY.into()),
                "foreign" => Ok(SHARED_DIRECTORY.into()),
                other => Err(format!(
                    "a guest has no file system {other}: it has work, ext4, tmpfs and foreign"
                )),
            },
        }
    }

    /// Returns where a file system's files are stored, if it shows the files of another one;
    /// otherwise its directory.
    pub fn below(&self, file_system: &str) -> Result<PathBuf, String> {
        match self {
            Self::Host(workspace) => Ok(workspace.below(file_system)?.to_owned()),
            Self::Guest(_) => self.directory(file_system),
        }
    }

    /// Returns why files on a file system stay in memory when they are dropped; `None` if they do
    /// not.
    pub fn cold_obstacle(&self, file_system: &str) -> Option<String> {
        match self {
            Self::Host(workspace) => workspace.cold_obstacle(file_system).map(str::to_owned),
            // A guest's disks have the host's page cache below them: see
            // `environment/guest/arguments.rs`.
            Self::Guest(_) => None,
        }
    }

    /// Returns a source file, with the hash of its content.
    pub fn source(&self, file_system: &str, spec: SourceSpec) -> Result<SourceFile, String> {
        let laid = self.workspace().source(self.laid_on(file_system)?, spec);
        let file = laid.ok_or("the source file was not made")?;
        Ok(SourceFile {
            path: self.path(file_system, &file.path)?,
            ..file.clone()
        })
    }

    /// Returns the file of zeros of a size.
    pub fn zeros(&self, file_system: &str, size_bytes: u64) -> Result<PathBuf, String> {
        let laid = self
            .workspace()
            .zeros(self.laid_on(file_system)?, size_bytes);
        let laid = laid.ok_or("the file to map was not made")?;
        self.path(file_system, laid)
    }

    fn workspace(&self) -> &Workspace {
        match self {
            Self::Host(workspace) | Self::Guest(workspace) => workspace,
        }
    }

    fn laid_on<'a>(&self, file_system: &'a str) -> Result<&'a str, String> {
        match (self, file_system) {
            (Self::Host(_), _) => Ok(file_system),
            (Self::Guest(_), "work" | "ext4" | "foreign") => Ok(LAID_FOR_GUESTS),
            (Self::Guest(_), _) => Err(
                "files for trials can only be on a guest's work disk or foreign file system; use \
                 `fs = \"work\"` or `fs = \"foreign\"`"
                    .into(),
            ),
        }
    }

    fn path(&self, file_system: &str, laid: &Path) -> Result<PathBuf, String> {
        match self {
            Self::Host(_) => Ok(laid.to_owned()),
            Self::Guest(_) => {
                let name = laid.file_name().ok_or("the file to copy has no name")?;
                Ok(self.directory(file_system)?.join(name))
            }
        }
    }
}
