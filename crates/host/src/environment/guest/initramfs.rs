//! The archive from which a guest boots: its init, modules, further files.
//!
//! It is a cpio archive in the format "newc", which the kernel unpacks
//! (Documentation/driver-api/early-userspace/buffer-format.rst). Writing it here
//! needs neither cpio nor root: devices are just entries.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use toll_system::bounded::{open_bounded, read_bounded};
use toll_system::process;
use toll_wire::guest::{
    BOOT_MODULES_DIRECTORY, COUNT_FILE, GuestAction, GuestRequest, MODULES_DIRECTORY,
    TRIAL_MODULES_DIRECTORY,
};

use super::spec::GuestSpec;

/// The program that contains many programs.
const BUSYBOX: &str = "busybox";

/// First bytes of a program that the kernel starts without an interpreter.
const ELF: &[u8] = b"\x7fELF";

/// Largest size of a file in an archive.
const FILE_BYTES_MAX: u64 = u32::MAX as u64;

/// Name of the entry that ends an archive.
const TRAILER: &str = "TRAILER!!!";

/// Longest name that the kernel unpacks (PATH_MAX without the final zero).
const NAME_BYTES_MAX: usize = 4095;

const MODE_DIRECTORY: u32 = 0o040_755;
const MODE_FILE: u32 = 0o100_000;
const MODE_LINK: u32 = 0o120_777;
const MODE_CHARACTER_DEVICE: u32 = 0o020_600;

/// Writes the archive of a guest.
pub(super) fn write(spec: &GuestSpec, path: &Path) -> Result<(), String> {
    let mut archive = Archive::default();
    // The first process has the console as its standard streams.
    archive.entry("/dev/console", MODE_CHARACTER_DEVICE, (5, 1), b"");
    archive.entry("/dev/null", MODE_CHARACTER_DEVICE, (1, 3), b"");
    check_probe(&spec.probe)?;
    archive.host_file("/init", &spec.probe)?;
    for module in &spec.kernel.modules {
        let name = format!("{MODULES_DIRECTORY}/{}", file_name(module));
        archive.host_file(&name, module)?;
    }
    for (directory, modules) in [
        (BOOT_MODULES_DIRECTORY, &spec.kernel.boot_modules),
        (TRIAL_MODULES_DIRECTORY, &spec.kernel.trial_modules),
    ] {
        for (number, module) in modules.iter().enumerate() {
            let name = format!("{directory}/{number:03}-{}", file_name(module));
            archive.host_file(&name, module)?;
        }
    }
    // A command that is counted must not find another program under the name of a
    // host program.
    if let Some(counted) = &spec.counted {
        let action = GuestAction::Count(Box::new(counted.clone()));
        let request = toll_wire::encode(&GuestRequest::new(action));
        archive.entry(COUNT_FILE, MODE_FILE | 0o600, (0, 0), request.as_bytes());
        archive.directories_above(&counted.directory.join("x"));
    } else if let Some((program, applets)) = static_busybox() {
        archive.host_file("/bin/busybox", &program)?;
        for applet in applets {
            archive.entry(
                format!("/bin/{applet}"),
                MODE_LINK,
                (0, 0),
                BUSYBOX.as_bytes(),
            );
        }
    }
    for (host, guest) in &spec.extra_files {
        archive.host_file(guest, host)?;
    }
    fs::write(path, archive.finish())
        .map_err(|error| format!("cannot write {}: {error}", path.display()))
}

/// Refuses a probe that needs libraries: without them the guest's kernel panics, and gives no
/// reason.
fn check_probe(path: &Path) -> Result<(), String> {
    let is_dynamic = fs::read(path).is_ok_and(|elf| has_interpreter(&elf));
    if is_dynamic {
        Err(format!(
            "cannot start a guest: {} is linked dynamically, and guests have no libraries; \
             install toll from a package, or build it with \
             RUSTFLAGS='-C target-feature=+crt-static' and --target",
            path.display()
        ))
    } else {
        Ok(())
    }
}

fn file_name(path: &Path) -> std::borrow::Cow<'_, str> {
    path.file_name().unwrap_or_default().to_string_lossy()
}

/// Finds a busybox that runs without libraries, since guests have none. Returns its path and the
/// names of its applets.
fn static_busybox() -> Option<(PathBuf, Vec<String>)> {
    let program = process::find(BUSYBOX)?;
    let content = fs::read(&program).ok()?;
    if !content.starts_with(ELF) || has_interpreter(&content) {
        return None;
    }
    let list = process::run(&program.to_string_lossy(), &["--list".as_ref()]).ok()?;
    // busybox lists itself, too.
    let applets = list.lines().filter(|applet| *applet != BUSYBOX);
    Some((program, applets.map(str::to_owned).collect()))
}

/// Returns why guests have no shell; `None` if they have one.
pub fn shell_obstacle() -> Option<String> {
    let missing = "a static busybox is missing; install the package busybox-static";
    static_busybox().is_none().then(|| missing.to_owned())
}

/// Whether an ELF program names an interpreter (`PT_INTERP`, elf(5)). The linker puts
/// its path, such as `/lib64/ld-linux-x86-64.so.2`, after the program headers.
fn has_interpreter(elf: &[u8]) -> bool {
    let beginning = &elf[..elf.len().min(4096)];
    elf.starts_with(ELF) && beginning.windows(4).any(|bytes| bytes == b"/ld-")
}

/// An archive under construction.
#[derive(Default)]
struct Archive {
    bytes: Vec<u8>,
    entries: u32,
    directories: BTreeSet<PathBuf>,
}

