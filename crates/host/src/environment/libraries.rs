//! Finds the shared libraries that a program loads in a guest, in the same way as the guest's
//! dynamic linker (ld.so(8)). Only reads files.
//!
//! A guest has no `LD_LIBRARY_PATH` and no `/etc/ld.so.preload`. Its CPU differs from the host's,
//! so it gets a library's variants for all CPUs.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::program_content::{ProgramFiles, content_of};
use crate::count::Linking;

/// The dynamic linker's cache of library paths (ldconfig(8)).
const LIBRARY_CACHE: &str = "/etc/ld.so.cache";

/// Largest cache that is read.
const CACHE_BYTES_MAX: u64 = 64 << 20;

/// Maximum number of libraries of a program.
const LIBRARIES_MAX: usize = 4096;

/// Maximum number of directories to search. A directory counts as often as it is named.
const DIRECTORIES_MAX: usize = 1 << 16;

/// Directories that glibc searches last: Debian's, then those of other distributions.
const DIRECTORIES: [&str; 6] = [
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
];

/// Directories that musl searches last, unless a file names others.
const MUSL_DIRECTORIES: &str = "/lib:/usr/local/lib:/usr/lib";

/// Prefixes of the names of libraries that are part of musl's dynamic linker.
const OF_MUSL: [&str; 7] = [
    "libc.",
    "libpthread.",
    "librt.",
    "libm.",
    "libdl.",
    "libutil.",
    "libxnet.",
];

/// Values of `$LIB` in a path.
const LIB: [&str; 3] = ["lib/x86_64-linux-gnu", "lib64", "lib"];

/// A directory to search: its path in a guest, and its path here.
#[derive(Debug, Clone)]
struct Place {
    guest: PathBuf,
    host: PathBuf,
}

impl Place {
    fn same(path: &Path) -> Self {
        Self {
            guest: path.to_owned(),
            host: path.to_owned(),
        }
    }
}

/// A file whose libraries are still to be found.
#[derive(Debug)]
struct Loaded {
    path: PathBuf,
    needed: Vec<String>,
    /// The file's own search directories.
    own: Vec<Place>,
    /// Search directories that the file passes on to the libraries that it needs.
    inherited: Vec<Place>,
}

/// The search for the libraries of one program.
#[derive(Debug)]
pub(super) struct Libraries {
    files: ProgramFiles,
    kind: (bool, u16),
    interpreter: PathBuf,
    is_musl: bool,
    cache: BTreeMap<String, Vec<PathBuf>>,
    directories: Vec<Place>,
    left: Vec<Loaded>,
}

impl Libraries {
    /// Finds the interpreter and all libraries of a program, with the files by which the guest's
    /// interpreter finds them.
    ///
    /// # Errors
    ///
    /// If a file is missing.
    pub fn required_by(program: &Path, linking: Linking) -> Result<ProgramFiles, String> {
        let interpreter = linking.interpreter.as_deref().unwrap_or_default();
        let interpreter = std::path::absolute(interpreter)
            .map_err(|error| format!("its interpreter {interpreter:?}: {error}"))?;
        let cannot = |why: &str| format!("its interpreter {} {why}", interpreter.display());
        if !interpreter.is_file() {
            return Err(cannot("is missing; install it"));
        }
        let content = content_of(&interpreter).map_err(|error| cannot(&error.to_string()))?;
        if Linking::read(&content).map(|found| found.kind) != Ok(linking.kind) {
            return Err(cannot("is not an ELF program of the same kind"));
        }
        let name = interpreter.file_name().unwrap_or_default();
        let name = name.to_string_lossy();
        let mut search = Self {
            files: ProgramFiles::new(),
            kind: linking.kind,
            is_musl: name.starts_with("ld-musl-"),
            interpreter: interpreter.clone(),
            cache: BTreeMap::new(),
            directories: Vec::new(),
            left: Vec::new(),
        };
        search.take(interpreter.clone(), interpreter.clone());
        search.find_directories(&name)?;
        search.load(program, linking, &[]);
        while let Some(loaded) = search.left.pop() {
            for needed in &loaded.needed {
                search.find(needed, &loaded)?;
            }
            if search.files.len() > LIBRARIES_MAX {
                return Err(format!("it needs more than {LIBRARIES_MAX} libraries"));
            }
            // Each library passes its search directories on.
            let inherited = search.left.iter().map(|one| one.inherited.len());
            if inherited.sum::<usize>() > DIRECTORIES_MAX {
                return Err(format!(
                    "its libraries name more than {DIRECTORIES_MAX} directories"
                ));
            }
        }
        Ok(search.files)
    }

