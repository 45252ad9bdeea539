//! Reports which processes hold which devices.

mod kind;

use std::collections::BTreeMap;

use serde::Serialize;

pub use kind::{Block, Class, Mount, Number, Tables};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    Descriptor,
    /// A descriptor that the process was started with.
    Inherited,
    /// A descriptor that the process opened while it was watched.
    Opened,
    Mapping,
    WorkingDirectory,
    RootDirectory,
    ControllingTerminal,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    Read,
    Write,
    ReadWrite,
    /// Neither reading nor writing: the descriptor was opened with `O_PATH`.
    PathOnly,
    Unknown,
}

impl Access {
    /// Returns the access that an open file's flags allow (`O_ACCMODE`, `O_PATH`).
    #[must_use]
    pub fn of_flags(flags: u64) -> Self {
        const O_PATH: u64 = 0o10_000_000;
        match (flags & O_PATH, flags & 3) {
            (O_PATH, _) => Self::PathOnly,
            (_, 0) => Self::Read,
            (_, 1) => Self::Write,
            // 3 allows only ioctl; drivers of disks use it.
            (_, 2) => Self::ReadWrite,
            _ => Self::Unknown,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// A device, wherever its node is in the file system.
    Device(Number),
    File,
    Directory,
    /// Another file below `/dev`: a socket or a named pipe.
    Other,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sighting {
    /// Path of the device node, as [`shown_path`] prints it.
    pub path: String,
    pub is_deleted: bool,
    pub target: Target,
    /// Number of the slave if the device is a pseudo-terminal's master.
    pub terminal: Option<u32>,
    pub by: By,
    pub access: Access,
    pub descriptor: Option<u32>,
}

impl Sighting {
    fn device(&self) -> (&str, bool, Target, Option<u32>) {
        (&self.path, self.is_deleted, self.target, self.terminal)
    }
}

#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Hold {
    pub by: By,
    pub access: Access,
    pub count: u64,
    pub descriptors: Vec<u32>,
}

#[derive(Debug, Serialize)]
pub struct Held {
    /// Path of the device node, as [`shown_path`] prints it.
    pub path: String,
    pub is_deleted: bool,
    /// Number of the device; `None` if the file is not a device.
    pub number: Option<Number>,
    pub kind: String,
    pub holds: Vec<Hold>,
}

#[derive(Debug, Serialize)]
pub struct Process {
    pub pid: u32,
    pub name: String,
    /// Whether the process sees other mounts than this program, so that its paths may
    /// refer to other files.
    pub has_other_mounts: bool,
    pub devices: Vec<Held>,
}

#[derive(Debug, Serialize)]
pub struct Unseen {
    pub pid: u32,
    pub name: String,
    pub reason: String,
}

#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    Status(i32),
    Signal(i32),
}

#[derive(Debug, Serialize)]
pub struct Report {
    /// Version of this document: 1.
    pub version: u32,
    /// The command that was watched; `None` if running processes were examined.
    pub command: Option<Vec<String>>,
    pub ended: Option<Ended>,
    pub processes_seen: u64,
    pub processes: Vec<Process>,
    pub unseen: Vec<Unseen>,
    pub notes: Vec<String>,
}

pub type Sightings = BTreeMap<Sighting, u64>;

#[must_use]
pub fn held(sightings: &Sightings, tables: &Tables) -> Vec<Held> {
    // Sightings are sorted by device, and then by the way in which a device is held.
    let sightings: Vec<(&Sighting, &u64)> = sightings.iter().collect();
    let devices = sightings.chunk_by(|(one, _), (other, _)| one.device() == other.device());
    let held = devices.map(|seen| {
        let (number, kind) = describe(seen[0].0, tables);
        let how = |of: &Sighting| (of.by, of.access);
        let ways = seen.chunk_by(|(one, _), (other, _)| how(one) == how(other));
        Held {
            path: seen[0].0.path.clone(),
            is_deleted: seen[0].0.is_deleted,
            number,
            kind,
            holds: ways.map(hold).collect(),
        }
    });
    held.collect()
}

fn hold(seen: &[(&Sighting, &u64)]) -> Hold {
    let descriptors = seen.iter().filter_map(|(sighting, _)| sighting.descriptor);
    Hold {
        by: seen[0].0.by,
        access: seen[0].0.access,
        count: seen.iter().map(|(_, count)| *count).sum(),
        descriptors: descriptors.collect(),
    }
}

fn describe(sighting: &Sighting, tables: &Tables) -> (Option<Number>, String) {
    match sighting.target {
        Target::Device(number) => {
            let words = match sighting.terminal {
                Some(index) => format!("pseudo-terminal {index}, master end"),
                None => tables.describe(number),
            };
            (Some(number), words)
        }
        Target::File if sighting.path.starts_with("/dev/shm/") => {
            (None, "shared memory, a file".into())
        }
        Target::File => (None, "file, not a device".into()),
        Target::Directory => (None, "directory, not a device".into()),
        Target::Other => (None, "socket or pipe, not a device".into()),
    }
}

/// Counts how often the processes together hold each kind of device.
#[must_use]
pub fn totals(processes: &[Process]) -> BTreeMap<&str, u64> {
    let mut totals = BTreeMap::new();
    for held in processes.iter().flat_map(|process| &process.devices) {
        let count: u64 = held.holds.iter().map(|hold| hold.count).sum();
        *totals.entry(held.kind.as_str()).or_default() += count;
    }
    totals
}

/// Returns a path as text. Control characters and bytes that are not UTF-8 are written
/// as `\x1b`.
#[must_use]
pub fn shown_path(bytes: &[u8]) -> String {
    let mut shown = String::new();
    let push_hex = |shown: &mut String, bytes: &[u8]| {
        bytes
            .iter()
            .for_each(|byte| shown.push_str(&format!("\\x{byte:02x}")));
    };
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            if character.is_control() {
                push_hex(&mut shown, character.encode_utf8(&mut [0; 4]).as_bytes())
            } else {
                shown.push(character)
            }
        }
        push_hex(&mut shown, chunk.invalid());
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sighting(path: &str, by: By, access: Access, descriptor: u32) -> Sighting {
        Sighting {
            path: path.into(),
            is_deleted: false,
            target: Target::Device(Number::character(1, 3)),
            terminal: None,
            by,
            access,
            descriptor: Some(descriptor),
        }
    }

