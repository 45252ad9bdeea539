//! The machine a run was made on.

use std::fs;

use serde::{Deserialize, Serialize};

/// What a reader needs to know of a machine to judge a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// CPU model as the CPU names itself.
    pub cpu_model: String,
    /// CPUs online.
    pub cpus: usize,
    /// Kernel release, `uname -r`.
    pub kernel: String,
    /// Hypervisor, or `none`.
    pub virtualization: String,
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
            "- Date: {date}\n- Machine: {}, {} CPUs, virtualisation {}, Linux {}, load average before the run {:.2}\n",
            self.cpu_model, self.cpus, self.virtualization, self.kernel, self.load_before
        )
    }

    /// Whether others were at work before the run.
    pub(crate) fn was_busy(&self) -> bool {
        self.load_before > LOAD_QUIET_MAX
    }

    /// Describes this machine.
    pub fn inspect() -> Machine {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        Machine {
            cpu_model: field(&cpuinfo, "model name").unwrap_or_else(|| "unknown".into()),
            cpus: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            kernel: rustix::system::uname().release().to_string_lossy().into(),
            virtualization: virtualization(&cpuinfo),
            load_before: load
                .split_whitespace()
                .next()
                .and_then(|number| number.parse().ok())
                .unwrap_or(f64::NAN),
        }
    }
}

/// The value of the first `name : value` line.
fn field(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    })
}

fn virtualization(cpuinfo: &str) -> String {
    let is_guest = field(cpuinfo, "flags")
        .is_some_and(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor"));
    if !is_guest {
        return "none".into();
    }
    hypervisor_signature()
        .or_else(|| fs::read_to_string("/sys/class/dmi/id/sys_vendor").ok())
        .map_or_else(|| "unknown hypervisor".into(), |name| name.trim().into())
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
