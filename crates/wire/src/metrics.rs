//! Names of the metrics in the samples of each workload.

use crate::WorkloadKind;
use crate::guest::PATH_LENGTH;

const EVERYWHERE: &[&str] = &[
    "duration_ns",
    "cpu_ns",
    "user_ns",
    "system_ns",
    "minor_faults",
    "major_faults",
    "voluntary_switches",
    "involuntary_switches",
    "max_rss_bytes",
    "block_input_bytes",
    "block_output_bytes",
];

const RATES: &[&str] = &["duration_per_byte_ns", "throughput_bytes_per_s", "calls"];

/// What the whole system did meanwhile.
const SYSTEM: &[&str] = &[
    "swapped_in_bytes",
    "swapped_out_bytes",
    "system_major_faults",
    "refaults_anonymous",
    "refaults_file",
    "pages_scanned",
    "pages_reclaimed",
    "pages_activated",
    "pages_deactivated",
    "reclaim_decision_reclaim",
    "reclaim_decision_reclaim_clean",
    "reclaim_decision_keep",
    "reclaim_decision_activate",
    "reclaim_activate_overruled",
];

const TRANSFER: &[&str] = &[
    "bytes_transferred",
    "sender_duration_ns",
    "receiver_duration_ns",
    "receiver_user_ns",
    "receiver_system_ns",
    "receiver_minor_faults",
    "receiver_calls",
    "receiver_disk_writes",
    "receiver_disk_write_bytes",
    "sender_kernel_calls",
    "receiver_kernel_calls",
    "sender_pages",
    "receiver_pages",
    "sender_page_state",
    "receiver_page_state",
];

const MEMORY: &[&str] = &[
    "accesses",
    "duration_per_access_ns",
    "buffer_bytes",
    "huge_page_bytes",
    "reachable_pages",
    "competitor_bytes",
    "init_resident_bytes",
    "resident_bytes",
];

const RECLAIM: &[&str] = &[
    "hot_pages",
    "stream_pages",
    "touches",
    "hot_major_faults",
    "hot_minor_faults",
];

const PRIMES: &[&str] = &[
    "allocate_duration_ns",
    "draw_duration_ns",
    "count_duration_ns",
    "way_duration_ns",
    "numbers",
    "primes",
];

const BOOT: &[&str] = &[
    "boot_duration_ns",
    "kernel_image_bytes",
    "kernel_code_bytes",
    "kernel_data_bytes",
    "slab_bytes",
];

impl WorkloadKind {
    /// Names of the metrics that its samples may have, counters aside. A guest that
    /// counts instructions has [`PATH_LENGTH`] in the place of each duration.
    pub fn metrics(self) -> Vec<String> {
        let own: &[&[&str]] = match self {
            Self::Copy => &[RATES, &["bytes_copied", "startup_ns"]],
            Self::Write => &[RATES, &["bytes_written", "sync_calls", "tick_duration_ns"]],
            Self::Command => &[&["exit_status"]],
            Self::Memory => &[MEMORY, SYSTEM],
            Self::Chase => &[&["accesses", "latency_ns", "buffer_bytes", "huge_page_bytes"]],
            // Its published set is the work of memory.
            Self::Reclaim => &[RECLAIM, MEMORY, SYSTEM],
            Self::Primes => &[PRIMES],
            Self::Crossing => &[&[
                "bytes_copied",
                "calls",
                "duration_per_byte_ns",
                "duration_per_call_ns",
            ]],
            Self::SystemCalls => &[&["calls", "slab_per_object_bytes"]],
            Self::Boot => &[BOOT],
            Self::Transfer => &[RATES, TRANSFER],
            Self::Files => &[
                RATES,
                &[
                    "bytes_read",
                    "bytes_written",
                    "operations",
                    "duration_per_operation_ns",
                ],
            ],
        };
        // A boot is over before its trial begins.
        let everywhere = if self == Self::Boot { &[] } else { EVERYWHERE };
        let named = everywhere.iter().chain(own.iter().copied().flatten());
        let mut names: Vec<String> = named.map(|name| (*name).to_owned()).collect();
        if matches!(self, Self::Memory | Self::Reclaim) {
            names.extend(EVERYWHERE.iter().map(|name| format!("init_{name}")));
        }
        let path_lengths = names.iter().filter_map(|name| {
            let part = name.strip_suffix("duration_ns")?;
            Some(format!("{part}{PATH_LENGTH}"))
        });
        let path_lengths: Vec<String> = path_lengths.collect();
        names.extend(path_lengths);
        names
    }
}
