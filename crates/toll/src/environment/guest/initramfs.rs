//! The archive from which a guest starts: its init, modules, further files.
//!
//! It is a cpio archive of the kind "newc", as the kernel unpacks it
//! (Documentation/driver-api/early-userspace/buffer-format.rst). Written here,
//! it needs neither cpio nor root: devices are just entries in it.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use toll_wire::guest::{BOOT_MODULES_DIRECTORY, MODULES_DIRECTORY};

use super::spec::GuestSpec;
use crate::environment::process;

/// The program that is many programs.
const BUSYBOX: &str = "busybox";

const MODE_DIRECTORY: u32 = 0o040_755;
const MODE_FILE: u32 = 0o100_000;
const MODE_LINK: u32 = 0o120_777;
const MODE_CHARACTER_DEVICE: u32 = 0o020_600;

/// Writes the archive of a guest.
///
/// # Errors
/// If a file that belongs into it cannot be read, or the archive not written.
pub(super) fn write(spec: &GuestSpec, path: &Path) -> Result<(), String> {
    let cannot = |error: io::Error| format!("cannot write {}: {error}", path.display());
    let file = File::create(path).map_err(cannot)?;
    let mut archive = Archive::new(BufWriter::new(file));
    // What the first process has for its standard streams.
    archive.device("/dev/console", (5, 1)).map_err(cannot)?;
    archive.device("/dev/null", (1, 3)).map_err(cannot)?;
    archive.host_file("/init", &spec.probe)?;
    for module in &spec.kernel.modules {
        archive.host_file(&inside(MODULES_DIRECTORY, "", module), module)?;
    }
    for (number, module) in spec.kernel.boot_modules.iter().enumerate() {
        let prefix = format!("{number:03}-");
        archive.host_file(&inside(BOOT_MODULES_DIRECTORY, &prefix, module), module)?;
    }
    if let Some(busybox) = static_busybox() {
        archive.host_file("/bin/busybox", &busybox.program)?;
        for applet in &busybox.applets {
            let link = format!("/bin/{applet}");
            archive.link(&link, BUSYBOX).map_err(cannot)?;
        }
    }
    for (host, guest) in &spec.extra_files {
        archive.host_file(&guest.to_string_lossy(), host)?;
    }
    archive
        .finish()
        .and_then(|mut file| file.flush())
        .map_err(cannot)
}

fn inside(directory: &str, prefix: &str, file: &Path) -> String {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    format!("{directory}/{prefix}{name}")
}

/// A busybox that runs without libraries.
struct Busybox {
    program: PathBuf,
    applets: Vec<String>,
}

/// Guests have no libraries, so a busybox that wants one is no use.
fn static_busybox() -> Option<Busybox> {
    let program = process::find(BUSYBOX)?;
    if !is_static(&fs::read(&program).ok()?) {
        return None;
    }
    let list = process::run(&program.to_string_lossy(), &["--list".as_ref()]).ok()?;
    // It lists itself, too.
    let applets = list.lines().filter(|applet| *applet != BUSYBOX);
    let applets = applets.map(str::to_owned).collect();
    Some(Busybox { program, applets })
}

/// Why guests have no shell, if they have none.
pub fn shell_obstacle() -> Option<String> {
    match static_busybox() {
        Some(_) => None,
        None => Some("a static busybox is missing; install the package busybox-static".into()),
    }
}

