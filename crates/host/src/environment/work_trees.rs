//! Work trees of a repository. They are separate repositories that borrow its objects, so the
//! repository's own work tree and its list of work trees stay untouched.

use std::fs;
use std::path::{Path, PathBuf};

use toll_system::Cannot;
use toll_system::paths::versions;
use toll_system::private_directory::{LockFile, Place};
use toll_system::process::git;

use super::cleanup_journal::Journal;
use crate::spec::trees::{SIDES, Trees};

/// Maximum number of calls that share a directory at a time.
const PAIRS_MAX: u32 = 1000;

/// A directory for the work trees of both sides.
#[derive(Debug)]
pub struct WorkTrees {
    directory: PathBuf,
    /// Removes the work trees when it is dropped or, after a kill, at the next start. `None` for
    /// trees that stay.
    journal: Option<Journal>,
    /// Keeps other calls of `toll ci` out of trees that stay.
    _lock: Option<LockFile>,
}

impl WorkTrees {
    /// Makes a directory in the cache, which is removed when this value is dropped.
    pub fn temporary() -> Result<Self, String> {
        let versions = versions()?.make()?;
        let mut journal = Journal::open()?;
        let directory = journal.make_directory(&versions, "ci")?;
        Ok(Self {
            directory,
            journal: Some(journal),
            _lock: None,
        })
    }

    /// Uses a directory that stays, in which each call takes the first pair of trees that no other
    /// call uses.
    pub fn kept(directory: &Path) -> Result<Self, String> {
        let place = Place::named(directory, "--keep-trees")?;
        let kept = place.make()?;
        for number in 0..PAIRS_MAX {
            let name = number.to_string();
            if let Some(lock) = kept.lock_file(&format!("{name}.lock"))? {
                let pair = place.join(&name).make()?;
                return Ok(Self {
                    directory: pair.path().canonicalize().cannot("open", pair.path())?,
                    journal: None,
                    _lock: Some(lock),
                });
            }
        }
        Err(format!(
            "cannot use {}: all work trees in it are in use; name another --keep-trees",
            directory.display()
        ))
    }

    /// Reopens the trees of an earlier call, if they still have the commits that the call compared.
    pub fn again(trees: &Trees) -> Result<Self, String> {
        let directory = PathBuf::from(&trees.directory);
        let gone = || {
            format!(
                "{} no longer has the commits of this run; start the same toll ci again",
                directory.display()
            )
        };
        let (parent, name) = directory
            .parent()
            .zip(directory.file_name())
            .ok_or_else(gone)?;
        let place = Place::named(parent, "--keep-trees")?;
        let kept = place.open()?.ok_or_else(gone)?;
        let name = name.to_string_lossy();
        place.join(&name).open()?.ok_or_else(gone)?;
        let lock = kept.lock_file(&format!("{name}.lock"))?.ok_or_else(|| {
            format!(
                "another toll ci is using its work trees in {}; wait for it",
                directory.display()
            )
        })?;
        for (side, commit) in SIDES.iter().zip(&trees.commits) {
            let tree = directory.join(side);
            // Without a .git in the tree, git would find another repository that contains this
            // directory.
            let is_there = tree.join(".git").is_dir();
            let head = is_there.then(|| git(&tree, &["rev-parse", "HEAD"]));
            if head.is_none_or(|head| head.as_ref() != Ok(commit)) {
                return Err(gone());
            }
        }
        Ok(Self {
            directory,
            journal: None,
            _lock: Some(lock),
        })
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

/// Checks a commit out in a directory. If an earlier call used the directory, only files that
/// differ are written. Files that a build made and git ignores stay.
pub fn check_out(repository: &Path, hash: &str, directory: &Path) -> Result<(), String> {
    if !directory.join(".git").exists() {
        borrow(repository, directory)?;
    }
    lay_refs(repository, directory)?;
    git(
        directory,
        &["checkout", "--quiet", "--force", "--detach", hash],
    )?;
    git(directory, &["clean", "--quiet", "-ffd"])?;
    Ok(())
}

/// Makes a repository that borrows the objects of another repository, as `git clone --shared` does.
/// A clone would start upload-pack, which refuses another user's repository unless safe.directory
/// names its `.git`. Borrowing needs no such check: it only reads objects. When the repository was
/// opened, git had already checked its owner against the user's settings.
fn borrow(repository: &Path, directory: &Path) -> Result<(), String> {
    let format = git(repository, &["rev-parse", "--show-object-format"])?;
    let format = format!("--object-format={format}");
    let made = directory.display().to_string();
    let init = ["init", "--quiet", "--template=", &format, "--", &made];
    // `lay_refs` writes references in the files format.
    let settings = ["-c", "init.defaultRefFormat=files"];
    git(repository, &[&settings[..], &init].concat())?;
    let path_of = |name: &str| {
        let path = git(repository, &["rev-parse", "--git-path", name])?;
        // The path is relative to where git ran, or absolute.
        Ok::<_, String>(repository.join(path))
    };
    let own = directory.join(".git");
    let objects = path_of("objects")?;
    let alternates = own.join("objects/info/alternates");
    fs::create_dir_all(own.join("objects/info")).cannot("make", &alternates)?;
    fs::write(&alternates, format!("{}\n", objects.display())).cannot("write", &alternates)?;
    // This file says where history ends in a shallow repository.
    let shallow = path_of("shallow")?;
    if shallow.exists() {
        fs::copy(&shallow, own.join("shallow")).cannot("read", &shallow)?;
    }
    let url = repository.display().to_string();
    git(directory, &["config", "remote.origin.url", &url]).map(drop)
}

/// Copies the repository's tags and branches to a work tree, since builds name versions by them.
fn lay_refs(repository: &Path, directory: &Path) -> Result<(), String> {
    let words = [
        "for-each-ref",
        "--format=%(objectname) %(refname)",
        "refs/heads",
        "refs/tags",
    ];
    let listed = git(repository, &words)?;
    let refs = listed.replace(" refs/heads/", " refs/remotes/origin/");
    let path = directory.join(".git/packed-refs");
    fs::write(&path, refs + "\n").cannot("write", &path)
}

/// Checks out the submodules of a work tree, recursively. Takes them from the repository, so that
/// nothing is fetched over the network.
pub fn check_out_submodules(repository: &Path, directory: &Path) -> Result<(), String> {
    if !directory.join(".gitmodules").exists() {
        return Ok(());
    }
    let listed = git(directory, &["ls-files", "--stage", "-z"])?;
    for entry in listed.split('\0') {
        // An entry is MODE HASH STAGE<tab>PATH; mode 160000 is a commit of another repository.
        let Some((words, path)) = entry.split_once('\t') else {
            continue;
        };
        let Some(hash) = words
            .strip_prefix("160000 ")
            .and_then(|rest| rest.get(..rest.len() - 2))
        else {
            continue;
        };
        let (own, laid) = (repository.join(path), directory.join(path));
        let laid_out = if own.join(".git").exists() {
            check_out(&own, hash, &laid)
        } else {
            Err("it is missing".into())
        };
        laid_out.map_err(|why| {
            format!(
                "cannot check out the submodule {path}: {why}; fetch its commit into the \
                 repository: git submodule update --init --recursive"
            )
        })?;
        check_out_submodules(&own, &laid)?;
    }
    Ok(())
}
