//! Finding the programs that are compared.

use std::path::{Path, PathBuf};

use crate::process;
use crate::program::{Convention, GNU_CAT, MEOW, Program, TWIN};

/// The release of uutils `cat` that is compared: pinned, so that a run can be
/// repeated.
const UUTILS_VERSION: &str = "0.12.0";

/// The programs of a run, and the peers it has to do without.
pub struct Programs {
    pub(crate) found: Vec<Program>,
    /// Names of peers that are missing, each with the reason.
    pub missing: Vec<(String, String)>,
}

/// Finds `meow`, its twin and every peer. Uutils `cat` is built and installed
/// into the user's cache directory if `may_install`, which takes minutes once.
///
/// # Errors
/// If `meow` is not a program.
pub fn find(meow: &Path, may_install: bool) -> Result<Programs, String> {
    let path = meow.canonicalize().map_err(|error| {
        format!(
            "cannot find {}: {error}; name the program with --meow",
            meow.display()
        )
    })?;
    let version = version(&path, &["--version"]).unwrap_or_else(|_| "unknown version".into());
    let cat = |name, path: &PathBuf, leading, version: &str| Program {
        name,
        path: path.clone(),
        leading,
        convention: Convention::Cat,
        version: version.to_owned(),
    };
    let mut programs = Programs {
        found: vec![
            cat(MEOW, &path, &[], &version),
            cat(TWIN, &path, &[], &version),
        ],
        missing: Vec::new(),
    };
    programs.add(
        GNU_CAT,
        &[],
        Convention::Cat,
        gnu(&["cat", "gnucat", "gcat"]),
    );
    programs.add("uutils cat", &[], Convention::Cat, uutils(may_install));
    programs.add(
        "busybox cat",
        &["cat"],
        Convention::Cat,
        in_path("busybox", &[]),
    );
    programs.add(
        "pv",
        &["-q"],
        Convention::Cat,
        in_path("pv", &["--version"]),
    );
    let block = &["bs=512K", "status=none"];
    programs.add("dd", block, Convention::Dd, gnu(&["dd", "gnudd", "gdd"]));
    programs.add("cp", &[], Convention::Cp, gnu(&["cp", "gnucp", "gcp"]));
    Ok(programs)
}

/// Path and version of a program, or why there is none.
type Found = Result<(PathBuf, String), String>;

impl Programs {
    fn add(
        &mut self,
        name: &'static str,
        leading: &'static [&'static str],
        convention: Convention,
        found: Found,
    ) {
        match found {
            Ok((path, version)) => self.found.push(Program {
                name,
                path,
                leading,
                convention,
                version,
            }),
            Err(reason) => self.missing.push((name.into(), reason)),
        }
    }
}

fn version(path: &Path, arguments: &[&str]) -> Result<String, String> {
    let output = process::output(process::command(path).args(arguments))?;
    let first = output.lines().next().unwrap_or("unknown version");
    Ok(first.to_owned())
}

fn in_path(name: &str, arguments: &[&str]) -> Found {
    let path = process::find(name)
        .ok_or_else(|| format!("{name} is missing; install the package {name}"))?;
    let version = version(&path, arguments)?;
    Ok((path, version))
}

/// The first of some names that is a program of GNU: on some systems the plain
/// name is another's.
fn gnu(names: &[&str]) -> Found {
    names
        .iter()
        .filter_map(|name| in_path(name, &["--version"]).ok())
        .find(|(_, version)| is_gnu(version))
        .ok_or_else(|| format!("no {} of GNU coreutils is installed", names[0]))
}

/// `dd` alone leaves "GNU" out.
fn is_gnu(version: &str) -> bool {
    version.contains("(GNU coreutils)") || version.contains("(coreutils)")
}

fn uutils(may_install: bool) -> Found {
    let root = cache_directory()?.join("toll").join("peers");
    let path = root.join("bin").join("cat");
    let is_pinned = |version: &String| version.ends_with(UUTILS_VERSION);
    if let Ok(version) = version(&path, &["--version"])
        && is_pinned(&version)
    {
        return Ok((path, version));
    }
    if !may_install {
        return Err(format!(
            "uu_cat {UUTILS_VERSION} is not in {}; leave --offline out once",
            root.display()
        ));
    }
    install_uutils(&root)?;
    let version = version(&path, &["--version"])?;
    Ok((path, version))
}

fn cache_directory() -> Result<PathBuf, String> {
    let named = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    named("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| named("HOME").map(|home| PathBuf::from(home).join(".cache")))
        .ok_or_else(|| "neither XDG_CACHE_HOME nor HOME is set".into())
}

fn install_uutils(root: &Path) -> Result<(), String> {
    std::fs::create_dir_all(root)
        .map_err(|error| format!("cannot make {}: {error}", root.display()))?;
    let cargo = process::find("cargo").ok_or("cargo is missing")?;
    let mut command = process::command(&cargo);
    command
        .args(["install", "uu_cat", "--locked", "--force", "--quiet"])
        .args(["--version", UUTILS_VERSION, "--root"])
        .arg(root)
        // As far from this workspace as can be: none of its configuration
        // shall shape a peer.
        .current_dir(root)
        // The release profile of uutils' own workspace, which a single crate
        // of it does not carry.
        .env("CARGO_PROFILE_RELEASE_LTO", "fat")
        .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "1")
        .env("CARGO_PROFILE_RELEASE_PANIC", "abort");
    for name in [
        "CARGO_BUILD_TARGET",
        "CARGO_ENCODED_RUSTFLAGS",
        "CARGO_TARGET_DIR",
        "RUSTFLAGS",
    ] {
        command.env_remove(name);
    }
    process::output(&mut command).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gnu_programs_are_told_from_others_by_what_they_say() {
        assert!(is_gnu("cat (GNU coreutils) 9.1"));
        assert!(is_gnu("dd (coreutils) 9.1"));
        assert!(!is_gnu("cat (uutils coreutils) 0.12.0"));
        assert!(!is_gnu("BusyBox v1.35.0 multi-call binary."));
    }

    #[test]
    fn a_meow_that_is_missing_is_an_error_and_its_option_named() {
        let error = find(Path::new("/no/such/meow"), false)
            .err()
            .expect("it is missing");
        assert!(error.contains("--meow"), "{error}");
    }

    #[test]
    fn whatever_is_missing_is_named_with_a_reason() {
        let programs = find(Path::new("/bin/cat"), false).expect("there is a cat");
        assert_eq!(programs.found.len() + programs.missing.len(), 8);
        assert!(
            programs
                .missing
                .iter()
                .all(|(_, reason)| !reason.is_empty())
        );
    }
}
