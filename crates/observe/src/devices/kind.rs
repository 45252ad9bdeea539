//! What a device is, in words.
//!
//! Numbers are those of the kernel's list (Documentation/admin-guide/devices.txt)
//! where it fixes them; the others are looked up under the names that this
//! kernel gives them in `/proc/devices` and `/proc/misc`.

use std::collections::BTreeMap;

use serde::Serialize;

/// Which of the two tables of drivers a number belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// A character device.
    Character,
    /// A block device.
    Block,
}

/// A device's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Number {
    /// Which table.
    pub class: Class,
    /// The driver.
    pub major: u32,
    /// The device of that driver.
    pub minor: u32,
}

impl Number {
    /// A character device.
    #[must_use]
    pub fn character(major: u32, minor: u32) -> Self {
        Self {
            class: Class::Character,
            major,
            minor,
        }
    }

    /// A block device.
    #[must_use]
    pub fn block(major: u32, minor: u32) -> Self {
        Self {
            class: Class::Block,
            major,
            minor,
        }
    }
}

/// What is known of a block device beside its number.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Block {
    /// Its size.
    pub size_bytes: Option<u64>,
    /// The file behind a loop device.
    pub backing_file: Option<String>,
    /// Where it is mounted, with the type of file system.
    pub mounts: Vec<Mount>,
    /// The kernel swaps to it.
    pub is_swap: bool,
}

/// One mount of a block device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mount {
    /// The directory.
    pub directory: String,
    /// `ext4` and the like.
    pub file_system: String,
}

/// What this kernel says of its drivers and block devices.
#[derive(Debug, Clone, Default)]
pub struct Tables {
    misc: BTreeMap<u32, String>,
    character: BTreeMap<u32, String>,
    block: BTreeMap<u32, String>,
    /// What is known of block devices.
    pub blocks: BTreeMap<(u32, u32), Block>,
}

impl Tables {
    /// Reads `/proc/misc` and `/proc/devices`. What has not their form is left
    /// out.
    #[must_use]
    pub fn parse(misc: &str, devices: &str) -> Self {
        let mut tables = Self {
            misc: misc.lines().filter_map(entry).collect(),
            ..Self::default()
        };
        let mut is_block = false;
        for line in devices.lines() {
            if line.ends_with(':') {
                is_block = line.starts_with("Block");
                continue;
            }
            if let Some((major, name)) = entry(line) {
                let table = if is_block {
                    &mut tables.block
                } else {
                    &mut tables.character
                };
                // The first name is that of the driver: `4 /dev/vc/0`, `4 tty`.
                table.entry(major).or_insert(name);
            }
        }
        tables
    }

    /// The words for a device.
    #[must_use]
    pub fn describe(&self, number: Number) -> String {
        match number.class {
            Class::Character => self.character_words(number.major, number.minor),
            Class::Block => self.block_words(number.major, number.minor),
        }
    }

    fn character_words(&self, major: u32, minor: u32) -> String {
        let name = self.character.get(&major).map(String::as_str);
        match (major, minor) {
            (1, _) => memory_words(minor),
            (4, 0) => "the current virtual console".into(),
            (4, 1..=63) => format!("virtual console {minor}"),
            (4, _) => format!("serial port {}", minor - 64),
            (5, 0) => "the opening process's controlling terminal".into(),
            (5, 1) => "system console".into(),
            (5, 2) => "pseudo-terminal, master end".into(),
            (5, 3) => "messages to the kernel log as a terminal".into(),
            (7, _) => "content of a virtual console".into(),
            (10, _) => self.misc_words(minor),
            (13, _) => input_words(minor),
            (14, _) => "sound (OSS)".into(),
            (21, _) => "SCSI device, raw commands".into(),
            (29, _) => "frame buffer".into(),
            (81, _) => "video, radio or television (Video4Linux)".into(),
            (89, _) => "I2C bus".into(),
            (108, _) => "point-to-point network protocol (PPP)".into(),
            (116, _) => "sound (ALSA)".into(),
            (128..=135, _) => "pseudo-terminal, master end".into(),
            (136..=143, _) => {
                let index = (major - 136) * 256 + minor;
                // Since Linux 2.6 all are of major 136, whose minors go on.
                let index = if major == 136 { minor } else { index };
                format!("pseudo-terminal {index}, slave end")
            }
            (166 | 188, _) => "serial port on USB".into(),
            (180, _) => "device on USB".into(),
            (189, _) => "USB device, raw transfers".into(),
            (195, _) => "graphics (NVIDIA)".into(),
            (202, _) => "model-specific registers of a processor".into(),
            (203, _) => "identification of a processor (CPUID)".into(),
            (226, 128..=191) => "graphics, rendering (DRM)".into(),
            (226, _) => "graphics (DRM)".into(),
            (229, _) => "console of a hypervisor".into(),
            _ => by_name(name, major, minor, "character"),
        }
    }

