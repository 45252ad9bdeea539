//! Finds devices that processes hold open, from `/proc`.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{major, minor};
use toll_observe::devices::{
    Access, Block, By, Mount, Number, Process, Sighting, Sightings, Tables, Target, Unseen, held,
    shown_path,
};

/// The processes that were inspected, and those that could not be.
#[derive(Debug, Default)]
pub struct Seen {
    /// Number of processes that were inspected.
    pub count: u64,
    /// Processes that hold a device.
    pub processes: Vec<Process>,
    /// Processes that could not be inspected.
    pub unseen: Vec<Unseen>,
}

/// Reads the kernel's lists of drivers and block devices. A list that cannot be read is
/// left out, and its devices are shown by their numbers.
#[must_use]
pub fn tables() -> Tables {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let mut tables = Tables::parse(&read("/proc/misc"), &read("/proc/devices"));
    let mounts = read("/proc/self/mountinfo");
    let swaps = read("/proc/swaps");
    for entry in fs::read_dir("/sys/dev/block")
        .into_iter()
        .flatten()
        .flatten()
    {
        let name = entry.file_name();
        let Some(numbers) = name.to_str() else {
            continue;
        };
        let Some((major, minor)) = numbers.split_once(':') else {
            continue;
        };
        if let (Ok(major), Ok(minor)) = (major.parse(), minor.parse()) {
            let block = block(&entry.path(), numbers, &mounts, &swaps);
            tables.blocks.insert((major, minor), block);
        }
    }
    tables
}

fn block(directory: &Path, numbers: &str, mountinfo: &str, swaps: &str) -> Block {
    let read = |name: &str| fs::read_to_string(directory.join(name)).ok();
    let sectors: Option<u64> = read("size").and_then(|text| text.trim().parse().ok());
    let backing = read("loop/backing_file").filter(|text| !text.trim().is_empty());
    let target = fs::read_link(directory).unwrap_or_default();
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let mounts = mountinfo.lines().filter_map(|line| {
        let (before, behind) = line.split_once(" - ")?;
        let mut fields = before.split(' ').skip(2);
        (fields.next()? == numbers).then_some(())?;
        Some(Mount {
            directory: shown_path(fields.nth(1)?.as_bytes()),
            file_system: behind.split(' ').next()?.to_owned(),
        })
    });
    Block {
        // The kernel counts sectors of 512 bytes, whatever the device's own sector size.
        size_bytes: sectors.map(|sectors| sectors.saturating_mul(512)),
        backing_file: backing.map(|text| shown_path(text.trim().as_bytes())),
        mounts: mounts.collect(),
        is_swap: swaps
            .lines()
            .any(|line| line.split_whitespace().next() == Some(&format!("/dev/{name}"))),
    }
}

/// Returns whether `/proc` hides the processes of other users (its option `hidepid`,
/// proc(5)), so that they cannot even be counted.
#[must_use]
pub fn hides_processes() -> bool {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    mounts.lines().any(|line| {
        let is_proc = line.split(' ').nth(4) == Some("/proc");
        let option = line.split_once("hidepid=").map(|(_, value)| value);
        is_proc && option.is_some_and(|value| !value.starts_with(['0', 'o']))
    })
}

/// Inspects all processes.
pub fn all(tables: &Tables) -> io::Result<Seen> {
    let mut pids = Vec::new();
    for entry in fs::read_dir("/proc")? {
        pids.extend(
            entry?
                .file_name()
                .to_str()
                .and_then(|name| name.parse::<u32>().ok()),
        );
    }
    pids.sort_unstable();
    Ok(some(&pids, tables))
}

/// Inspects the given processes, except those that have ended.
#[must_use]
pub fn some(pids: &[u32], tables: &Tables) -> Seen {
    let mut seen = Seen::default();
    let mut looker = Looker {
        mounts: fs::read_link("/proc/self/ns/mnt").ok(),
        mapped: HashMap::new(),
    };
    for pid in pids {
        let directory = PathBuf::from(format!("/proc/{pid}"));
        let Ok(name) = fs::read(directory.join("comm")) else {
            continue;
        };
        let name = shown_path(name.trim_ascii_end());
        match looker.look(&directory) {
            Ok(sightings) => {
                seen.count += 1;
                let process = Process {
                    pid: *pid,
                    name,
                    has_other_mounts: looker.has_other_mounts(&directory),
                    devices: held(&sightings, tables),
                };
                if !process.devices.is_empty() {
                    seen.processes.push(process);
                }
            }
            // The process has ended, or is a zombie that its parent has not waited for
            // yet.
            Err(error) if error.kind() == io::ErrorKind::NotFound || is_gone(&error) => {}
            Err(error) => seen.unseen.push(Unseen {
                pid: *pid,
                name,
                reason: match error.kind() {
                    io::ErrorKind::PermissionDenied => "permission denied".into(),
                    _ => error.to_string(),
                },
            }),
        }
    }
    seen
}

