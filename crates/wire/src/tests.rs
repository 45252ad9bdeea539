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
        competitor: None,
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

fn transfer(channel: Channel, sender: SendMethod) -> TransferRequest {
    TransferRequest {
        channel,
        sender,
        receiver: ReceiveMethod::Mmap,
        mode: SocketMode::Sync,
        buffer_bytes: 512,
        receiver_buffer_bytes: 4096,
        source: PathBuf::from("/tmp/a"),
        size_bytes: 5 << 30,
        xxh3: u64::MAX,
        directory: PathBuf::from("/tmp"),
        part: TransferPart::Receiver {
            connect: "fd77::1".parse().unwrap(),
        },
    }
}

#[test]
fn a_transfer_and_what_its_ends_say_survive_the_wire() {
    let transfer = transfer(Channel::Tcp, SendMethod::Zerocopy);
    let request = Request::new(Workload::Transfer(transfer.clone()));
    assert_eq!(decode_request(&encode(&request)).unwrap(), request);
    let report = ReceiverReport {
        end_ns: u64::MAX,
        ..ReceiverReport::default()
    };
    for message in [
        TransferMessage::Hello {
            terms: TransferTerms::from(&transfer),
            notes: vec!["a\nb".into()],
        },
        TransferMessage::Begin {
            connect: Some("10.0.77.1:2325".parse().unwrap()),
        },
        TransferMessage::Received(report),
        TransferMessage::End,
    ] {
        let line = encode_transfer_message(&message);
        assert_eq!(decode_transfer_message(&line).unwrap(), message);
    }
    assert!(decode_transfer_message(r#"{"version":0,"message":"end"}"#).is_err());
}

#[test]
fn a_transfer_that_no_machine_can_do_is_known_from_its_request() {
    let both = |channel, sender| TransferRequest {
        part: TransferPart::Both,
        ..transfer(channel, sender)
    };
    let fits = |request: &TransferRequest| request.contradiction().is_none();
    assert!(fits(&both(Channel::Tcp, SendMethod::Zerocopy)));
    assert!(!fits(&both(Channel::Unix, SendMethod::Zerocopy)));
    assert!(fits(&both(Channel::Pipe, SendMethod::Splice)));
    assert!(!fits(&transfer(Channel::Pipe, SendMethod::Splice)));
    for (channel, can_choose) in [(Channel::Tcp, false), (Channel::Device, true)] {
        let mut request = both(channel, SendMethod::Mmap);
        request.mode = SocketMode::Async;
        assert_eq!(fits(&request), can_choose);
    }
}

#[test]
fn work_on_files_survives_the_wire_and_knows_what_it_works_on() {
    let request = Request::new(Workload::Files(FilesRequest {
        operation: FilesOperation::OpenTree,
        directory: PathBuf::from("/mnt/a"),
        below: PathBuf::from("/srv/a\nb"),
        size_bytes: 1,
        small_bytes: 0,
        count: FILES_MAX,
        buffer_bytes: 4096,
        calls: Some(FILE_CALLS_MAX),
        durability: Durability::Fsync,
        cache: CacheState::Cold,
        seed: u64::MAX,
    }));
    assert_eq!(decode_request(&encode(&request)).unwrap(), request);
    assert!(FilesOperation::OpenTree.is_of_tree());
    assert!(FilesOperation::WriteRandom.is_random());
    assert!(!FilesOperation::ReadSequential.is_of_tree());
}