    fn take(&mut self, guest: PathBuf, host: PathBuf) -> bool {
        self.files.insert(guest, host).is_none()
    }

    /// Records the default library directories, and adds the files that name them.
    fn find_directories(&mut self, interpreter: &str) -> Result<(), String> {
        if self.is_musl {
            // ld-musl-x86_64.so.1 reads ld-musl-x86_64.path.
            let stem = interpreter.split(".so").next().unwrap_or_default();
            let list = PathBuf::from(format!("/etc/{stem}.path"));
            let text = fs::read_to_string(&list);
            if text.is_ok() {
                self.take(list.clone(), list);
            }
            let text = text.unwrap_or_else(|_| MUSL_DIRECTORIES.to_owned());
            let named = text.split([':', '\n']).filter(|path| !path.is_empty());
            self.directories = named.map(|path| Place::same(Path::new(path))).collect();
            return Ok(());
        }
        let is_there = fs::metadata(LIBRARY_CACHE).ok();
        if let Some(found) = is_there.filter(fs::Metadata::is_file) {
            if found.len() > CACHE_BYTES_MAX {
                return Err(format!(
                    "{LIBRARY_CACHE} is larger than 64 MiB; run ldconfig"
                ));
            }
            let bytes = fs::read(LIBRARY_CACHE).map_err(|error| error.to_string())?;
            self.cache = entries(&bytes);
            self.take(LIBRARY_CACHE.into(), LIBRARY_CACHE.into());
        }
        let beside = self.interpreter.parent().map(Path::to_owned);
        let places = DIRECTORIES.iter().map(PathBuf::from).chain(beside);
        self.directories = places.map(|path| Place::same(&path)).collect();
        Ok(())
    }

    /// Queues a file whose libraries are to be found. `inherited` has the search directories that
    /// the file which needs this one passes on.
    fn load(&mut self, path: &Path, linking: Linking, inherited: &[Place]) {
        let places = |paths: &[String]| {
            let expanded = paths.iter().flat_map(|one| expand(one, path));
            expanded.collect::<Vec<Place>>()
        };
        let (mut handed_on, mut own) = (places(&linking.rpath), places(&linking.runpath));
        // musl treats both kinds of search paths alike.
        if self.is_musl {
            handed_on.append(&mut own);
        }
        handed_on.extend_from_slice(inherited);
        self.left.push(Loaded {
            path: path.to_owned(),
            needed: linking.needed,
            own,
            inherited: handed_on,
        });
    }

    /// Finds a library that a file needs, with its variants for CPUs.
    fn find(&mut self, name: &str, by: &Loaded) -> Result<(), String> {
        if self.is_brought_by_interpreter(name) {
            return Ok(());
        }
        if name.contains('/') {
            let path = std::path::absolute(name).map_err(|error| format!("{name}: {error}"))?;
            let found = self.linking(&path);
            let linking = found.ok_or_else(|| missing(name, by))?;
            self.found(Place::same(&path), linking, by);
            return Ok(());
        }
        // A file with its own search directories ignores inherited ones (ld.so(8)).
        let inherited = if by.own.is_empty() {
            &by.inherited[..]
        } else {
            &[]
        };
        let first: Vec<Place> = inherited.iter().chain(&by.own).cloned().collect();
        if self.find_below(&first, name, by) {
            return Ok(());
        }
        let cached = self.cache.get(name).cloned().unwrap_or_default();
        let mut is_found = false;
        for path in cached {
            if let Some(linking) = self.linking(&path) {
                self.found(Place::same(&path), linking, by);
                is_found = true;
            }
        }
        let last = self.directories.clone();
        if is_found || self.find_below(&last, name, by) {
            return Ok(());
        }
        Err(missing(name, by))
    }

    fn is_brought_by_interpreter(&self, name: &str) -> bool {
        let own = self.interpreter.file_name();
        own == Some(OsStr::new(name))
            || self.is_musl && OF_MUSL.iter().any(|begin| name.starts_with(begin))
    }

    /// Takes a library from the first directory that has it.
    fn find_below(&mut self, places: &[Place], name: &str, by: &Loaded) -> bool {
        for place in places {
            let mut is_found = false;
            for below in variants(&place.host) {
                let host = place.host.join(&below).join(name);
                if let Some(linking) = self.linking(&host) {
                    let guest = place.guest.join(&below).join(name);
                    self.found(Place { guest, host }, linking, by);
                    is_found = true;
                }
            }
            if is_found {
                return true;
            }
        }
        false
    }

    fn found(&mut self, library: Place, linking: Linking, by: &Loaded) {
        if self.take(library.guest.clone(), library.host) {
            self.load(&library.guest, linking, &by.inherited);
        }
    }