/// Returns the descriptors that a command inherits if this program starts it.
#[must_use]
pub fn inherited() -> Vec<Sighting> {
    let directory = Path::new("/proc/self");
    let entries = fs::read_dir(directory.join("fd")).into_iter().flatten();
    let descriptors = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    descriptors
        .filter(|descriptor| !closes_at_exec(*descriptor))
        .filter_map(|descriptor| descriptor_of(directory, descriptor).ok()?)
        .map(|sighting| Sighting {
            by: By::Inherited,
            ..sighting
        })
        .collect()
}

fn closes_at_exec(descriptor: u32) -> bool {
    const O_CLOEXEC: u64 = 0o2_000_000;
    let info = fs::read_to_string(format!("/proc/self/fdinfo/{descriptor}")).unwrap_or_default();
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| u64::from_str_radix(flags.trim(), 8).ok());
    flags.is_none_or(|flags| flags & O_CLOEXEC != 0)
}

fn is_gone(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error())
}

struct Looker {
    /// The mount namespace of this program, as its link in `/proc` shows it.
    mounts: Option<PathBuf>,
    /// Mapped files that were inspected, by file system and inode. They are remembered
    /// because most processes map the same libraries.
    mapped: HashMap<(String, u64), Option<Target>>,
}

impl Looker {
    fn has_other_mounts(&self, directory: &Path) -> bool {
        let mounts = fs::read_link(directory.join("ns/mnt")).ok();
        mounts.is_some() && mounts != self.mounts
    }

