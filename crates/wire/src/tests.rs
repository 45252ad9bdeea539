use std::path::PathBuf;

use super::*;

fn copy_request() -> Request {
    Request::new(Workload::Copy(CopyRequest {
        source: Source::File {
            path: PathBuf::from("/tmp/a\n\"b\""),
            xxh3: u64::MAX,
        },
        size_bytes: 1 << 40,
        buffer_bytes: Some(4096),
        ..CopyRequest::default()
    }))
}

fn transfer(channel: Channel, sender: SendMethod) -> TransferRequest {
    TransferRequest {
        channel,
        sender,
        receiver_buffer_bytes: 64 << 10,
        part: TransferPart::Receiver {
            connect: "fd77::1".parse().unwrap(),
        },
        ..TransferRequest::default()
    }
}

#[test]
fn every_work_survives_the_wire_on_one_line() {
    let mut all: Vec<Request> = words::<WorkloadKind>()
        .iter()
        .map(|kind| from_word::<WorkloadKind>(kind).unwrap())
        .map(|kind| Request::new(kind.request(&[]).unwrap()))
        .collect();
    all.push(copy_request());
    all.push(Request::new(Workload::Memory(MemoryRequest {
        mapping: Mapping::FileShared(PathBuf::from("/tmp/b")),
        competitor: Some(Competitor {
            bytes: 1,
            uses: CompetitorUses::Sweep,
        }),
        seed: u64::MAX,
        ..MemoryRequest::default()
    })));
    all.push(Request::new(Workload::Transfer(transfer(
        Channel::Tcp,
        SendMethod::Zerocopy,
    ))));
    for request in all {
        let line = encode(&request);
        assert!(!line.contains('\n'), "{line}");
        assert_eq!(decode_request(&line).unwrap(), request);
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
fn what_is_not_understood_is_refused() {
    let error = decode_request(r#"{"version":99,"unheard_of":1}"#).unwrap_err();
    assert!(error.to_string().contains("version 99"), "{error}");
    let line = encode(&copy_request()).replacen("\"counters\"", "\"counter\"", 1);
    let error = decode_request(&line).unwrap_err();
    assert!(error.to_string().contains("counter"), "{error}");
    for line in ["", "null", "[]", "{}", "{\"version\":\"1\"}", "\u{0}\u{7f}"] {
        assert!(decode_response(line).is_err(), "{line:?}");
    }
    assert!(decode_transfer_message(r#"{"version":0,"message":"end"}"#).is_err());
}

#[test]
fn what_ends_of_a_transfer_say_survives_the_wire() {
    let transfer = transfer(Channel::Tcp, SendMethod::Zerocopy);
    for message in [
        TransferMessage::Hello {
            terms: TransferTerms::from(&transfer),
            notes: vec!["a\nb".into()],
        },
        TransferMessage::Begin {
            connect: Some("10.0.77.1:2325".parse().unwrap()),
        },
        TransferMessage::Received(ReceiverReport {
            end_ns: u64::MAX,
            ..ReceiverReport::default()
        }),
        TransferMessage::End,
    ] {
        let line = encode_transfer_message(&message);
        assert_eq!(decode_transfer_message(&line).unwrap(), message);
    }
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
        let mut request = both(channel, SendMethod::Mmap);
        request.page_log = PageLog::On;
        assert_eq!(fits(&request), can_choose);
    }
    // The published loop needs a buffer whose size divides a page.
    for (buffer_bytes, is_part_of_page) in [(512, true), (4096, true), (5000, false), (8192, false)]
    {
        let mut request = both(Channel::Tcp, SendMethod::PublishedMmap);
        request.buffer_bytes = buffer_bytes;
        assert_eq!(fits(&request), is_part_of_page, "{buffer_bytes}");
        request.sender = SendMethod::MendedMmap;
        assert!(fits(&request), "{buffer_bytes}");
    }
}

#[test]
fn operations_on_files_know_what_they_work_on() {
    assert!(FilesOperation::OpenTree.is_of_tree());
    assert!(FilesOperation::WriteRandom.is_random());
    assert!(!FilesOperation::ReadSequential.is_of_tree());
}