    #[test]
    fn holds_of_one_kind_are_counted_together() {
        let sightings = vec![
            sighting("/dev/null", By::Descriptor, Access::Write, 2),
            sighting("/dev/null", By::Descriptor, Access::Read, 0),
            sighting("/tmp/own", By::Opened, Access::ReadWrite, 7),
            sighting("/tmp/own", By::Opened, Access::ReadWrite, 7),
            sighting("/dev/null", By::Descriptor, Access::Write, 1),
        ];
        let mut counted = Sightings::new();
        for sighting in sightings {
            *counted.entry(sighting).or_default() += 1;
        }
        let held = held(&counted, &Tables::default());
        assert_eq!(held.len(), 2);
        assert_eq!(
            (held[0].path.as_str(), held[0].kind.as_str()),
            ("/dev/null", "null sink")
        );
        let of = |access, count, descriptors: &[u32]| Hold {
            by: By::Descriptor,
            access,
            count,
            descriptors: descriptors.to_vec(),
        };
        assert_eq!(
            held[0].holds,
            [of(Access::Read, 1, &[0]), of(Access::Write, 2, &[1, 2])]
        );
        assert_eq!(
            (held[1].holds[0].count, &held[1].holds[0].descriptors[..]),
            (2, &[7][..])
        );
    }

    #[test]
    fn flags_are_access() {
        assert_eq!(Access::of_flags(0o100_000), Access::Read);
        assert_eq!(Access::of_flags(0o100_001), Access::Write);
        assert_eq!(Access::of_flags(0o2), Access::ReadWrite);
        assert_eq!(Access::of_flags(0o10_000_000), Access::PathOnly);
    }

    #[test]
    fn paths_show_what_they_hold() {
        assert_eq!(
            shown_path(b"/dev/a\x1b[31m\xff\n"),
            "/dev/a\\x1b[31m\\xff\\x0a"
        );
        assert_eq!(shown_path("/dev/ä".as_bytes()), "/dev/ä");
    }
}
