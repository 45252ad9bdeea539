//! What can run on this machine, and why the rest cannot.

use toll_system::process;
use toll_system::strace::Strace;

use super::call_counter::{Counter, Scope};
use super::filesystem;
use super::fuse_servers::Served;
use super::memory_limit::memory_limit_obstacle;
use super::{guest, memory};

/// File systems that programs serve. Each one in this list has a requirement that the others do not
/// have.
const SERVED: [&str; 6] = [
    "userfs",
    "userfs-passthrough",
    "userfs-sftp",
    "sshfs",
    "sshfs-newest",
    "passthrough-hp",
];

/// Something that experiments may need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capability {
    /// Name of the capability, as shown to the user.
    pub name: String,
    /// How the capability is available, or why it is not.
    pub state: Result<String, String>,
}

/// Checks for everything that the built-in experiments may need.
pub fn capabilities() -> Vec<Capability> {
    let mut list = vec![
        capability("root", || {
            if rustix::process::geteuid().is_root() {
                Ok("yes".into())
            } else {
                Err("no; file systems on loop devices will be skipped".into())
            }
        }),
        capability("perf counters", perf),
        capability("io_uring", io_uring),
    ];
    for kind in ["ext4", "xfs", "xfs-striped", "btrfs"] {
        list.push(capability(
            &format!("file system {kind} on a loop device"),
            || filesystem::loop_obstacle(kind).map_or_else(|| Ok("yes".into()), Err),
        ));
    }
    list.push(capability("limit on memory, with swap", || {
        memory_limit_obstacle().map_or_else(|| Ok("yes".into()), Err)
    }));
    list.push(capability("file system tmpfs", || {
        filesystem::tmpfs_obstacle().map_or_else(|| Ok("yes".into()), Err)
    }));
    list.push(capability("foreign file system", || {
        filesystem::bindfs().map(|_| "the work directory through bindfs (FUSE)".into())
    }));
    for name in SERVED {
        list.push(capability(&format!("file system {name}"), || {
            file_system_obstacle(name).map_or_else(|| Ok("yes".into()), Err)
        }));
    }
    for (name, kind) in [("transparent", "madvise"), ("reserved", "hugetlb")] {
        list.push(capability(&format!("huge pages, {name}"), || {
            memory::huge_pages(kind)
        }));
    }
    list.push(capability("system cat", || match process::find("cat") {
        Some(path) => Ok(path.display().to_string()),
        None => Err("no cat in PATH".into()),
    }));
    list.push(capability("tracing by strace", || {
        Strace::find().map(|_| "yes".into())
    }));
    list.push(capability("tracing by BPF", || {
        Counter::new(false, Scope::Marked).map(|_| "yes".into())
    }));
    list.push(capability("guests", guest::guest_state));
    list.push(capability(
        "address-space randomisation",
        || match std::fs::read_to_string("/proc/sys/kernel/randomize_va_space") {
            Ok(text) if text.trim() == "2" => Ok("on".into()),
            Ok(text) => Err(format!(
                "kernel.randomize_va_space is {}, so memory layouts repeat; set it to 2",
                text.trim()
            )),
            Err(error) => Err(error.to_string()),
        },
    ));
    list
}

fn capability(name: &str, look: impl FnOnce() -> Result<String, String>) -> Capability {
    Capability {
        name: name.to_owned(),
        state: look(),
    }
}

fn perf() -> Result<String, String> {
    let level = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid")
        .map_err(|_| "this kernel has no perf events".to_owned())?;
    let level: i32 = level.trim().parse().unwrap_or(4);
    // "cpu" is the core's counting unit; hybrid CPUs have one for each kind of core.
    let has_unit = ["cpu", "cpu_core", "armv8_pmuv3_0"].iter().any(|unit| {
        std::path::Path::new("/sys/bus/event_source/devices")
            .join(unit)
            .exists()
    });
    if !has_unit {
        return Err("software events only: this CPU or guest has no visible counting unit".into());
    }
    // The probe also counts in kernel mode, which needs level 1 or less.
    if level > 1 && !rustix::process::geteuid().is_root() {
        return Err(format!(
            "kernel.perf_event_paranoid is {level}; run as root or set it to 1"
        ));
    }
    Ok("hardware and software events".into())
}

fn io_uring() -> Result<String, String> {
    match std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled") {
        Ok(text) if text.trim() == "0" => Ok("yes".into()),
        // The value 1 excludes callers without a privilege that root has.
        Ok(text) if text.trim() == "1" && rustix::process::geteuid().is_root() => Ok("yes".into()),
        Ok(text) => Err(format!(
            "kernel.io_uring_disabled is {}; set it to 0",
            text.trim()
        )),
        // The switch exists since Linux 6.6. Older kernels that have io_uring enable it.
        Err(_) => Ok("unknown until the first trial".into()),
    }
}

/// Returns why a file system of the factor `fs` is not available here; `None` if it is.
pub fn file_system_obstacle(name: &str) -> Option<String> {
    match name {
        "work" => None,
        "tmpfs" => filesystem::tmpfs_obstacle(),
        "foreign" => filesystem::bindfs().err(),
        name => match Served::parse(name) {
            Some(served) => served.obstacle(),
            None => filesystem::loop_obstacle(name),
        },
    }
}