    fn misc_words(&self, minor: u32) -> String {
        let Some(name) = self.misc.get(&minor) else {
            return format!("miscellaneous device {minor}");
        };
        let words = match name.as_str() {
            "fuse" => "file systems in user space (FUSE)",
            "cuse" => "character devices in user space (CUSE)",
            "kvm" => "virtual machines (KVM)",
            "tun" => "network interface in user space (TUN/TAP)",
            "loop-control" => "making and removing of loop devices",
            "device-mapper" => "control of the device mapper",
            "btrfs-control" => "control of btrfs",
            "autofs" => "control of automatic mounts",
            "hw_random" => "hardware random generator",
            "rtc" | "efirtc" => "real-time clock",
            "hpet" => "high-precision event timer",
            "uinput" => "input devices in user space",
            "uhid" => "HID devices in user space",
            "vhost-net" => "network of virtual machines, served by the kernel",
            "vhost-vsock" => "sockets of virtual machines, served by the kernel",
            "vsock" => "address of this machine for sockets of virtual machines",
            "userfaultfd" => "page faults handled in user space",
            "cpu_dma_latency" => "limit on the processor's wake-up latency",
            "watchdog" => "watchdog timer",
            "rfkill" => "switches of radio transmitters",
            "snapshot" => "image for suspending to disk",
            "mcelog" => "log of machine checks",
            "psaux" => "PS/2 mouse",
            "vga_arbiter" => "arbitration of VGA cards",
            "nvram" => "non-volatile memory",
            "udmabuf" => "DMA buffers of user memory",
            "uuid" | "sgx_enclave" | "sgx_provision" | "sgx_vepc" => "enclaves (SGX)",
            _ => return format!("miscellaneous device {name}"),
        };
        words.to_owned()
    }

    fn block_words(&self, major: u32, minor: u32) -> String {
        let name = self.block.get(&major).map(String::as_str);
        let mut words = match (major, name) {
            (1, _) => "RAM disk".to_owned(),
            (2, _) => "floppy disk".into(),
            (7, _) => format!("loop device {minor}"),
            (8 | 65..=71 | 128..=135, _) => "disk (SCSI, SATA or USB)".into(),
            (9, _) => "software RAID".into(),
            (11, _) => "CD-ROM".into(),
            (43, _) => "network block device".into(),
            (179, _) => "memory card".into(),
            (_, Some("device-mapper")) => "device mapper".into(),
            (_, Some("virtblk")) => "disk of a virtual machine (virtio)".into(),
            (_, Some("zram")) => "compressed RAM disk".into(),
            (259, _) | (_, Some("blkext")) => "disk or partition".into(),
            _ => by_name(name, major, minor, "block"),
        };
        let Some(block) = self.blocks.get(&(major, minor)) else {
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
}

fn memory_words(minor: u32) -> String {
    let words = match minor {
        1 => "physical memory",
        3 => "null sink",
        4 => "I/O ports",
        5 => "zero source",
        7 => "full device: writes fail for want of space",
        8 => "random generator (waits until it is seeded)",
        9 => "random generator",
        11 => "kernel log",
        _ => return format!("memory device {minor}"),
    };
    words.to_owned()
}

fn input_words(minor: u32) -> String {
    let words = match minor {
        0..=31 => "joystick",
        32..=62 => "mouse",
        63 => "all mice",
        64..=95 | 256..=1023 => "input events",
        _ => "input device",
    };
    words.to_owned()
}

/// Drivers whose numbers differ from one boot to the next.
fn by_name(name: Option<&str>, major: u32, minor: u32, class: &str) -> String {
    let words = match name {
        Some("hidraw") => "HID device, raw reports",
        Some("rtc") => "real-time clock",
        Some("watchdog") => "watchdog timer",
        Some("ptp") => "clock of a network card (PTP)",
        Some("pps") => "pulse each second (PPS)",
        Some("tpm" | "tpmrm") => "trusted platform module",
        Some("vfio" | "vfio-dev") => "device handed to user space (VFIO)",
        Some("iommu") => "translation of device addresses (IOMMU)",
        Some("uio") => "device driven in user space (UIO)",
        Some("gpiochip") => "pins for general input and output",
        Some("media") => "media controller",
        Some("nvme" | "nvme-generic" | "ng") => "NVMe controller",
        Some("bsg") => "SCSI device, raw commands",
        Some("mei") => "management engine",
        Some("dax") => "memory with direct access (DAX)",
        Some("macvtap" | "ipvtap") => "network interface in user space (tap)",
        Some("ndctl" | "dimmctl") => "non-volatile memory, control",
        Some("usbmon") => "traffic on USB",
        Some("virtio-portsdev") => "port of a virtual machine (virtio)",
        Some("cec") => "consumer electronics control",
        Some("dma_heap") => "heap of DMA buffers",
        Some(name) => return format!("{class} device of the driver {name}"),
        None => return format!("{class} device {major}:{minor}"),
    };
    words.to_owned()
}

/// `  3 name`
fn entry(line: &str) -> Option<(u32, String)> {
    let (number, name) = line.trim().split_once(' ')?;
    Some((number.parse().ok()?, name.trim().to_owned()))
}

/// A size in the largest unit that it fills.
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
