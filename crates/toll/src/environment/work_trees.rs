//! Work trees of a repository: clones that share its objects, so that neither its own
//! work tree nor its list of work trees is touched.

use std::fs;
use std::path::{Path, PathBuf};

use super::cleanup_journal::{Change, Journal, serial};
use super::paths::{Cannot, versions};
use super::process::git;

/// A directory for work trees.
#[derive(Debug)]
pub struct WorkTrees {
    directory: PathBuf,
    /// Removes them, now or at the next start.
    journal: Option<Journal>,
}

impl WorkTrees {
    /// In the cache; they go with this value.
    pub fn temporary() -> Result<Self, String> {
        let name = format!("ci-{}-{}", std::process::id(), serial());
        let directory = versions().join(name);
        let mut journal = Journal::open()?;
        journal.note(Change::Directory(directory.clone()))?;
        let journal = Some(journal);
        let trees = Self { directory, journal };
        fs::create_dir_all(&trees.directory).cannot("make", &trees.directory)?;
        Ok(trees)
    }

    /// In a directory that stays.
    pub fn kept(directory: &Path) -> Result<Self, String> {
        fs::create_dir_all(directory).cannot("make", directory)?;
        let directory = directory.canonicalize().cannot("open", directory)?;
        let journal = None;
        Ok(Self { directory, journal })
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }
}

impl Drop for WorkTrees {
    fn drop(&mut self) {
        // What cannot be removed stays in the journal for the next start.
        let _ = self.journal.as_ref().map(Journal::close);
    }
}

/// Lays a commit out in a directory. If it is there from an earlier call, only files that
/// differ are written, and what a build made and git ignores stays.
pub fn check_out(repository: &Path, hash: &str, directory: &Path) -> Result<(), String> {
    if !directory.join(".git").exists() {
        let [from, to] = [repository, directory].map(|path| path.display().to_string());
        git(
            repository,
            &[
                "clone",
                "--quiet",
                "--shared",
                "--no-checkout",
                "--",
                &from,
                &to,
            ],
        )?;
    }
    git(
        directory,
        &["checkout", "--quiet", "--force", "--detach", hash],
    )?;
    git(directory, &["clean", "--quiet", "-ffd"])?;
    Ok(())
}

/// Lays out the submodules of a work tree, and theirs, from those of the repository, so
/// that nothing comes over the network.
pub fn check_out_submodules(repository: &Path, directory: &Path) -> Result<(), String> {
    if !directory.join(".gitmodules").exists() {
        return Ok(());
    }
    let pattern = r"^submodule\..*\.path$";
    let listed = git(
        directory,
        &["config", "--file", ".gitmodules", "--get-regexp", pattern],
    )?;
    for line in listed.lines() {
        let Some((key, path)) = line.split_once(' ') else {
            continue;
        };
        let own = repository.join(path);
        let url = format!("{}.url={}", key.trim_end_matches(".path"), own.display());
        // git follows no path of this machine for a submodule unless told to.
        let update = [
            "-c",
            "protocol.file.allow=always",
            "-c",
            &url,
            "submodule",
            "--quiet",
            "update",
            "--init",
            "--force",
            "--",
            path,
        ];
        git(directory, &update).map_err(|why| {
            format!(
                "cannot lay out the submodule {path}: {why}; it has to be in the repository with \
                 this commit: git submodule update --init --recursive"
            )
        })?;
        check_out_submodules(&own, &directory.join(path))?;
    }
    Ok(())
}
