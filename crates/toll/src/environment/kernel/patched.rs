//! Changing a source tree from one set of patches to another.
//!
//! Patches are applied to copies of the original files, and only files that
//! then differ are written into the tree. Make thus compiles what depends on
//! the change, seconds instead of minutes, and an interruption costs nothing:
//! the originals are laid aside before anything is written.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::BuildError;
use super::job::Jobs;
use super::package::{empty_directory, make_directory};

/// A patch: its file name and its text.
pub(super) type Patch<'a> = (&'a str, &'a [u8]);

/// A source tree with what is kept beside it.
pub(super) struct PatchedTree {
    /// The tree.
    pub tree: PathBuf,
    /// Files as they were unpacked, each before a patch first changed it. A
    /// file that there was none of has an empty mark below `absent`.
    pub aside: PathBuf,
}

impl PatchedTree {
    /// Brings the tree to these patches.
    ///
    /// # Errors
    /// If one does not fit, or files cannot be written.
    pub fn bring_to(&self, jobs: &mut Jobs<'_>, patches: &[Patch<'_>]) -> Result<(), BuildError> {
        let (originals, absent) = (self.aside.join("originals"), self.aside.join("absent"));
        for directory in [&originals, &absent] {
            make_directory(directory)?;
        }
        for path in patches
            .iter()
            .flat_map(|(_, text)| touched(&String::from_utf8_lossy(text)))
        {
            self.lay_aside(&path, &originals, &absent)?;
        }
        let scratch = self.aside.join("scratch");
        empty_directory(&scratch)?;
        let kept = files(&originals)?;
        for path in &kept {
            put(&originals.join(path), &scratch.join(path))?;
        }
        self.apply(jobs, patches, &scratch)?;
        for path in kept.union(&files(&absent)?) {
            update(&scratch.join(path), &self.tree.join(path))?;
        }
        Ok(())
    }

    /// What is in neither place was never changed by a patch.
    fn lay_aside(&self, path: &Path, originals: &Path, absent: &Path) -> Result<(), BuildError> {
        let (original, mark) = (originals.join(path), absent.join(path));
        if original.is_file() || mark.is_file() {
            return Ok(());
        }
        match self.tree.join(path) {
            file if file.is_file() => put(&file, &original),
            _ => put(Path::new("/dev/null"), &mark),
        }
    }

    fn apply(
        &self,
        jobs: &mut Jobs<'_>,
        patches: &[Patch<'_>],
        scratch: &Path,
    ) -> Result<(), BuildError> {
        for (name, text) in patches {
            jobs.observer.step(&format!("applying {name}"));
            let file = self.aside.join(name);
            std::fs::write(&file, text).map_err(|error| BuildError::file(&file, &error))?;
            // What is left of a file that did not fit would be a wrong kernel.
            let options = [
                "-p1",
                "--forward",
                "--batch",
                "--no-backup-if-mismatch",
                "-i",
            ];
            let arguments = [&options.map(OsStr::new)[..], &[file.as_os_str()]].concat();
            jobs.run(scratch, "patch", &arguments, &[])?;
        }
        Ok(())
    }
}

/// The files that a patch changes, makes or removes.
fn touched(patch: &str) -> BTreeSet<PathBuf> {
    let path = |line: &str| {
        let rest = line
            .strip_prefix("--- ")
            .or_else(|| line.strip_prefix("+++ "))?;
        let rest = rest
            .strip_prefix("a/")
            .or_else(|| rest.strip_prefix("b/"))?;
        Some(PathBuf::from(rest.split('\t').next()?))
    };
    // A removed line may begin with `--`, but a header's follow each other.
    let lines: Vec<&str> = patch.lines().collect();
    lines
        .windows(2)
        .filter(|pair| pair[0].starts_with("--- ") && pair[1].starts_with("+++ "))
        .flat_map(|pair| [path(pair[0]), path(pair[1])])
        .flatten()
        .collect()
}

/// The files below a directory, by their paths from there.
fn files(directory: &Path) -> Result<BTreeSet<PathBuf>, BuildError> {
    let mut found = BTreeSet::new();
    let mut left = vec![directory.to_owned()];
    while let Some(place) = left.pop() {
        let entries =
            std::fs::read_dir(&place).map_err(|error| BuildError::file(&place, &error))?;
        for entry in entries {
            let path = entry
                .map_err(|error| BuildError::file(&place, &error))?
                .path();
            if path.is_dir() {
                left.push(path);
            } else if let Ok(inside) = path.strip_prefix(directory) {
                found.insert(inside.to_owned());
            }
        }
    }
    Ok(found)
}

