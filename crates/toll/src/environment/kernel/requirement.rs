//! What must be installed to build a kernel.

use std::path::{Path, PathBuf};

use super::{BuildError, Variant};

/// Something to build with, and the Debian package that has it.
#[derive(Debug, Clone, Copy)]
struct Requirement {
    need: Need,
    package: &'static str,
}

#[derive(Debug, Clone, Copy)]
enum Need {
    /// A program in `PATH`.
    Program(&'static str),
    /// A header below the system's include directory.
    Header(&'static str),
}

const fn program(name: &'static str, package: &'static str) -> Requirement {
    Requirement {
        need: Need::Program(name),
        package,
    }
}

const COMMON: &[Requirement] = &[
    program("apt-cache", "apt"),
    program("apt-get", "apt"),
    program("dpkg-deb", "dpkg"),
    program("sha256sum", "coreutils"),
    program("gcc", "gcc"),
    program("ld", "binutils"),
    program("make", "make"),
];

const FROM_SOURCE: &[Requirement] = &[
    program("bc", "bc"),
    program("bison", "bison"),
    program("flex", "flex"),
    program("patch", "patch"),
    program("tar", "tar"),
    program("xz", "xz-utils"),
    Requirement {
        need: Need::Header("gelf.h"),
        package: "libelf-dev",
    },
];

const STOCK: &[Requirement] = &[program("depmod", "kmod"), program("xz", "xz-utils")];

/// Checks that all is there that these variants are built with.
///
/// # Errors
/// If something is missing: all of it at once, with the command that installs
/// it.
pub(super) fn check(variants: &[Variant]) -> Result<(), BuildError> {
    let is_needed = |variant: &Variant| variants.contains(variant);
    let mut needed = COMMON.to_vec();
    if is_needed(&Variant::Toll) || is_needed(&Variant::Debug) {
        needed.extend(FROM_SOURCE);
    }
    if is_needed(&Variant::Stock) {
        needed.extend(STOCK);
    }
    let is_missing = |requirement: &Requirement| match requirement.need {
        Need::Program(name) => find(name).is_none(),
        Need::Header(name) => !has_header(name),
    };
    needed.retain(is_missing);
    match explain(&needed) {
        None => Ok(()),
        Some(message) => Err(BuildError::Prerequisite(message)),
    }
}

/// Checks for the compiler that a stock kernel's headers ask for, such as
/// `gcc-12`, whose package has the same name.
pub(super) fn check_compiler(name: &str) -> Result<(), BuildError> {
    match find(name) {
        Some(_) => Ok(()),
        None => Err(BuildError::Prerequisite(format!(
            "cannot build: {name} is missing; install it as root: apt-get install {name}"
        ))),
    }
}

fn explain(missing: &[Requirement]) -> Option<String> {
    if missing.is_empty() {
        return None;
    }
    let names: Vec<&str> = missing
        .iter()
        .map(|requirement| match requirement.need {
            Need::Program(name) | Need::Header(name) => name,
        })
        .collect();
    let mut packages: Vec<&str> = missing
        .iter()
        .map(|requirement| requirement.package)
        .collect();
    packages.sort_unstable();
    packages.dedup();
    let are = if names.len() == 1 { "is" } else { "are" };
    Some(format!(
        "cannot build: {} {are} missing; install what has them as root: apt-get install \
         --no-install-recommends {}",
        names.join(", "),
        packages.join(" ")
    ))
}

/// The path of a program. Not only this one looks for it, but the kernel's
/// build, too, so `PATH` decides; what is root's alone is run by its path.
pub(super) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let of_root = (program == "depmod").then_some(["/usr/sbin", "/sbin"]);
    std::env::split_paths(&path)
        .chain(of_root.into_iter().flatten().map(PathBuf::from))
        .map(|directory| directory.join(program))
        .find(|candidate| candidate.is_file())
}

fn has_header(name: &str) -> bool {
    [
        "/usr/include",
        "/usr/local/include",
        "/usr/include/x86_64-linux-gnu",
    ]
    .iter()
    .any(|directory| Path::new(directory).join(name).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_missing_is_named_at_once_each_package_once() {
        let message = explain(&[COMMON[0], COMMON[1], FROM_SOURCE[6]]).unwrap();
        assert_eq!(
            message,
            "cannot build: apt-cache, apt-get, gelf.h are missing; install what has them as root: \
             apt-get install --no-install-recommends apt libelf-dev"
        );
        assert_eq!(explain(&[]), None);
    }
}
