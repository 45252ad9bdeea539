//! The machine a run was made on.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// What a reader needs to know of a machine to judge a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// CPU model as the CPU names itself.
    pub cpu_model: String,
    /// CPUs online.
    pub cpus: usize,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Kernel release, `uname -r`.
    pub kernel: String,
    /// Frequency governor of CPU 0, where there is one.
    pub governor: Option<String>,
    /// Hypervisor, or `none`.
    pub virtualization: String,
    /// Type of the work file system.
    pub work_file_system: String,
    /// Processes that were ready to run before the run, averaged over a
    /// minute: others on the machine make noise.
    pub load_before: f64,
}

/// Load from which other processes take a CPU now and then.
pub(crate) const LOAD_QUIET_MAX: f64 = 0.5;

impl Machine {
    /// The lines of a table's head about when and where.
    pub(crate) fn head(&self, date: &str) -> String {
        format!(
            "- Date: {date}\n- Machine: {}, {} CPUs, virtualisation {}, Linux {}, load before the run {:.2}\n",
            self.cpu_model, self.cpus, self.virtualization, self.kernel, self.load_before
        )
    }

    /// Whether others were at work before the run.
    pub(crate) fn was_busy(&self) -> bool {
        self.load_before > LOAD_QUIET_MAX
    }

    /// Describes this machine, with the file system that holds `work`.
    pub fn inspect(work: &Path) -> Machine {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let mountinfo = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let work = work.canonicalize().unwrap_or_else(|_| work.to_owned());
        let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        Machine {
            cpu_model: field(&cpuinfo, "model name").unwrap_or_else(|| "unknown".into()),
            cpus: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            memory_bytes: meminfo_bytes("MemTotal").unwrap_or(0),
            kernel: rustix::system::uname().release().to_string_lossy().into(),
            governor: one_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            virtualization: virtualization(&cpuinfo),
            work_file_system: kind_of(&mountinfo, &work).unwrap_or_else(|| "unknown".into()),
            load_before: first_number(&load).unwrap_or(f64::NAN),
        }
    }
}

/// Memory that can be had without swapping.
pub(crate) fn memory_available_bytes() -> Option<u64> {
    meminfo_bytes("MemAvailable")
}

fn meminfo_bytes(name: &str) -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let kibibytes: u64 = field(&text, name)?
        .split_whitespace()
        .next()?
        .parse()
        .ok()?;
    Some(kibibytes << 10)
}

fn first_number(text: &str) -> Option<f64> {
    text.split_whitespace().next()?.parse().ok()
}

/// The value of the first `name : value` line.
fn field(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    })
}

fn one_line(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.trim();
    (!line.is_empty()).then(|| line.to_owned())
}

/// Type of the mount that holds a path (`proc_pid_mountinfo(5)`).
fn kind_of(mountinfo: &str, path: &Path) -> Option<String> {
    mountinfo
        .lines()
        .filter_map(|line| {
            let (left, right) = line.split_once(" - ")?;
            Some((left.split(' ').nth(4)?, right.split(' ').next()?))
        })
        .filter(|(point, _)| path.starts_with(point))
        // Of two mounts on one point the later hides the earlier.
        .max_by_key(|(point, _)| point.len())
        .map(|(_, kind)| kind.to_owned())
}

fn virtualization(cpuinfo: &str) -> String {
    let is_guest = field(cpuinfo, "flags")
        .is_some_and(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor"));
    if !is_guest {
        return "none".into();
    }
    hypervisor_signature()
        .or_else(|| one_line("/sys/class/dmi/id/sys_vendor"))
        .unwrap_or_else(|| "unknown hypervisor".into())
}

/// The name by which a hypervisor answers at CPUID leaf 0x4000_0000, which the
/// CPU makers leave to it ("Hypervisor CPUID Interface Proposal", 2008).
#[cfg(target_arch = "x86_64")]
fn hypervisor_signature() -> Option<String> {
    let leaf = std::arch::x86_64::__cpuid(0x4000_0000);
    let bytes: Vec<u8> = [leaf.ebx, leaf.ecx, leaf.edx]
        .iter()
        .flat_map(|register| register.to_le_bytes())
        .collect();
    let text = String::from_utf8_lossy(&bytes);
    match text.trim_matches(|c: char| c == '\0' || c.is_whitespace()) {
        "" => None,
        "KVMKVMKVM" => Some("KVM".into()),
        "VMwareVMware" => Some("VMware".into()),
        "Microsoft Hv" => Some("Hyper-V".into()),
        "XenVMMXenVMM" => Some("Xen".into()),
        "TCGTCGTCGTCG" => Some("QEMU without KVM".into()),
        other => Some(other.to_owned()),
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn hypervisor_signature() -> Option<String> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_and_latest_mount_point_holds_a_path() {
        let mounts = "\
22 1 253:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard
31 22 0:26 / /mnt rw - tmpfs tmpfs rw
32 31 0:27 / /mnt rw - xfs /dev/loop0 rw
broken line
";
        let kind = |path: &str| kind_of(mounts, Path::new(path)).expect("the root holds it");
        assert_eq!(kind("/home/x"), "ext4");
        assert_eq!(kind("/mnt/a"), "xfs");
        assert_eq!(kind("/mntx"), "ext4");
    }

    #[test]
    fn this_machine_is_described() {
        let machine = Machine::inspect(Path::new("/"));
        assert!(machine.memory_bytes > 0 && machine.cpus > 0);
        assert_ne!(machine.work_file_system, "unknown");
    }
}