/// Copies a file, whole or not at all.
fn put(from: &Path, to: &Path) -> Result<(), BuildError> {
    make_directory(to.parent().unwrap_or(to))?;
    let mut partial = to.as_os_str().to_owned();
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    let copy = || -> std::io::Result<()> {
        std::fs::write(&partial, std::fs::read(from)?)?;
        if from.is_file() {
            std::fs::set_permissions(&partial, from.metadata()?.permissions())?;
        }
        std::fs::rename(&partial, to)
    };
    copy().map_err(|error| BuildError::file(to, &error))
}

/// Makes a file what another is; one that is the same already keeps its time.
fn update(wanted: &Path, file: &Path) -> Result<(), BuildError> {
    let (Ok(content), is_there) = (std::fs::read(wanted), file.exists()) else {
        return match std::fs::remove_file(file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(BuildError::file(file, &error))
            }
            _ => Ok(()),
        };
    };
    if is_there && std::fs::read(file).is_ok_and(|has| has == content) {
        return Ok(());
    }
    put(wanted, file)
}

#[cfg(test)]
mod tests {
    use super::super::job::BuildObserver;
    use super::*;

    struct Silent;

    impl BuildObserver for Silent {
        fn step(&mut self, _: &str) {}
        fn compiled(&mut self, _: u64, _: u64) {}
        fn is_interrupted(&self) -> bool {
            false
        }
    }

    const CHANGE: &[u8] = b"Subject: change\n\n--- a/one.c\n+++ b/one.c\n@@ -1 +1 @@\n-one\n+uno\n";
    const MAKE: &[u8] = b"--- /dev/null\n+++ b/new/two.c\n@@ -0,0 +1 @@\n+two\n";

    fn tree() -> (tempfile::TempDir, PatchedTree) {
        let directory = tempfile::tempdir().unwrap();
        let place = PatchedTree {
            tree: directory.path().join("tree"),
            aside: directory.path().join("aside"),
        };
        std::fs::create_dir_all(&place.tree).unwrap();
        std::fs::create_dir_all(&place.aside).unwrap();
        std::fs::write(place.tree.join("one.c"), "one\n").unwrap();
        (directory, place)
    }

    fn bring(place: &PatchedTree, patches: &[Patch<'_>]) -> Result<(), BuildError> {
        let mut silent = Silent;
        let mut jobs = Jobs::new(&place.aside.join("log"), &mut silent).unwrap();
        place.bring_to(&mut jobs, patches)
    }

    #[test]
    fn a_tree_goes_from_any_set_of_patches_to_any_other() {
        let (_directory, place) = tree();
        let text = |name: &str| std::fs::read_to_string(place.tree.join(name)).ok();
        bring(&place, &[("1.patch", CHANGE), ("2.patch", MAKE)]).unwrap();
        assert_eq!(text("one.c").as_deref(), Some("uno\n"));
        assert_eq!(text("new/two.c").as_deref(), Some("two\n"));
        bring(&place, &[("2.patch", MAKE)]).unwrap();
        assert_eq!(text("one.c").as_deref(), Some("one\n"));
        assert_eq!(text("new/two.c").as_deref(), Some("two\n"));
        bring(&place, &[]).unwrap();
        assert_eq!(text("new/two.c"), None);
    }

    #[test]
    fn what_stays_the_same_is_not_written_again() {
        let (_directory, place) = tree();
        let time = || {
            place
                .tree
                .join("one.c")
                .metadata()
                .unwrap()
                .modified()
                .unwrap()
        };
        bring(&place, &[("1.patch", CHANGE)]).unwrap();
        let before = time();
        bring(&place, &[("1.patch", CHANGE), ("2.patch", MAKE)]).unwrap();
        assert_eq!(time(), before);
    }

    #[test]
    fn a_patch_that_does_not_fit_leaves_the_tree_alone() {
        let (_directory, place) = tree();
        let twice = [("1.patch", CHANGE), ("again.patch", CHANGE)];
        let error = bring(&place, &twice).unwrap_err();
        assert!(error.to_string().contains("again.patch"), "{error}");
        let text = std::fs::read_to_string(place.tree.join("one.c")).unwrap();
        assert_eq!(text, "one\n");
    }

    #[test]
    fn a_removed_line_of_dashes_is_no_header() {
        let patch = "--- a/x.sql\n+++ b/x.sql\n@@ -1,2 +1 @@\n--- a/remark\n-y\n+++ z\n";
        assert_eq!(touched(patch), [PathBuf::from("x.sql")].into());
    }
}
