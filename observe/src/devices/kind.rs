//! Describes devices in words.

use std::collections::BTreeMap;

use serde::Serialize;

/// Descriptions of devices, by number and by name. The first match is used.
const WORDS: &str = include_str!("words.txt");

/// The table of drivers that a device number belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    Character,
    Block,
}

impl Class {
    fn word(self) -> &'static str {
        match self {
            Self::Character => "character",
            Self::Block => "block",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Number {
    pub class: Class,
    pub major: u32,
    pub minor: u32,
}

impl Number {
    #[must_use]
    pub fn character(major: u32, minor: u32) -> Self {
        let class = Class::Character;
        Self {
            class,
            major,
            minor,
        }
    }

    #[must_use]
    pub fn block(major: u32, minor: u32) -> Self {
        let class = Class::Block;
        Self {
            class,
            major,
            minor,
        }
    }
}

#[derive(Debug, Clone, Default)]
pub struct Block {
    pub size_bytes: Option<u64>,
    pub backing_file: Option<String>,
    pub mounts: Vec<Mount>,
    pub is_swap: bool,
}

#[derive(Debug, Clone)]
pub struct Mount {
    pub directory: String,
    pub file_system: String,
}

#[derive(Debug, Clone, Default)]
pub struct Tables {
    misc: BTreeMap<u32, String>,
    drivers: BTreeMap<(Class, u32), String>,
    pub blocks: BTreeMap<(u32, u32), Block>,
}

impl Tables {
    /// Parses `/proc/misc` and `/proc/devices`. Lines of another form are skipped.
    #[must_use]
    pub fn parse(misc: &str, devices: &str) -> Self {
        let mut tables = Self {
            misc: misc.lines().filter_map(entry).collect(),
            ..Self::default()
        };
        let mut class = Class::Character;
        for line in devices.lines() {
            if line.starts_with("Block devices:") {
                class = Class::Block;
            }
            if let Some((major, name)) = entry(line) {
                // The first name of a number is the driver's: `4 /dev/vc/0`, `4 tty`.
                tables.drivers.entry((class, major)).or_insert(name);
            }
        }
        tables
    }

    #[must_use]
    pub fn describe(&self, number: Number) -> String {
        let mut words = self.kind(number);
        let block = self.blocks.get(&(number.major, number.minor));
        let Some(block) = block.filter(|_| number.class == Class::Block) else {
            return words;
        };
        if let Some(file) = &block.backing_file {
            words.push_str(&format!(" over {file}"));
        }
        if let Some(bytes) = block.size_bytes {
            words.push_str(&format!(", {}", size(bytes)));
        }
        for mount in &block.mounts {
            words.push_str(&format!(", {} at {}", mount.file_system, mount.directory));
        }
        if block.is_swap {
            words.push_str(", swap");
        }
        words
    }

    fn kind(&self, number: Number) -> String {
        let Number {
            class,
            major,
            minor,
        } = number;
        if class == Class::Character && major == 10 {
            return match self.misc.get(&minor) {
                Some(name) => {
                    by_name("misc", name).unwrap_or_else(|| format!("miscellaneous device {name}"))
                }
                None => format!("miscellaneous device {minor}"),
            };
        }
        if let Some(words) = by_number(number) {
            return words;
        }
        let word = class.word();
        match self.drivers.get(&(class, major)) {
            // Minor numbers of serial ports follow those of the virtual consoles.
            _ if class == Class::Character && major == 4 => format!("serial port {}", minor - 64),
            Some(name) => by_name("driver", name)
                .unwrap_or_else(|| format!("{word} device of the driver {name}")),
            None => format!("{word} device {major}:{minor}"),
        }
    }
}

fn by_number(number: Number) -> Option<String> {
    let is_in = |range: &str, number: u32| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        range == "*" || (first.parse().ok()..=last.parse().ok()).contains(&Some(number))
    };
    WORDS.lines().find_map(|line| {
        let mut fields = line.splitn(4, ' ');
        let is_it = fields.next()? == number.class.word()
            && is_in(fields.next()?, number.major)
            && is_in(fields.next()?, number.minor);
        let words = fields.next().filter(|_| is_it)?;
        Some(words.replace("{minor}", &number.minor.to_string()))
    })
}

fn by_name(table: &str, name: &str) -> Option<String> {
    let words = |line: &'static str| {
        line.strip_prefix(table)?
            .strip_prefix(' ')?
            .strip_prefix(name)?
            .strip_prefix(' ')
    };
    WORDS.lines().find_map(words).map(str::to_owned)
}

/// Parses a line such as ` 3 name`.
fn entry(line: &str) -> Option<(u32, String)> {
    let (number, name) = line.trim().split_once(' ')?;
    Some((number.parse().ok()?, name.trim().to_owned()))
}

fn size(bytes: u64) -> String {
    const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut unit = 0;
    let mut value = bytes as f64;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let digits = if value < 10.0 && unit > 0 { 1 } else { 0 };
    format!("{value:.digits$} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tables() -> Tables {
        Tables::parse(
            "229 fuse\n232 kvm\n 61 toll_primes\n",
            "Character devices:\n  4 /dev/vc/0\n  4 tty\n246 hidraw\n251 toll\n\nBlock devices:\n\
             254 virtblk\n  7 loop\n",
        )
    }

    #[test]
    fn devices_have_words() {
        let tables = tables();
        for (number, words) in [
            (Number::character(1, 3), "null sink"),
            (Number::character(1, 9), "random generator"),
            (Number::character(4, 2), "virtual console 2"),
            (Number::character(4, 65), "serial port 1"),
            (
                Number::character(136, 300),
                "pseudo-terminal 300, slave end",
            ),
            (
                Number::character(10, 229),
                "file systems in user space (FUSE)",
            ),
            (
                Number::character(10, 61),
                "miscellaneous device toll_primes",
            ),
            (Number::character(10, 1), "miscellaneous device 1"),
            (Number::character(246, 0), "HID device, raw reports"),
            (
                Number::character(251, 0),
                "character device of the driver toll",
            ),
            (Number::character(999, 1), "character device 999:1"),
            (Number::block(254, 0), "disk of a virtual machine (virtio)"),
            (Number::block(999, 1), "block device 999:1"),
        ] {
            assert_eq!(tables.describe(number), words);
        }
    }

    #[test]
    fn block_devices_say_how_large_they_are_and_what_is_on_them() {
        let mut tables = tables();
        let mount = Mount {
            directory: "/mnt".into(),
            file_system: "ext4".into(),
        };
        let block = Block {
            size_bytes: Some(3 << 29),
            backing_file: Some("/tmp/image".into()),
            mounts: vec![mount],
            is_swap: false,
        };
        tables.blocks.insert((7, 3), block);
        assert_eq!(
            tables.describe(Number::block(7, 3)),
            "loop device 3 over /tmp/image, 1.5 GiB, ext4 at /mnt"
        );
        assert_eq!(size(512), "512 B");
        assert_eq!(size(u64::MAX), "16 EiB");
    }
}
