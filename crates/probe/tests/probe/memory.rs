//! The memory and the chase workload, from request to response.

use std::path::{Path, PathBuf};

use crate::common::{
    self, answer_request, ask, completed, directory, failed, refused, sample_or_skip, skip,
};
use toll_wire::{
    AccessOrder, Addressing, CacheState, ChaseRequest, FailureKind, HugePages, Initialisation,
    Mapping, MemoryAdvice, MemoryRequest, Outcome, Request, Sample, Workload,
};

const BUFFER_BYTES: u64 = 64 << 20;
/// What may be in memory besides the 64th: a working set, and pages at its
/// ends.
const SLACK_BYTES: f64 = 64.0 * 1024.0;

pub fn memory() -> MemoryRequest {
    MemoryRequest {
        order: AccessOrder::Random,
        buffer_bytes: BUFFER_BYTES,
        steps: 4096,
        seed: 3,
        ..MemoryRequest::default()
    }
}

pub fn zeros(directory: &Path) -> PathBuf {
    let path = directory.join("zeros");
    std::fs::write(&path, vec![0; BUFFER_BYTES as usize]).expect("the directory takes files");
    path
}

fn sample(request: MemoryRequest) -> Sample {
    common::sample(&Workload::Memory(request))
}

/// Whether data written there goes to a device, which it does not on tmpfs.
fn is_on_a_device(directory: &Path) -> bool {
    const TMPFS_MAGIC: i64 = 0x0102_1994;
    let status = rustix::fs::statfs(directory).expect("the directory is there");
    if status.f_type == TMPFS_MAGIC {
        skip("the build directory is on tmpfs, which sends nothing to storage");
        return false;
    }
    true
}

#[test]
fn the_published_addressing_touches_a_64th_of_the_buffer() {
    for order in [AccessOrder::Sequential, AccessOrder::Random] {
        let sample = sample(MemoryRequest { order, ..memory() });
        let resident = sample.metrics["resident_bytes"];
        let share = BUFFER_BYTES as f64 / 64.0;
        assert!(
            (share..=share + SLACK_BYTES).contains(&resident),
            "{order:?}: {resident} of {BUFFER_BYTES}"
        );
        assert_eq!(sample.metrics["init_resident_bytes"], 0.0, "{order:?}");
        assert_eq!(sample.metrics["accesses"], 4096.0 * 8192.0);
    }
}

#[test]
fn the_corrected_addressing_touches_nearly_all_of_it() {
    let sample = sample(MemoryRequest {
        addressing: Addressing::Corrected,
        order: AccessOrder::Sequential,
        ..memory()
    });
    let resident = sample.metrics["resident_bytes"];
    assert!(resident > 0.99 * BUFFER_BYTES as f64, "{resident}");
    assert!(sample.metrics["minor_faults"] >= 16_000.0, "{sample:?}");
    assert_eq!(sample.metrics["huge_page_bytes"], 0.0);
}

#[test]
fn populating_brings_the_whole_buffer_into_memory_before_the_accesses() {
    let directory = directory();
    let file = zeros(directory.path());
    for mapping in [
        Mapping::Anonymous,
        Mapping::FilePrivate(file.clone()),
        Mapping::FileShared(file.clone()),
    ] {
        let sample = sample(MemoryRequest {
            mapping: mapping.clone(),
            initialisation: Initialisation::Populate,
            ..memory()
        });
        let before = sample.metrics["init_resident_bytes"];
        assert_eq!(before, BUFFER_BYTES as f64, "{mapping:?}");
        if let Some(peak) = sample.metrics.get("init_max_rss_bytes") {
            assert!(*peak > 0.95 * before, "{mapping:?}: {peak}");
        }
    }
}

#[test]
fn advice_can_populate_too() {
    for advice in [MemoryAdvice::PopulateRead, MemoryAdvice::PopulateWrite] {
        let workload = Workload::Memory(MemoryRequest { advice, ..memory() });
        if let Some(sample) = sample_or_skip(&workload) {
            let before = sample.metrics["init_resident_bytes"];
            // Reading maps the page of zeros, which belongs to no process.
            let is_resident = before == BUFFER_BYTES as f64;
            let writes = advice == MemoryAdvice::PopulateWrite;
            assert_eq!(is_resident, writes, "{before}");
        }
    }
}

#[test]
fn only_a_shared_mapping_writes_to_storage() {
    let directory = directory();
    if !is_on_a_device(directory.path()) {
        return;
    }
    let file = zeros(directory.path());
    let output = |mapping: Mapping, order| {
        sample(MemoryRequest {
            mapping,
            order,
            ..memory()
        })
        .metrics["block_output_bytes"]
    };
    for order in [AccessOrder::Sequential, AccessOrder::Random] {
        assert_eq!(output(Mapping::Anonymous, order), 0.0);
        assert_eq!(output(Mapping::FilePrivate(file.clone()), order), 0.0);
        // Repeated, because what a trial made dirty is clean after it.
        for _ in 0..2 {
            let bytes = output(Mapping::FileShared(file.clone()), order);
            assert!(bytes >= BUFFER_BYTES as f64 / 64.0, "{bytes}");
        }
    }
}

#[test]
fn memset_and_msync_write_the_whole_buffer_at_initialisation() {
    let directory = directory();
    if !is_on_a_device(directory.path()) {
        return;
    }
    let file = zeros(directory.path());
    let sample = sample(MemoryRequest {
        mapping: Mapping::FileShared(file),
        initialisation: Initialisation::MemsetMsync,
        ..memory()
    });
    let written = sample.metrics["init_block_output_bytes"];
    assert!(written >= BUFFER_BYTES as f64, "{written}");
    assert_eq!(sample.metrics["init_resident_bytes"], BUFFER_BYTES as f64);
}

