//! Reads the properties of a machine.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use toll_system::mount_table::mount_of;

use crate::run::{FileSystem, Machine};

/// Number of timed clock reads from which the cost of one read is found.
const CLOCK_READS: usize = 20_001;

/// Describes this machine, with the file system that holds `work_directory`.
pub fn inspect(work_directory: &Path) -> Machine {
    let uname = rustix::system::uname();
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    Machine {
        hostname: uname.nodename().to_string_lossy().into_owned(),
        cpu_model: model_of(&cpuinfo),
        cpus_online: std::thread::available_parallelism()
            .map_or(1, |count| u32::try_from(count.get()).unwrap_or(u32::MAX)),
        microcode: field(&cpuinfo, "microcode"),
        mitigations: directory_values(Path::new("/sys/devices/system/cpu/vulnerabilities")),
        smt: one_line("/sys/devices/system/cpu/smt/control"),
        governor: one_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        caches_bytes: caches(Path::new("/sys/devices/system/cpu/cpu0/cache")),
        virtualization: virtualization(&cpuinfo),
        os: fs::read_to_string("/etc/os-release")
            .ok()
            .and_then(|text| os_name(&text)),
        kernel_release: uname.release().to_string_lossy().into_owned(),
        kernel_version: uname.version().to_string_lossy().into_owned(),
        kernel_command_line: one_line("/proc/cmdline").unwrap_or_default(),
        clock_source: one_line("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        clock_read_ns: clock_read_ns(),
        memory_bytes: kibibytes(&meminfo, "MemTotal"),
        swap_bytes: kibibytes(&meminfo, "SwapTotal"),
        transparent_hugepage: one_line("/sys/kernel/mm/transparent_hugepage/enabled")
            .and_then(|text| chosen(&text)),
        randomize_va_space: one_line("/proc/sys/kernel/randomize_va_space"),
        page_bytes: rustix::param::page_size() as u64,
        work_file_system: file_system_of(work_directory),
        root: rustix::process::geteuid().is_root(),
    }
}

/// The CPU's model.
pub(super) fn cpu_model() -> String {
    model_of(&fs::read_to_string("/proc/cpuinfo").unwrap_or_default())
}

fn model_of(cpuinfo: &str) -> String {
    field(cpuinfo, "model name").unwrap_or_else(|| "unknown".into())
}

fn one_line(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.trim();
    (!line.is_empty()).then(|| line.to_owned())
}

/// The value of the first `name : value` line.
pub(super) fn field(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    })
}

fn kibibytes(meminfo: &str, name: &str) -> u64 {
    field(meminfo, name)
        .and_then(|value| value.split_whitespace().next()?.parse::<u64>().ok())
        .map_or(0, |kibibytes| kibibytes * 1024)
}

/// The choice in brackets of a sysfs list such as `always [madvise] never`.
fn chosen(text: &str) -> Option<String> {
    let (_, rest) = text.split_once('[')?;
    Some(rest.split_once(']')?.0.to_owned())
}

fn os_name(os_release: &str) -> Option<String> {
    os_release.lines().find_map(|line| {
        let value = line.strip_prefix("PRETTY_NAME=")?;
        Some(value.trim_matches('"').to_owned())
    })
}

fn directory_values(directory: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let value = fs::read_to_string(entry.path()).ok()?;
            let name = entry.file_name().to_string_lossy().into_owned();
            Some((name, value.trim().to_owned()))
        })
        .collect()
}

fn caches(directory: &Path) -> BTreeMap<String, u64> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let read = |name: &str| fs::read_to_string(entry.path().join(name)).ok();
            let (level, kind, size) = (read("level")?, read("type")?, read("size")?);
            let suffix = match kind.trim() {
                "Data" => "d",
                "Unified" => "",
                _ => return None,
            };
            let size = crate::spec::quantity::parse_size(size.trim()).ok()?;
            Some((format!("L{}{suffix}", level.trim()), size))
        })
        .collect()
}

fn virtualization(cpuinfo: &str) -> String {
    let is_guest = field(cpuinfo, "flags")
        .is_some_and(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor"));
    if !is_guest {
        return "none".into();
    }
    let named = one_line("/sys/hypervisor/type").or_else(hypervisor_signature);
    let vendor = one_line("/sys/class/dmi/id/sys_vendor");
    named
        .or(vendor)
        .unwrap_or_else(|| "unknown hypervisor".into())
}

/// The name that a hypervisor returns at CPUID leaf 0x4000_0000, which the CPU vendors reserve for
/// hypervisors ("Hypervisor CPUID Interface Proposal", 2008). All Linux guest code uses it
/// (arch/x86/kernel/cpu/hypervisor.c).
#[cfg(target_arch = "x86_64")]
fn hypervisor_signature() -> Option<String> {
    let leaf = std::arch::x86_64::__cpuid(0x4000_0000);
    let bytes: Vec<u8> = [leaf.ebx, leaf.ecx, leaf.edx]
        .iter()
        .flat_map(|register| register.to_le_bytes())
        .collect();
    let text = String::from_utf8_lossy(&bytes);
    let name = text.trim_matches(|c: char| c == '\0' || c.is_whitespace());
    match name {
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

/// Median cost of one clock read, with the clock that the probe uses.
fn clock_read_ns() -> f64 {
    use rustix::time::{ClockId, clock_gettime};
    let read = || {
        let time = clock_gettime(ClockId::MonotonicRaw);
        time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
    };
    // Times reads in batches, since a clock whose tick is longer than a read gives mostly zeros for
    // single reads.
    let batch = 64;
    let mut costs: Vec<f64> = (0..CLOCK_READS / batch)
        .map(|_| {
            let begin = read();
            for _ in 0..batch {
                std::hint::black_box(read());
            }
            (read() - begin) / (batch + 1) as f64
        })
        .collect();
    costs.sort_by(f64::total_cmp);
    costs[costs.len() / 2]
}

/// The file system that holds a path.
pub(super) fn file_system_of(path: &Path) -> FileSystem {
    let mount = mount_of(path);
    mount.map_or_else(FileSystem::default, |mount| FileSystem {
        kind: mount.kind,
        source: mount.source,
        options: mount.options,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_files_yield_nothing_rather_than_nonsense() {
        assert_eq!(
            field("model name\t: X: Y\n", "model name").as_deref(),
            Some("X: Y")
        );
        assert_eq!(field("no colon", "model name"), None);
        assert_eq!(kibibytes("MemTotal: 12 kB", "MemTotal"), 12288);
        assert_eq!(kibibytes("MemTotal: many", "MemTotal"), 0);
        assert_eq!(chosen("always [madvise] never").as_deref(), Some("madvise"));
        assert_eq!(chosen("broken ]["), None);
    }

    #[test]
    fn this_machine_is_described() {
        let machine = inspect(Path::new("/"));
        assert!(machine.memory_bytes > 0);
        assert!(machine.clock_read_ns > 0.0);
        assert!(!machine.work_file_system.kind.is_empty());
        assert!(!machine.kernel_release.is_empty());
    }
}