/// Whether an ELF program names no interpreter (`PT_INTERP`, elf(5)).
fn is_static(elf: &[u8]) -> bool {
    let number = |at: usize, bytes: usize| -> Option<usize> {
        let field = elf.get(at..at.checked_add(bytes)?)?;
        let little_endian = field.iter().rev();
        Some(little_endian.fold(0, |value, byte| value << 8 | usize::from(*byte)))
    };
    const PT_INTERP: usize = 3;
    let interpreter = || {
        let (table, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
        let types = (0..count).map(|index| number(table.checked_add(index * size)?, 4));
        Some(types.into_iter().any(|kind| kind == Some(PT_INTERP)))
    };
    elf.starts_with(b"\x7fELF") && interpreter() == Some(false)
}

/// An archive in the making.
struct Archive<W> {
    output: W,
    number: u32,
    directories: BTreeSet<PathBuf>,
}

impl<W: Write> Archive<W> {
    fn new(output: W) -> Self {
        Self {
            output,
            number: 0,
            directories: BTreeSet::new(),
        }
    }

    /// Adds a file of the host, with the directories above it.
    fn host_file(&mut self, name: &str, host: &Path) -> Result<(), String> {
        let cannot =
            |error: io::Error| format!("cannot take {} into the guest: {error}", host.display());
        let metadata = fs::metadata(host).map_err(cannot)?;
        if !metadata.is_file() {
            return Err(format!(
                "cannot take {} into the guest: it is no regular file; name files one by one",
                host.display()
            ));
        }
        let mode = MODE_FILE | (metadata.permissions().mode() & 0o777);
        let content = fs::read(host).map_err(cannot)?;
        self.entry(name, mode, (0, 0), &content).map_err(cannot)
    }

    fn link(&mut self, name: &str, target: &str) -> io::Result<()> {
        self.entry(name, MODE_LINK, (0, 0), target.as_bytes())
    }

    fn device(&mut self, name: &str, device: (u32, u32)) -> io::Result<()> {
        self.entry(name, MODE_CHARACTER_DEVICE, device, b"")
    }

    fn entry(
        &mut self,
        name: &str,
        mode: u32,
        device: (u32, u32),
        content: &[u8],
    ) -> io::Result<()> {
        let name = name.trim_start_matches('/');
        let above: Vec<PathBuf> = Path::new(name)
            .ancestors()
            .skip(1)
            .filter(|path| !path.as_os_str().is_empty())
            .map(Path::to_owned)
            .collect();
        for directory in above.into_iter().rev() {
            if self.directories.insert(directory.clone()) {
                self.raw(&directory.to_string_lossy(), MODE_DIRECTORY, (0, 0), b"")?;
            }
        }
        self.raw(name, mode, device, content)
    }

    fn raw(&mut self, name: &str, mode: u32, device: (u32, u32), content: &[u8]) -> io::Result<()> {
        self.number += 1;
        let size = u32::try_from(content.len()).map_err(|_| {
            io::Error::new(
                io::ErrorKind::FileTooLarge,
                "an archive holds files below 4 GiB",
            )
        })?;
        let name_bytes = u32::try_from(name.len() + 1).expect("a path is short");
        // Number, mode, owner, group, links, time, size, device of the file
        // system (two), device (two), length of the name, check sum (unused).
        let fields = [
            self.number,
            mode,
            0,
            0,
            1,
            0,
            size,
            0,
            0,
            device.0,
            device.1,
            name_bytes,
            0,
        ];
        self.output.write_all(b"070701")?;
        for field in fields {
            write!(self.output, "{field:08X}")?;
        }
        self.output.write_all(name.as_bytes())?;
        self.output.write_all(&[0])?;
        // The head has 110 bytes; name and content end at multiples of 4.
        self.pad(110 + name.len() + 1)?;
        self.output.write_all(content)?;
        self.pad(content.len())
    }

    fn pad(&mut self, length: usize) -> io::Result<()> {
        let missing = length.next_multiple_of(4) - length;
        self.output.write_all(&[0; 3][..missing])
    }

    fn finish(mut self) -> io::Result<W> {
        self.raw("TRAILER!!!", 0, (0, 0), b"")?;
        Ok(self.output)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_has_directories_before_what_is_in_them() {
        let mut archive = Archive::new(Vec::new());
        archive
            .entry("/a/b/c", MODE_FILE | 0o755, (0, 0), b"hello")
            .unwrap();
        archive.link("/a/d", "b/c").unwrap();
        archive.device("/dev/null", (1, 3)).unwrap();
        let bytes = archive.finish().unwrap();
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
        assert!(text.contains("hello\0\0\0070701"), "{text:?}");
        assert!(text.trim_end_matches('\0').ends_with("TRAILER!!!"));
    }

    #[test]
    fn a_program_with_an_interpreter_is_not_static() {
        assert!(!is_static(b"#!/bin/sh\n"));
        assert!(!is_static(b"\x7fELF"));
        let mut elf = vec![0_u8; 64 + 56];
        elf[..4].copy_from_slice(b"\x7fELF");
        elf[32] = 64;
        elf[54] = 56;
        elf[56] = 1;
        elf[64] = 1;
        assert!(is_static(&elf));
        elf[64] = 3;
        assert!(!is_static(&elf));
    }
}
