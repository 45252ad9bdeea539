//! The pinned kernel's source: fetched, unpacked, patched.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::package::{Package, empty_directory, make_directory, remove, unpack};
use super::recipe::{self, Digest};
use super::{BuildError, Variant};
use crate::environment::kernel::job::Jobs;

/// Room for an unpacked source and a build tree, with some to spare.
const FREE_BYTES_NEEDED: u64 = 3 << 30;

/// The name of the tree that a package and this program's patches make.
pub(super) fn name(package: &Package) -> String {
    format!("{}-{}-{}", package.name, package.version, patches_hash())
}

/// Tells one set of patches from another.
pub(super) fn patches_hash() -> String {
    recipe::patches(Variant::Toll)
        .fold(Digest::default(), Digest::add_file)
        .hex()
}

/// The tree, made unless it is there. It gets its name when it is whole, so
/// that an interrupted attempt is made anew.
pub(super) fn prepare(
    jobs: &mut Jobs<'_>,
    package: &Package,
    work: &Path,
) -> Result<PathBuf, BuildError> {
    let tree = work.join("source").join(name(package));
    if tree.is_dir() {
        return Ok(tree);
    }
    check_room(work)?;
    let packages = work.join("packages");
    make_directory(&packages)?;
    let deb = package.fetch(jobs, &packages)?;
    let partial = work.join("source/partial");
    empty_directory(&partial)?;
    jobs.observer
        .step(&format!("unpacking {}", package.identity()));
    let outer = partial.join("package");
    unpack(jobs, &deb, &outer)?;
    let archive = outer.join(format!("usr/src/{}.tar.xz", package.name));
    let arguments = [
        // Two thirds of the time where there are two CPUs.
        OsStr::new("--use-compress-program=xz -T0"),
        OsStr::new("-xf"),
        archive.as_os_str(),
    ];
    jobs.run(&partial, "tar", &arguments, &[])?;
    let unpacked = partial.join(&package.name);
    apply_patches(jobs, &unpacked, &partial)?;
    std::fs::rename(&unpacked, &tree).map_err(|error| BuildError::file(&tree, &error))?;
    remove(&partial)?;
    Ok(tree)
}

fn apply_patches(jobs: &mut Jobs<'_>, tree: &Path, partial: &Path) -> Result<(), BuildError> {
    for (path, content) in recipe::patches(Variant::Toll) {
        let name = path.rsplit('/').next().unwrap_or(path);
        jobs.observer.step(&format!("applying {name}"));
        let file = partial.join(name);
        std::fs::write(&file, content).map_err(|error| BuildError::file(&file, &error))?;
        let arguments = ["-p1", "--forward", "--batch", "-i"].map(OsStr::new);
        let arguments = [&arguments[..], &[file.as_os_str()]].concat();
        jobs.run(tree, "patch", &arguments, &[])?;
    }
    Ok(())
}

fn check_room(work: &Path) -> Result<(), BuildError> {
    let space = rustix::fs::statvfs(work).map_err(|error| BuildError::file(work, &error.into()))?;
    let free = space.f_bavail * space.f_frsize;
    if free < FREE_BYTES_NEEDED {
        return Err(BuildError::Prerequisite(format!(
            "cannot build: {:.1} GiB are free in {}, and source and build tree take about {} GiB; \
             make room, or set XDG_CACHE_HOME to a place with more",
            free as f64 / f64::from(1 << 30),
            work.display(),
            FREE_BYTES_NEEDED >> 30
        )));
    }
    Ok(())
}