    /// Reads what a file needs; `None` if it is not a library of the program's kind.
    fn linking(&self, path: &Path) -> Option<Linking> {
        let linking = Linking::read(&content_of(path).ok()?).ok()?;
        (linking.kind == self.kind).then_some(linking)
    }
}

fn missing(name: &str, by: &Loaded) -> String {
    let by = by.path.display();
    format!("{name}, which {by} needs, is not found; install it")
}

/// Lists the directory itself, as an empty path, and its subdirectories for kinds of CPUs.
fn variants(directory: &Path) -> Vec<PathBuf> {
    let below = fs::read_dir(directory.join("glibc-hwcaps"));
    let names = below.into_iter().flatten().flatten();
    let variants = names.map(|entry| Path::new("glibc-hwcaps").join(entry.file_name()));
    std::iter::once(PathBuf::new()).chain(variants).collect()
}

/// Expands a search path of a program to directories.
fn expand(path: &str, program: &Path) -> Vec<Place> {
    let parent = |path: &Path| path.parent().unwrap_or(path).to_owned();
    // A program finds its own directory by /proc/self/exe, which follows links. A guest has
    // a file in place of the link.
    let real = fs::canonicalize(program);
    let real = real.map_or_else(|_| parent(program), |real| parent(&real));
    let here = parent(program);
    let mut places = Vec::new();
    for lib in LIB {
        let path = path.replace("${LIB}", "$LIB").replace("$LIB", lib);
        let path = path.replace("${ORIGIN}", "$ORIGIN");
        let with =
            |origin: &Path| PathBuf::from(path.replace("$ORIGIN", &origin.to_string_lossy()));
        let guest = with(&here);
        for host in [with(&here), with(&real)] {
            // This program does not know the other tokens that the linker would expand.
            if guest.is_absolute() && !path.replace("$ORIGIN", "").contains('$') {
                places.push(Place {
                    guest: guest.clone(),
                    host,
                });
            }
        }
    }
    places.dedup_by(|a, b| a.host == b.host && a.guest == b.guest);
    places
}

/// Reads libraries by name from ldconfig's cache (`struct cache_file_new` in glibc's
/// sysdeps/generic/dl-cache.h). A damaged cache yields no libraries.
fn entries(bytes: &[u8]) -> BTreeMap<String, Vec<PathBuf>> {
    const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
    const HEAD_BYTES: usize = 48;
    const ENTRY_BYTES: usize = 24;
    let mut found: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    // Older versions of ldconfig put a list for older linkers first.
    let Some(begin) = bytes.windows(MAGIC.len()).position(|here| here == MAGIC) else {
        return found;
    };
    let bytes = &bytes[begin..];
    let word = |at: usize| {
        let word = bytes.get(at..at.checked_add(4)?)?;
        Some(u32::from_ne_bytes(word.try_into().ok()?) as usize)
    };
    let text = |at: usize| bytes.get(at..)?.split(|byte| *byte == 0).next();
    let count = word(MAGIC.len()).unwrap_or_default();
    let count = count.min(bytes.len() / ENTRY_BYTES);
    for index in 0..count {
        let at = HEAD_BYTES + index * ENTRY_BYTES;
        let named = word(at + 4).and_then(text).zip(word(at + 8).and_then(text));
        let Some((name, path)) = named else {
            continue;
        };
        let path = PathBuf::from(OsStr::from_bytes(path));
        if path.is_absolute() {
            let name = String::from_utf8_lossy(name).into_owned();
            found.entry(name).or_default().push(path);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_this_machine_names_its_c_library() {
        let Ok(bytes) = fs::read(LIBRARY_CACHE) else {
            return;
        };
        let known = entries(&bytes);
        assert!(known["libc.so.6"].iter().any(|path| path.is_file()));
        // A damaged cache names fewer, and nothing panics.
        for cut in [0, 10, 30, 60, bytes.len() / 2] {
            assert!(entries(&bytes[..cut]).len() <= known.len());
        }
    }

    #[test]
    fn a_path_of_a_program_is_expanded_from_its_own_place() {
        let shown = |path: &str| {
            let places = expand(path, Path::new("/no/such/bin/program"));
            let shown = places.iter().map(|place| place.guest.display().to_string());
            shown.collect::<Vec<_>>()
        };
        assert_eq!(shown("$ORIGIN/../lib")[0], "/no/such/bin/../lib");
        assert_eq!(shown("${ORIGIN}")[0], "/no/such/bin");
        assert!(shown("/opt/$LIB").contains(&"/opt/lib64".to_owned()));
        assert_eq!(shown("/opt/$PLATFORM"), [""; 0]);
        assert_eq!(shown("relative"), [""; 0]);
    }
}
