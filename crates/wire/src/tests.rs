use std::path::PathBuf;

use super::*;

fn copy_request() -> Request {
    Request::new(Workload::Copy(CopyRequest {
        method: CopyMethod::FsBlock,
        source: Source::File {
            path: PathBuf::from("/tmp/a\nb"),
            xxh3: u64::MAX,
        },
        sink: Sink::Pipe,
        cache: CacheState::Cold,
        size_bytes: 1 << 40,
        buffer_bytes: Some(4096),
        directory: PathBuf::from("/tmp"),
    }))
}

#[test]
fn a_request_survives_the_wire_on_one_line() {
    let request = copy_request();
    let line = encode(&request);
    assert!(!line.contains('\n'), "{line}");
    assert_eq!(decode_request(&line).unwrap(), request);
}

#[test]
fn a_work_on_memory_survives_the_wire() {
    let memory = MemoryRequest {
        addressing: Addressing::Corrected,
        order: AccessOrder::Random,
        mapping: Mapping::FileShared(PathBuf::from("/tmp/\"b\"")),
        initialisation: Initialisation::MemsetMsync,
        huge_pages: HugePages::System,
        advice: MemoryAdvice::PopulateWrite,
        cache: CacheState::Warm,
        buffer_bytes: MEMORY_BYTES_MAX,
        steps: 1 << 20,
        competitor_bytes: 0,
        seed: u64::MAX,
    };
    let chase = ChaseRequest {
        size_bytes: 4096,
        huge_pages: HugePages::Hugetlb,
        accesses: 1,
        seed: 0,
    };
    for workload in [Workload::Memory(memory), Workload::Chase(chase)] {
        let request = Request::new(workload);
        assert_eq!(decode_request(&encode(&request)).unwrap(), request);
    }
}

#[test]
fn a_failure_survives_the_wire() {
    let response = Response::new(Outcome::Failed(Failure {
        kind: FailureKind::Unsupported,
        message: "cannot splice: invalid argument".into(),
    }));
    assert_eq!(decode_response(&encode(&response)).unwrap(), response);
}

#[test]
fn another_version_is_refused_before_its_fields_are_read() {
    let error = decode_request(r#"{"version":99,"unheard_of":1}"#).unwrap_err();
    assert!(error.to_string().contains("version 99"), "{error}");
}

#[test]
fn an_unknown_field_is_refused() {
    let line = encode(&copy_request()).replacen("\"counters\"", "\"counter\"", 1);
    let error = decode_request(&line).unwrap_err();
    assert!(error.to_string().contains("counter"), "{error}");
}

#[test]
fn noise_is_refused_without_panic() {
    for line in ["", "null", "[]", "{}", "{\"version\":\"1\"}", "\u{0}\u{7f}"] {
        assert!(decode_response(line).is_err(), "{line:?}");
    }
}