#[test]
fn a_cold_file_comes_from_storage_and_a_warm_one_does_not() {
    let directory = directory();
    if !is_on_a_device(directory.path()) {
        return;
    }
    let file = zeros(directory.path());
    let input = |cache| {
        let sample = sample(MemoryRequest {
            mapping: Mapping::FilePrivate(file.clone()),
            initialisation: Initialisation::Populate,
            cache,
            ..memory()
        });
        sample.metrics["init_block_input_bytes"]
    };
    assert_eq!(input(CacheState::Warm), 0.0);
    let cold = input(CacheState::Cold);
    assert!(cold >= BUFFER_BYTES as f64, "{cold}");
}

#[test]
fn iterations_and_trials_on_one_file_are_checked_and_alike() {
    let directory = directory();
    let file = zeros(directory.path());
    for initialisation in [
        Initialisation::None,
        Initialisation::Populate,
        Initialisation::MemsetMsync,
    ] {
        for mapping in [
            Mapping::Anonymous,
            Mapping::FilePrivate(file.clone()),
            Mapping::FileShared(file.clone()),
        ] {
            let mut request = Request::new(Workload::Memory(MemoryRequest {
                mapping,
                initialisation,
                addressing: Addressing::Corrected,
                steps: 50,
                ..memory()
            }));
            request.iterations = 3;
            request.warmup_iterations = 1;
            let what = format!("{:?}", request.workload);
            let data = completed(answer_request(&request), &what);
            assert_eq!(data.samples.len(), 3, "{what}");
            let resident = |sample: &Sample| sample.metrics["resident_bytes"];
            let first = resident(&data.samples[0]);
            assert!(data.samples.iter().all(|s| resident(s) == first), "{what}");
        }
    }
}

#[test]
fn the_largest_resident_set_is_that_of_each_part() {
    let sample = sample(memory());
    let (Some(init), Some(access)) = (
        sample.metrics.get("init_max_rss_bytes"),
        sample.metrics.get("max_rss_bytes"),
    ) else {
        return skip("this kernel cannot reset the peak resident set");
    };
    // The 16 MiB that flush the cache are used between the two parts.
    let least = BUFFER_BYTES as f64 / 64.0;
    assert!(*init < least + 8e6 && *access >= least, "{init} {access}");
    assert!(*access < least + 8e6, "{access}");
}

#[test]
fn huge_pages_are_what_was_asked_for_or_refused_with_a_reason() {
    for huge_pages in [HugePages::Madvise, HugePages::Hugetlb] {
        let request = MemoryRequest {
            huge_pages,
            addressing: Addressing::Corrected,
            ..memory()
        };
        match ask(&Workload::Memory(request)) {
            Outcome::Completed(data) => {
                let huge = data.samples[0].metrics["huge_page_bytes"];
                if huge > 0.0 {
                    assert!(huge >= BUFFER_BYTES as f64 / 2.0, "{huge}")
                } else {
                    skip("this kernel gave no transparent huge pages")
                }
            }
            outcome => {
                let message = failed(outcome, FailureKind::Unsupported, "huge pages");
                assert!(message.contains("; "), "{message}");
                skip(&message);
            }
        }
    }
}

#[test]
fn a_counter_that_is_missing_has_a_reason_and_no_value() {
    let mut request = Request::new(Workload::Memory(memory()));
    request.counters = ["page-faults", "l1d-read-misses", "l1d-write-accesses"]
        .map(str::to_owned)
        .to_vec();
    let data = completed(answer_request(&request), "counters");
    for name in &request.counters {
        let is_read = data.samples[0].counters.contains_key(name);
        let reason = data.counters_missing.get(name);
        assert_ne!(is_read, reason.is_some(), "{name}: {reason:?}");
    }
}

#[test]
fn a_chase_tells_its_latency() {
    let mut request = Request::new(Workload::Chase(ChaseRequest {
        size_bytes: 1 << 20,
        accesses: 100_003,
        seed: 5,
        ..ChaseRequest::default()
    }));
    request.iterations = 3;
    let data = completed(answer_request(&request), "chase");
    assert_eq!(data.samples.len(), 3);
    for sample in &data.samples {
        let metrics = &sample.metrics;
        assert_eq!(metrics["accesses"], 100_003.0);
        let expected = metrics["duration_ns"] / 100_003.0;
        // Text keeps all but the last bit of a number.
        assert!((metrics["latency_ns"] / expected - 1.0).abs() < 1e-12);
        assert!(expected > 0.0);
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let chase = ChaseRequest {
        size_bytes: 65,
        accesses: 1,
        seed: 0,
        ..ChaseRequest::default()
    };
    let memory = |buffer_bytes, mapping| {
        Workload::Memory(MemoryRequest {
            buffer_bytes,
            mapping,
            ..memory()
        })
    };
    let missing = Mapping::FileShared("/nonexistent/file".into());
    for (workload, kind) in [
        (memory(4096, Mapping::Anonymous), FailureKind::Instrument),
        (memory(BUFFER_BYTES, missing), FailureKind::Failed),
        (Workload::Chase(chase), FailureKind::Instrument),
    ] {
        let message = refused(&workload, kind);
        assert!(message.starts_with("cannot "), "{message}");
    }
}
