//! Collects the files that a program needs in a guest, which has no file of its own.
//!
//! Files are read and never executed, since the program may be anybody's.

use std::path::{Path, PathBuf};

use toll_system::process;

use super::libraries::Libraries;
use super::program_content::content_of;
use crate::count::{Linking, Programs};

pub use super::program_content::ProgramFiles;

/// Maximum nesting of directories in a tree.
const TREE_DEPTH_MAX: u32 = 64;

/// Maximum nesting of scripts as interpreters (execve(2)).
const INTERPRETERS_MAX: u32 = 4;

/// Finds a program as a shell does, and adds it with its interpreter and libraries.
/// Returns its path.
pub fn add_program(name: &str, files: &mut ProgramFiles) -> Result<PathBuf, String> {
    let found = if name.contains('/') {
        Some(PathBuf::from(name)).filter(|path| path.is_file())
    } else {
        process::find(name)
    };
    let path = found.ok_or_else(|| {
        format!(
            "cannot count {name}: there is no such program; put a command with its arguments in \
             quotes"
        )
    })?;
    let path = std::path::absolute(path).map_err(|error| format!("cannot find {name}: {error}"))?;
    add(&path, files, INTERPRETERS_MAX)?;
    Ok(path)
}

/// Adds files and all files below directories, each `PATH` or `PATH:GUEST_PATH`.
pub fn add_copied(
    paths: &[String],
    trees: &[String],
    files: &mut ProgramFiles,
) -> Result<(), String> {
    for path in paths {
        let (host, guest) = host_and_guest(path)?;
        if !host.is_file() {
            let shown = host.display();
            return Err(format!(
                "cannot copy {shown}: it is not a regular file; use --tree for a directory"
            ));
        }
        files.insert(guest, host);
    }
    for tree in trees {
        let (host, guest) = host_and_guest(tree)?;
        add_below(&host, &guest, TREE_DEPTH_MAX, files)?;
    }
    Ok(())
}

fn host_and_guest(text: &str) -> Result<(PathBuf, PathBuf), String> {
    let (host, guest) = match text.split_once(":/") {
        Some((host, guest)) => (host, Some(Path::new("/").join(guest))),
        None => (text, None),
    };
    let absolute = std::path::absolute(host);
    let host = absolute.map_err(|error| format!("cannot copy {host}: {error}"))?;
    let guest = guest.unwrap_or_else(|| host.clone());
    Ok((host, guest))
}

fn add_below(
    host: &Path,
    guest: &Path,
    depth: u32,
    files: &mut ProgramFiles,
) -> Result<(), String> {
    let cannot = |why: &dyn std::fmt::Display| format!("cannot copy {}: {why}", host.display());
    let deeper = depth
        .checked_sub(1)
        .ok_or_else(|| cannot(&"its directories are nested too deep; a link may point upwards"))?;
    for entry in std::fs::read_dir(host).map_err(|error| cannot(&error))? {
        let entry = entry.map_err(|error| cannot(&error))?;
        let (from, to) = (entry.path(), guest.join(entry.file_name()));
        // Follows links. Leaves out dangling links and sockets.
        match std::fs::metadata(&from) {
            Ok(found) if found.is_dir() => add_below(&from, &to, deeper, files)?,
            Ok(found) if found.is_file() => drop(files.insert(to, from)),
            _ => {}
        }
    }
    Ok(())
}

/// Reads the functions of all programs and libraries. The main program is named `program`, so that
/// two versions of it have the same function names. The guest's init is included, since some
/// hundred of its instructions are counted, too.
pub fn functions(
    files: &ProgramFiles,
    main: Option<&Path>,
    init: &Path,
) -> Result<Programs, String> {
    let read = |path: &Path| {
        let content = content_of(path);
        content.map_err(|error| format!("cannot read {}: {error}", path.display()))
    };
    let mut programs = Programs::default();
    programs.add_as_one("init", &read(init)?);
    for (guest, host) in files {
        let name = if main == Some(guest.as_path()) {
            "program".into()
        } else {
            guest.file_name().unwrap_or_default().to_string_lossy()
        };
        programs.add(&name, &read(host)?);
    }
    Ok(programs)
}

fn add(path: &Path, files: &mut ProgramFiles, depth: u32) -> Result<(), String> {
    let cannot = |why: &dyn std::fmt::Display| format!("cannot count {}: {why}", path.display());
    if files.insert(path.to_owned(), path.to_owned()).is_some() {
        return Ok(());
    }
    let content = content_of(path).map_err(|error| cannot(&error))?;
    if let Some(rest) = content.strip_prefix(b"#!") {
        let line = rest.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let line = String::from_utf8_lossy(line);
        let mut words = line.split_whitespace();
        let interpreter = words
            .next()
            .ok_or_else(|| cannot(&"its first line names no program"))?;
        let depth = depth
            .checked_sub(1)
            .ok_or_else(|| cannot(&"its interpreters are nested too deep"))?;
        let absolute = std::path::absolute(interpreter).map_err(|error| cannot(&error))?;
        add(&absolute, files, depth)?;
        // Options and assignments come before the program (env(1)).
        let program = words.find(|word| !word.starts_with('-') && !word.contains('='));
        if let (true, Some(program)) = (interpreter.ends_with("/env"), program) {
            add_program(program, files)?;
        }
        return Ok(());
    }
    if !content.starts_with(b"\x7fELF") {
        return Err(cannot(&"it is neither an ELF program nor a script"));
    }
    let linking = Linking::read(&content).map_err(|why| cannot(&why))?;
    if linking.interpreter.is_none() {
        return Ok(());
    }
    let libraries = Libraries::required_by(path, linking).map_err(|why| cannot(&why))?;
    files.extend(libraries);
    Ok(())
}