impl Archive {
    fn host_file(&mut self, name: impl AsRef<Path>, host: &Path) -> Result<(), String> {
        let cannot = |why: &dyn std::fmt::Display| {
            format!("cannot copy {} into the guest: {why}", host.display())
        };
        let name = name.as_ref();
        let in_root = name.strip_prefix("/").unwrap_or(name);
        if in_root == Path::new(TRAILER) || name.as_os_str().len() > NAME_BYTES_MAX {
            return Err(cannot(&"an archive cannot hold its name; rename it"));
        }
        let file = open_bounded(host, FILE_BYTES_MAX);
        let file =
            file.map_err(|error| cannot(&format!("{error}; name smaller files one by one")))?;
        let metadata = file.metadata().map_err(|error| cannot(&error))?;
        let mode = MODE_FILE | (metadata.permissions().mode() & 0o777);
        let content = read_bounded(file, FILE_BYTES_MAX).map_err(|error| cannot(&error))?;
        self.entry(name, mode, (0, 0), &content);
        Ok(())
    }

    /// Adds an entry and the directories above it.
    fn entry(&mut self, name: impl AsRef<Path>, mode: u32, device: (u32, u32), content: &[u8]) {
        let name = name.as_ref();
        self.directories_above(name);
        self.raw(
            name.strip_prefix("/").unwrap_or(name),
            mode,
            device,
            content,
        );
    }

    fn directories_above(&mut self, name: &Path) {
        let name = name.strip_prefix("/").unwrap_or(name);
        let mut above: Vec<&Path> = name.ancestors().skip(1).collect();
        // The last ancestor is the root.
        above.pop();
        for directory in above.into_iter().rev() {
            if self.directories.insert(directory.to_owned()) {
                self.raw(directory, MODE_DIRECTORY, (0, 0), b"");
            }
        }
    }

    fn raw(&mut self, name: &Path, mode: u32, device: (u32, u32), content: &[u8]) {
        self.entries += 1;
        let name = name.as_os_str().as_bytes();
        let size = u32::try_from(content.len()).expect("larger files are refused");
        let name_bytes = u32::try_from(name.len() + 1).expect("a path is short");
        let number = self.entries;
        // The fields are number, mode, owner, group, links, time, size, device of the file system
        // (two), device (two), length of the name, check sum (unused).
        let fields = [
            number, mode, 0, 0, 1, 0, size, 0, 0, device.0, device.1, name_bytes, 0,
        ];
        let fields: String = fields.iter().map(|field| format!("{field:08X}")).collect();
        self.bytes.extend(format!("070701{fields}").bytes());
        self.bytes.extend(name);
        self.bytes.push(0);
        // Names and contents are padded to multiples of 4, where each header begins.
        self.pad();
        self.bytes.extend(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    fn finish(mut self) -> Vec<u8> {
        self.raw(Path::new(TRAILER), 0, (0, 0), b"");
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_has_directories_before_what_is_in_them() {
        let mut archive = Archive::default();
        archive.entry("/a/b/c", MODE_FILE | 0o755, (0, 0), b"hello");
        archive.entry("/a/d", MODE_LINK, (0, 0), b"b/c");
        archive.entry("/dev/null", MODE_CHARACTER_DEVICE, (1, 3), b"");
        let bytes = archive.finish();
        assert_eq!(bytes.len() % 4, 0);
        let text = String::from_utf8_lossy(&bytes);
        let at = |what: &str| {
            text.find(what)
                .unwrap_or_else(|| panic!("{what} in {text:?}"))
        };
        assert!(at("a\0") < at("a/b\0") && at("a/b\0") < at("a/b/c\0"));
        assert_eq!(text.matches("070701").count(), 7);
        // A regular file that anyone may run, of five bytes.
        assert!(text.contains("000081ED"), "{text:?}");
        assert!(text.contains("hello\0\0\x00070701"), "{text:?}");
        assert!(text.trim_end_matches('\0').ends_with("TRAILER!!!"));
    }

    #[test]
    fn a_name_is_taken_as_it_is_or_refused() {
        let directory = tempfile::tempdir().unwrap();
        let host = directory.path().join("file");
        fs::write(&host, "x").unwrap();
        let mut archive = Archive::default();
        for name in [b"/a \xff\n$(b)".as_slice(), b"/-c", b"/d'\""] {
            let name = Path::new(std::ffi::OsStr::from_bytes(name));
            archive.host_file(name, &host).unwrap();
        }
        let refused = archive.host_file("/TRAILER!!!", &host).unwrap_err();
        assert!(refused.contains("rename it"), "{refused}");
        let bytes = archive.finish();
        let has = |name: &[u8]| bytes.windows(name.len()).any(|here| here == name);
        assert!(has(b"a \xff\n$(b)\0") && has(b"-c\0") && has(b"d'\"\0"));
    }

    #[test]
    fn a_program_with_an_interpreter_cannot_be_the_init_of_a_guest() {
        assert!(!has_interpreter(b"#!/bin/sh\n"));
        assert!(!has_interpreter(
            &[b"\x7fELF", &[0; 5000][..], b"/ld-linux"].concat()
        ));
        let dynamic = b"\x7fELF\0\0/lib64/ld-linux-x86-64.so.2\0";
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), dynamic).unwrap();
        let refused = check_probe(file.path()).unwrap_err();
        assert!(refused.contains("linked dynamically"), "{refused}");
        fs::write(file.path(), b"\x7fELF\0\0").unwrap();
        assert_eq!(check_probe(file.path()), Ok(()));
    }
}