    fn look(&mut self, directory: &Path) -> io::Result<Sightings> {
        let mut found = Vec::new();
        for entry in fs::read_dir(directory.join("fd"))? {
            let name = entry?.file_name();
            let Some(descriptor) = name.to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            match descriptor_of(directory, descriptor) {
                Ok(sighting) => found.extend(sighting),
                // The descriptor was closed meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        for (link, by) in [("cwd", By::WorkingDirectory), ("root", By::RootDirectory)] {
            let sighting = sighting(&directory.join(link), by);
            found.extend(sighting.ok().flatten());
        }
        found.extend(controlling_terminal(directory));
        found.extend(self.mappings(directory)?);
        let mut sightings = Sightings::new();
        for sighting in found {
            *sightings.entry(sighting).or_default() += 1;
        }
        Ok(sightings)
    }

    fn mappings(&mut self, directory: &Path) -> io::Result<Vec<Sighting>> {
        let maps = match fs::read(directory.join("maps")) {
            Ok(maps) => maps,
            Err(error) if is_gone(&error) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let lines = maps.split(|byte| *byte == b'\n');
        Ok(lines
            .filter_map(|line| self.mapping(directory, line))
            .collect())
    }

    /// Parses a line of `maps`, such as `7f00-7f01 rw-s 00000000 00:05 6    /dev/zero`.
    fn mapping(&mut self, directory: &Path, line: &[u8]) -> Option<Sighting> {
        let at = line.iter().position(|byte| *byte == b'/')?;
        let (head, path) = line.split_at(at);
        let head = std::str::from_utf8(head).ok()?;
        let mut fields = head.split_whitespace();
        let range = fields.next()?;
        let rights = fields.next()?;
        let device = fields.nth(1)?.to_owned();
        let inode: u64 = fields.next()?.parse().ok()?;
        let deleted = path.strip_suffix(b" (deleted)");
        let path = deleted.unwrap_or(path);
        let target = *self.mapped.entry((device, inode)).or_insert_with(|| {
            // The path in `map_files` needs privileges that the path in the line does
            // not.
            let by_range = directory.join("map_files").join(range);
            let mut by_name = directory.join("root").into_os_string();
            by_name.push(OsStr::from_bytes(path));
            let metadata = fs::metadata(by_range)
                .or_else(|_| fs::metadata(by_name))
                .ok()?;
            (metadata.ino() == inode)
                .then(|| target(&metadata, path))
                .flatten()
        });
        let is_shared = rights.ends_with('s');
        Some(Sighting {
            path: shown_path(path),
            is_deleted: deleted.is_some(),
            target: target?,
            terminal: None,
            by: By::Mapping,
            access: match (rights.contains('r'), is_shared && rights.contains('w')) {
                (true, true) => Access::ReadWrite,
                (false, true) => Access::Write,
                _ => Access::Read,
            },
            descriptor: None,
        })
    }
}

/// Classifies the file that a path leads to. `None` unless it is a device or below
/// `/dev`.
fn target(metadata: &fs::Metadata, path: &[u8]) -> Option<Target> {
    let kind = metadata.file_type();
    let rdev = metadata.rdev();
    if kind.is_char_device() {
        return Some(Target::Device(Number::character(major(rdev), minor(rdev))));
    }
    if kind.is_block_device() {
        return Some(Target::Device(Number::block(major(rdev), minor(rdev))));
    }
    let is_below = path == b"/dev" || path.starts_with(b"/dev/");
    is_below.then_some(match () {
        () if kind.is_dir() => Target::Directory,
        () if kind.is_file() => Target::File,
        () => Target::Other,
    })
}

/// Resolves a link of `/proc/PID`; `None` if it leads neither to a device nor below `/dev`.
fn sighting(link: &Path, by: By) -> io::Result<Option<Sighting>> {
    let path = fs::read_link(link)?;
    // The link leads to the file itself, even if its name is gone or reused.
    let metadata = fs::metadata(link)?;
    let bytes = path.as_os_str().as_bytes();
    let deleted = bytes
        .strip_suffix(b" (deleted)")
        .filter(|_| metadata.nlink() == 0);
    let bytes = deleted.unwrap_or(bytes);
    Ok(target(&metadata, bytes).map(|target| Sighting {
        path: shown_path(bytes),
        is_deleted: deleted.is_some(),
        target,
        terminal: None,
        by,
        access: Access::Unknown,
        descriptor: None,
    }))
}

fn descriptor_of(directory: &Path, descriptor: u32) -> io::Result<Option<Sighting>> {
    let link = directory.join(format!("fd/{descriptor}"));
    let Some(sighting) = sighting(&link, By::Descriptor)? else {
        return Ok(None);
    };
    let info = fs::read_to_string(directory.join(format!("fdinfo/{descriptor}")))?;
    let field = |name: &str| {
        let line = info.lines().find_map(|line| line.strip_prefix(name));
        line.map(|value| value.trim().to_owned())
    };
    let flags = field("flags:").and_then(|flags| u64::from_str_radix(&flags, 8).ok());
    Ok(Some(Sighting {
        access: flags.map_or(Access::Unknown, Access::of_flags),
        // The number of the terminal that belongs to a pseudoterminal master.
        terminal: field("tty-index:").and_then(|index| index.parse().ok()),
        descriptor: Some(descriptor),
        ..sighting
    }))
}

/// Returns the controlling terminal, which is field 7 of `/proc/PID/stat` (proc(5)).
/// The name in field 2 may contain blanks and parentheses.
fn controlling_terminal(directory: &Path) -> Option<Sighting> {
    let stat = fs::read(directory.join("stat")).ok()?;
    let behind = stat.iter().rposition(|byte| *byte == b')')? + 1;
    let fields = std::str::from_utf8(stat.get(behind..)?).ok()?;
    let number: i32 = fields.split_whitespace().nth(4)?.parse().ok()?;
    let number = number.cast_unsigned();
    if number == 0 {
        return None;
    }
    // The number has the encoding of the kernel's new_encode_dev.
    let (major, minor) = (
        (number >> 8) & 0xfff,
        (number & 0xff) | ((number >> 12) & 0xf_ff00),
    );
    let path = match major {
        136..=143 => format!("/dev/pts/{}", (major - 136) * 256 + minor),
        _ => {
            let uevent = fs::read_to_string(format!("/sys/dev/char/{major}:{minor}/uevent"));
            let uevent = uevent.unwrap_or_default();
            let name = uevent
                .lines()
                .find_map(|line| line.strip_prefix("DEVNAME="));
            match name {
                Some(name) => format!("/dev/{name}"),
                None => format!("character device {major}:{minor}"),
            }
        }
    };
    Some(Sighting {
        path,
        is_deleted: false,
        target: Target::Device(Number::character(major, minor)),
        terminal: None,
        by: By::ControllingTerminal,
        access: Access::Unknown,
        descriptor: None,
    })
}
