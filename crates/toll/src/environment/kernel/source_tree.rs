//! The pinned kernel's source: fetched, unpacked, patched.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::job::Jobs;
use super::package::{Package, empty_directory, make_directory, remove, unpack};
use super::patched::{Patch, PatchedTree};
use super::{BuildError, Variant, recipe};

/// Room for an unpacked source and a build tree, with some to spare.
const FREE_BYTES_NEEDED: u64 = 3 << 30;

/// The name of a package's tree.
pub(super) fn name(package: &Package) -> String {
    format!("{}-{}", package.name, package.version)
}

/// The tree with this program's patches. It gets its name when it is whole, so
/// that an interrupted attempt is made anew.
pub(super) fn prepare(
    jobs: &mut Jobs<'_>,
    package: &Package,
    work: &Path,
) -> Result<PathBuf, BuildError> {
    let tree = work.join("source").join(name(package));
    if !tree.is_dir() {
        check_room(work)?;
        let packages = work.join("packages");
        make_directory(&packages)?;
        let deb = package.fetch(jobs, &packages)?;
        unpack_source(jobs, package, &deb, &tree)?;
    }
    let patched = PatchedTree {
        aside: work
            .join("source")
            .join(format!("{}.patching", name(package))),
        tree,
    };
    let base_name = |path: &'static str| path.rsplit('/').next().unwrap_or(path);
    let patches: Vec<Patch<'_>> = recipe::patches(Variant::Toll)
        .map(|(path, text)| (base_name(path), *text))
        .collect();
    patched.bring_to(jobs, &patches)?;
    Ok(patched.tree)
}

fn unpack_source(
    jobs: &mut Jobs<'_>,
    package: &Package,
    deb: &Path,
    tree: &Path,
) -> Result<(), BuildError> {
    let partial = tree.with_file_name("partial");
    empty_directory(&partial)?;
    jobs.observer
        .step(&format!("unpacking {}", package.identity()));
    let outer = partial.join("package");
    unpack(jobs, deb, &outer)?;
    let archive = outer.join(format!("usr/src/{}.tar.xz", package.name));
    let arguments = [
        // Two thirds of the time where there are two CPUs.
        OsStr::new("--use-compress-program=xz -T0"),
        OsStr::new("-xf"),
        archive.as_os_str(),
    ];
    jobs.run(&partial, "tar", &arguments, &[])?;
    let unpacked = partial.join(&package.name);
    std::fs::rename(&unpacked, tree).map_err(|error| BuildError::file(tree, &error))?;
    remove(&partial)
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
