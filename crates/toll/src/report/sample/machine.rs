//! A machine and a run on it.

use std::collections::BTreeMap;

use crate::claim::model::GuestSummary;
use crate::run::{FileSystem, Machine};
use crate::store::{RunRecord, RunStatus};

pub fn machine() -> Machine {
    Machine {
        hostname: "bench-01".into(),
        cpu_model: "AMD EPYC 7B13 64-Core Processor".into(),
        cpus_online: 2,
        microcode: Some("0xa0011d5".into()),
        mitigations: BTreeMap::from([
            ("meltdown".into(), "Not affected".into()),
            (
                "retbleed".into(),
                "Mitigation: untrained return thunk; SMT vulnerable".into(),
            ),
            (
                "spectre_v2".into(),
                "Mitigation: Retpolines; IBPB: conditional; STIBP: always-on".into(),
            ),
        ]),
        smt: Some("on".into()),
        governor: None,
        caches_bytes: BTreeMap::from([
            ("L1d".into(), 32 << 10),
            ("L2".into(), 512 << 10),
            ("L3".into(), 32 << 20),
        ]),
        virtualization: "kvm".into(),
        os: Some("Debian GNU/Linux 12 (bookworm)".into()),
        kernel_release: "6.1.0-25-cloud-amd64".into(),
        kernel_version: "#1 SMP PREEMPT_DYNAMIC Debian 6.1.106-3 (2024-08-26)".into(),
        kernel_command_line: "BOOT_IMAGE=/vmlinuz root=/dev/vda1 ro console=ttyS0".into(),
        clock_source: Some("kvm-clock".into()),
        clock_read_ns: 23.4,
        memory_bytes: 8 << 30,
        swap_bytes: 0,
        transparent_hugepage: Some("madvise".into()),
        randomize_va_space: Some("2".into()),
        page_bytes: 4096,
        work_file_system: FileSystem {
            kind: "ext4".into(),
            source: "/dev/vda1".into(),
            options: "rw,relatime,discard".into(),
        },
        root: true,
    }
}

pub fn run(id: i64, experiment: &str, title: &str, question: &str) -> RunRecord {
    RunRecord {
        id,
        uid: format!("{:016x}", 0x5e1f_3a77_0012_9c00_u64 + id.unsigned_abs()),
        experiment: experiment.into(),
        title: title.into(),
        question: question.into(),
        profile: "standard".into(),
        seed: 14_695_981_039_346_656_037,
        created_at: "2025-03-14T09:26:53Z".into(),
        updated_at: Some("2025-03-14T09:41:07Z".into()),
        status: RunStatus::Complete,
        stop_reason: Some("every claim's interval is narrow enough to decide".into()),
        toll_version: "0.1.0".into(),
        command_line: format!("toll run {experiment} --profile standard"),
        machine: machine(),
        imported: false,
    }
}

pub fn guest() -> GuestSummary {
    let texts = |pairs: &[(&str, &str)]| {
        let pairs = pairs.iter();
        pairs
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    };
    GuestSummary {
        levels: texts(&[
            ("kernel", "toll"),
            ("memory", "256MiB"),
            ("swap", "1GiB"),
            ("vcpus", "2"),
            ("command_line", ""),
        ]),
        accelerator: Some("tcg".into()),
        facts: texts(&[("kernel release", "6.12.1-toll"), ("clock source", "tsc")]),
        boots: 24,
        failed: 1,
        first_error: Some("cannot boot the guest: it panicked".into()),
        boot_ns: Some(2.3e9),
    }
}

/// A guest whose every text is hostile.
pub fn hostile_guest(text: &str) -> GuestSummary {
    let texts = BTreeMap::from([(text.to_owned(), text.to_owned())]);
    let mut guest = guest();
    guest.levels.extend(texts.clone());
    guest.levels.insert("command_line".into(), text.to_owned());
    guest.facts.extend(texts);
    guest.facts.insert("kernel release".into(), text.to_owned());
    guest.first_error = Some(text.to_owned());
    guest
}
