//! Lists, reads and checks the files that users name for a kernel.

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use hmac_sha256::Hash;
use toll_system::bounded::{open_bounded, read_bounded};

use super::fragment;

/// Largest patch or configuration fragment.
const TEXT_BYTES_MAX: u64 = 256 << 20;

/// Largest image, list of modules or source of a module.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// Lists the patches of a file or directory, by name.
pub(super) fn patches_of(path: &Path) -> Result<Vec<PathBuf>, String> {
    if path.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let entries = std::fs::read_dir(path)
        .map_err(|error| format!("{}: {error}; name a patch", path.display()))?;
    let mut found: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|end| end == "patch") && path.is_file())
        .collect();
    found.sort();
    if found.is_empty() {
        Err(format!("{} has no file NAME.patch", path.display()))
    } else {
        Ok(found)
    }
}

/// Reads and checks a configuration fragment.
///
/// # Errors
///
/// If the file cannot be read, or has a line that is neither a comment nor one setting.
pub(super) fn config_of(path: &Path) -> Result<Vec<u8>, String> {
    let content = text_of(path)?;
    fragment::check(&content).map_err(|why| format!("{}: {why}", path.display()))?;
    Ok(content)
}

/// Reads a patch or fragment.
pub(super) fn text_of(path: &Path) -> Result<Vec<u8>, String> {
    read_at_most(path, TEXT_BYTES_MAX)
}

/// Lists the sources of a module, without files that were built next to them.
pub(super) fn module_files(directory: &Path) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    let mut left = vec![directory.to_owned()];
    while let Some(directory) = left.pop() {
        let entries = std::fs::read_dir(&directory)
            .map_err(|error| format!("{}: {error}", directory.display()))?;
        for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let is_source = [".c", ".h", ".S"].iter().any(|end| name.ends_with(end));
            let is_made = name.ends_with(".mod.c");
            if path.is_dir() {
                left.push(path);
            } else if is_source && !is_made || name == "Kbuild" || name == "Makefile" {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Reads the release of an image (Documentation/arch/x86/boot.rst, `kernel_version`).
pub(super) fn release_of(image: &Path) -> Result<String, String> {
    let wrong = |why: &str| {
        format!(
            "{} is not an image of Linux for x86: {why}",
            image.display()
        )
    };
    let file = open_bounded(image, FILE_BYTES_MAX).map_err(|error| wrong(&error.to_string()))?;
    let read = |offset: u64, bytes: &mut [u8]| file.read_exact_at(bytes, offset);
    let mut magic = [0; 4];
    read(0x202, &mut magic).map_err(|error| wrong(&error.to_string()))?;
    if &magic != b"HdrS" {
        return Err(wrong("it has no boot header; name a bzImage"));
    }
    let mut pointer = [0; 2];
    read(0x20e, &mut pointer).map_err(|error| wrong(&error.to_string()))?;
    let mut text = [0; 128];
    read(0x200 + u64::from(u16::from_le_bytes(pointer)), &mut text)
        .map_err(|error| wrong(&error.to_string()))?;
    let text = String::from_utf8_lossy(&text).into_owned();
    let release = text.split([' ', '\0']).next().unwrap_or_default();
    if release.is_empty() {
        return Err(wrong("it does not name its release"));
    }
    check_word(release).map_err(|why| wrong(&format!("its release {why}")))?;
    Ok(release.to_owned())
}

/// Refuses a word that has another meaning in make, a shell or a path.
pub(super) fn check_word(word: &str) -> Result<(), String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._+~-".contains(c);
    if word.chars().all(is_plain) && !word.is_empty() && !word.starts_with(['-', '.']) {
        return Ok(());
    }
    Err(format!(
        "{word:?} is not a word of letters, digits and any of ._+~-"
    ))
}

/// Returns the hash of a file, or why there is none.
pub(super) fn file_hash(path: &Path) -> Result<[u8; 32], String> {
    Ok(Hash::hash(&read_at_most(path, FILE_BYTES_MAX)?))
}

fn read_at_most(path: &Path, bytes_max: u64) -> Result<Vec<u8>, String> {
    let read = open_bounded(path, bytes_max).and_then(|file| read_bounded(file, bytes_max));
    read.map_err(|error| {
        format!(
            "{}: {error}; define it again with toll kernel add",
            path.display()
        )
    })
}
