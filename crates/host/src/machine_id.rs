//! A name that distinguishes machines.

use toll_core::run::Machine;
use xxhash_rust::xxh3::xxh3_64;

/// Longest name of a host (gethostname(2)).
const HOST_BYTES_MAX: usize = 64;

/// Names a machine by its host name and eight digits of a hash. The hash covers the hardware, the
/// kernel and the type of the file system.
pub fn machine_id(machine: &Machine) -> String {
    let facts = (
        &machine.cpu_model,
        machine.cpus_online,
        machine.memory_bytes,
        &machine.virtualization,
        &machine.kernel_release,
        &machine.kernel_version,
        &machine.work_file_system.kind,
    );
    let facts = serde_json::to_vec(&facts).expect("it is plain data");
    let digits = xxh3_64(&facts) >> 32;
    // The result is a name of directories, which may have 255 bytes. Most characters take three
    // bytes there.
    let host = &machine.hostname[..machine.hostname.floor_char_boundary(HOST_BYTES_MAX)];
    format!("{host}-{digits:08x}")
}
