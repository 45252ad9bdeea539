//! A name for a machine that tells it from others.

use toll_core::run::Machine;
use xxhash_rust::xxh3::xxh3_64;

/// Longest name of a host (gethostname(2)).
const HOST_BYTES_MAX: usize = 64;

/// A host with its hardware, kernel and file system: the host's name, and eight digits
/// of the rest.
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
    // It names directories, of up to 255 bytes, in which most characters take three for each.
    let host = &machine.hostname[..machine.hostname.floor_char_boundary(HOST_BYTES_MAX)];
    format!("{host}-{digits:08x}")
}
