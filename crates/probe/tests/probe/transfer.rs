//! The transfer workload, from request to response.

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU8, Ordering};

use rustix::process::{Pid, Signal, kill_process};
use toll_wire::{
    Channel, FailureKind, Outcome, ReceiveMethod, Request, SendMethod, SocketMode, TransferPart,
    TransferRequest, Workload,
};
use xxhash_rust::xxh3::xxh3_64;

use crate::common::{
    PROBE, answer, answer_request, ask, ask_on_full_file_system, children, completed, content,
    directory, failed, failed_or_skip, refused, scratch_files, skip, start, wait_until,
};

const CHANNELS: [Channel; 3] = [Channel::Tcp, Channel::Unix, Channel::Pipe];
/// Methods that send the right bytes with any buffer.
const SENDERS: [SendMethod; 7] = [
    SendMethod::ReadWrite,
    SendMethod::Mmap,
    SendMethod::MendedMmap,
    SendMethod::Sendfile,
    SendMethod::Splice,
    SendMethod::Zerocopy,
    SendMethod::IoUring,
];
const RECEIVERS: [ReceiveMethod; 4] = [
    ReceiveMethod::ReadWrite,
    ReceiveMethod::Mmap,
    ReceiveMethod::PublishedMmap,
    ReceiveMethod::Splice,
];

/// Makes a request to transfer a new file of `length` bytes within `directory`.
fn transfer_of(directory: &Path, length: usize) -> TransferRequest {
    let source = directory.join(format!("source-{length}"));
    let bytes = content(length);
    std::fs::write(&source, &bytes).unwrap();
    TransferRequest {
        receiver_buffer_bytes: 64 << 10,
        source,
        size_bytes: length as u64,
        xxh3: xxh3_64(&bytes),
        directory: directory.to_owned(),
        ..TransferRequest::default()
    }
}

/// Whether this machine does not support the transfer; prints the reason.
fn is_excused(transfer: &TransferRequest, outcome: &Outcome) -> bool {
    let Outcome::Failed(failure) = outcome else {
        return false;
    };
    let is_excused = failure.kind == FailureKind::Unsupported
        && (failure.message.contains("io_uring") || failure.message.contains("127.0.0.1"));
    if is_excused {
        skip(&format!("{transfer:?}: {}", failure.message));
    }
    is_excused
}

/// Checks one transfer of two iterations, including its content.
fn check(transfer: &TransferRequest) {
    let what = format!("{transfer:?}");
    let mut request = Request::new(Workload::Transfer(transfer.clone()));
    request.iterations = 2;
    let outcome = answer_request(&request);
    if is_excused(transfer, &outcome) {
        return;
    }
    let is_zerocopy = transfer.sender == SendMethod::Zerocopy;
    if is_zerocopy && transfer.channel != Channel::Tcp {
        let message = failed(outcome, FailureKind::Unsupported, &what);
        assert!(message.contains("use `channel = \"tcp\"`"), "{message}");
        return;
    }
    let data = completed(outcome, &what);
    assert_eq!(data.samples.len(), 2, "{what}");
    for sample in &data.samples {
        let metrics = &sample.metrics;
        let bytes = transfer.size_bytes as f64;
        assert_eq!(metrics["bytes_transferred"], bytes, "{what}");
        for name in ["sender_duration_ns", "duration_ns"] {
            assert!(metrics[name] > 0.0, "{name} of {what}");
        }
        for name in ["receiver_user_ns", "receiver_system_ns", "user_ns"] {
            assert!(metrics.contains_key(name), "{name} of {what}");
        }
        let has_calls = metrics["calls"] > 0.0 && metrics["receiver_calls"] > 0.0;
        assert_eq!(has_calls, transfer.size_bytes > 0, "{what}");
    }
    for end in ["sender: ", "receiver: "] {
        assert!(
            data.notes.iter().any(|note| note.starts_with(end)),
            "{what}"
        );
    }
    assert!(scratch_files(&transfer.directory).is_empty(), "{what}");
}

/// Checks every channel, sender and receiver with one file and buffer.
fn check_all(length: usize, buffer_bytes: u64) {
    let directory = directory();
    let transfer = transfer_of(directory.path(), length);
    for channel in CHANNELS {
        for sender in SENDERS {
            for receiver in RECEIVERS {
                check(&TransferRequest {
                    channel,
                    sender,
                    receiver,
                    buffer_bytes,
                    ..transfer.clone()
                });
            }
        }
    }
}

#[test]
fn every_pair_of_methods_serves_every_channel() {
    for (length, buffer_bytes) in [(200_003, 64 << 10), (0, 4096), (1, 64 << 10)] {
        check_all(length, buffer_bytes);
    }
}

#[test]
fn every_pair_of_methods_serves_small_odd_and_large_buffers() {
    for (length, buffer_bytes) in [(9_695, 512), (100_003, 5_003), (3_000_017, 1 << 20)] {
        check_all(length, buffer_bytes);
    }
}

#[test]
fn the_published_receiver_serves_files_and_windows_of_every_size() {
    let directory = directory();
    for window_bytes in [4096, 8192, 1 << 20] {
        let window = usize::try_from(window_bytes).unwrap();
        for length in [0, 1, window - 1, window, window + 1, 5 * window + 7] {
            for receiver_buffer_bytes in [512, 5_003] {
                check(&TransferRequest {
                    receiver: ReceiveMethod::PublishedMmap,
                    receiver_buffer_bytes,
                    window_bytes,
                    ..transfer_of(directory.path(), length)
                });
            }
        }
    }
}

#[test]
fn the_published_sender_sends_right_bytes_only_if_a_buffer_is_a_page() {
    let directory = directory();
    for (length, buffer_bytes, is_right) in [
        (0, 512, true),
        (512, 512, true),
        (513, 512, false),
        (9_695, 512, false),
        (9_695, 2_048, false),
        (9_695, 4_096, true),
    ] {
        let transfer = TransferRequest {
            sender: SendMethod::PublishedMmap,
            buffer_bytes,
            ..transfer_of(directory.path(), length)
        };
        if is_right {
            check(&transfer)
        } else {
            let workload = Workload::Transfer(transfer);
            let message = refused(&workload, FailureKind::Unsupported);
            let words =
                "different content arrived, because the loop copies from the page's beginning";
            assert!(message.contains(words), "{message}");
        }
    }
    assert!(scratch_files(directory.path()).is_empty());
}

#[test]
fn the_published_sender_makes_a_call_for_each_buffer() {
    let directory = directory();
    for (sender, buffer_bytes, calls) in [
        (SendMethod::PublishedMmap, 4_096, 3.0),
        (SendMethod::MendedMmap, 4_096, 3.0),
        (SendMethod::MendedMmap, 512, 19.0),
    ] {
        let workload = Workload::Transfer(TransferRequest {
            sender,
            buffer_bytes,
            ..transfer_of(directory.path(), 9_695)
        });
        let what = format!("{sender:?} {buffer_bytes}");
        let data = completed(ask(&workload), &what);
        assert_eq!(data.samples[0].metrics["calls"], calls, "{what}");
    }
}

#[test]
fn only_the_asked_part_of_a_longer_file_is_transferred() {
    let directory = directory();
    let mut transfer = transfer_of(directory.path(), 100_000);
    transfer.size_bytes = 70_001;
    transfer.xxh3 = xxh3_64(&content(100_000)[..70_001]);
    for sender in SENDERS {
        check(&TransferRequest {
            sender,
            ..transfer.clone()
        });
    }
}

#[test]
fn changed_content_is_noticed() {
    let directory = directory();
    let mut transfer = transfer_of(directory.path(), 10_000);
    transfer.xxh3 ^= 1;
    for channel in CHANNELS {
        transfer.channel = channel;
        let outcome = ask(&Workload::Transfer(transfer.clone()));
        if is_excused(&transfer, &outcome) {
            continue;
        }
        let message = failed(outcome, FailureKind::Failed, "a wrong hash");
        assert!(message.contains("its content hashes to"), "{message}");
    }
    assert!(scratch_files(directory.path()).is_empty());
}

#[test]
fn what_a_channel_or_a_buffer_cannot_be_is_told() {
    let directory = directory();
    let transfer = transfer_of(directory.path(), 10);
    let asynchronous = TransferRequest {
        mode: SocketMode::Async,
        ..transfer.clone()
    };
    let far_pipe = TransferRequest {
        channel: Channel::Pipe,
        part: TransferPart::Sender {
            listen: Ipv4Addr::LOCALHOST.into(),
        },
        ..transfer.clone()
    };
    for (transfer, words) in [
        (asynchronous, "use `channel = \"device\"`"),
        (far_pipe, "cannot join two hosts"),
    ] {
        let message = refused(&Workload::Transfer(transfer), FailureKind::Unsupported);
        assert!(message.contains(words), "{message}");
    }
    for buffer_bytes in [0, 511, (16 << 20) + 1] {
        let workload = Workload::Transfer(TransferRequest {
            buffer_bytes,
            ..transfer.clone()
        });
        refused(&workload, FailureKind::Instrument);
    }
}

#[test]
fn a_source_that_is_missing_or_too_short_fails() {
    let directory = directory();
    let mut transfer = transfer_of(directory.path(), 1_000);
    transfer.size_bytes = 1_001;
    let workload = Workload::Transfer(transfer.clone());
    let message = refused(&workload, FailureKind::Failed);
    assert!(message.contains("it has only 1000"), "{message}");
    transfer.source = directory.path().join("absent");
    let message = refused(&Workload::Transfer(transfer), FailureKind::Failed);
    assert!(message.contains("no such file or directory"), "{message}");
    assert!(scratch_files(directory.path()).is_empty());
}

#[test]
fn a_full_file_system_is_the_receivers_failure_and_leaves_no_file() {
    let directory = directory();
    let mount = directory.path().join("small");
    std::fs::create_dir(&mount).unwrap();
    let mut transfer = transfer_of(directory.path(), 4 << 20);
    transfer.directory.clone_from(&mount);
    for channel in CHANNELS {
        for receiver in RECEIVERS {
            (transfer.channel, transfer.receiver) = (channel, receiver);
            let workload = Workload::Transfer(transfer.clone());
            let Some(outcome) = ask_on_full_file_system(&workload, &mount) else {
                return;
            };
            if is_excused(&transfer, &outcome) {
                continue;
            }
            let what = format!("{channel:?} {receiver:?}");
            let message = failed(outcome, FailureKind::Failed, &what);
            let is_named = match receiver {
                // It copies into its mapped file, so a missing page ends it (SIGBUS).
                ReceiveMethod::PublishedMmap => {
                    message.contains("the receiver's process has ended")
                }
                _ => {
                    message.starts_with("cannot receive by ")
                        && message.contains("no space left on device")
                }
            };
            assert!(is_named, "{what}: {message}");
        }
    }
}

fn start_probe(transfer: TransferRequest) -> Child {
    let request = Request::new(Workload::Transfer(transfer));
    start(&mut Command::new(PROBE), &request)
}

/// Makes a transfer that takes a while: many small calls over a file with
/// holes.
fn long_transfer(directory: &Path, channel: Channel) -> TransferRequest {
    const SIZE_BYTES: u64 = 256 << 20;
    let mut transfer = transfer_of(directory, 0);
    let source = std::fs::OpenOptions::new()
        .write(true)
        .open(&transfer.source)
        .unwrap();
    source.set_len(SIZE_BYTES).unwrap();
    transfer.size_bytes = SIZE_BYTES;
    transfer.buffer_bytes = 512;
    transfer.channel = channel;
    transfer
}

/// Whether a receiver in `directory` has some of the bytes.
fn has_bytes(directory: &Path) -> bool {
    let files = scratch_files(directory);
    let mut lengths = files.iter().map(std::fs::metadata);
    lengths.any(|file| file.is_ok_and(|file| file.len() > 0))
}

fn wait_for_bytes(directory: &Path) {
    wait_until("the receiver has bytes", || has_bytes(directory));
}

fn kill(process: u32) {
    let process = Pid::from_raw(process.try_into().unwrap()).unwrap();
    kill_process(process, Signal::KILL).unwrap();
}

/// Kills the receiver of a transfer half-way.
fn kill_receiver(channel: Channel, sender: SendMethod) {
    let directory = directory();
    let transfer = TransferRequest {
        sender,
        ..long_transfer(directory.path(), channel)
    };
    let mut probe = start_probe(transfer);
    wait_until("the receiver has bytes or the probe has ended", || {
        has_bytes(directory.path()) || probe.try_wait().unwrap().is_some()
    });
    for receiver in children(probe.id()) {
        kill(receiver);
    }
    let outcome = answer(probe);
    let what = format!("{channel:?} {sender:?}");
    let Some(message) = failed_or_skip(outcome, FailureKind::Failed, &what) else {
        return;
    };
    assert_eq!(
        message, "cannot receive: the receiver's process has ended; see its host's kernel log",
        "{what}"
    );
    assert!(scratch_files(directory.path()).is_empty(), "{what}");
}

#[test]
fn a_receiver_that_is_killed_is_a_failure_that_names_it() {
    for channel in CHANNELS {
        for sender in SENDERS {
            if channel == Channel::Tcp || sender != SendMethod::Zerocopy {
                kill_receiver(channel, sender);
            }
        }
    }
}

#[test]
fn a_receiver_does_not_outlive_a_sender_that_is_killed() {
    for channel in CHANNELS {
        let directory = directory();
        let transfer = long_transfer(directory.path(), channel);
        let mut probe = start_probe(transfer);
        wait_for_bytes(directory.path());
        let receiver = children(probe.id())[0];
        kill(probe.id());
        probe.wait().unwrap();
        let state = || std::fs::read_to_string(format!("/proc/{receiver}/stat"));
        wait_until("the receiver is gone", || {
            // The process that inherits it may be slow to reap it.
            state().map_or(true, |state| state.contains(") Z "))
        });
        if state().is_ok() {
            skip("nothing reaps orphaned processes here");
            continue;
        }
        // The next probe removes what is left.
        check(&transfer_of(directory.path(), 1));
    }
}

/// Returns an address of this machine that neither another test nor another run
/// of the tests uses.
fn own_address() -> Ipv4Addr {
    static NEXT: AtomicU8 = AtomicU8::new(1);
    let [_, _, high, low] = std::process::id().to_be_bytes();
    Ipv4Addr::new(127, high, low, NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Starts the two ends as two probes.
fn parts(transfer: &TransferRequest, iterations: u32) -> (Child, Child) {
    let address = IpAddr::from(own_address());
    let ask = |part| {
        let transfer = TransferRequest {
            part,
            ..transfer.clone()
        };
        let mut request = Request::new(Workload::Transfer(transfer));
        request.iterations = iterations;
        start(&mut Command::new(PROBE), &request)
    };
    // The receiver is started first, and retries until there is a sender.
    let receiver = ask(TransferPart::Receiver { connect: address });
    let sender = ask(TransferPart::Sender { listen: address });
    (sender, receiver)
}

#[test]
fn two_probes_can_be_the_two_ends() {
    let directory = directory();
    let transfer = transfer_of(directory.path(), 300_001);
    for sender in SENDERS {
        for receiver in RECEIVERS {
            let transfer = TransferRequest {
                sender,
                receiver,
                ..transfer.clone()
            };
            let (sending, receiving) = parts(&transfer, 3);
            let outcome = answer(sending);
            if is_excused(&transfer, &outcome) {
                continue;
            }
            let data = completed(outcome, "the sender");
            assert_eq!(data.samples.len(), 3);
            for sample in &data.samples {
                let metrics = &sample.metrics;
                assert_eq!(metrics["bytes_transferred"], 300_001.0);
                // The receiver may have all bytes before the sender's last call returns.
                assert!(metrics["duration_ns"] > 0.0 && metrics["sender_duration_ns"] > 0.0);
            }
            let data = completed(answer(receiving), "the receiver");
            assert!(data.samples.is_empty());
            assert!(scratch_files(directory.path()).is_empty());
        }
    }
}

#[test]
fn ends_that_were_asked_for_different_things_find_out() {
    let directory = directory();
    let transfer = transfer_of(directory.path(), 1_000);
    let address = IpAddr::from(own_address());
    let ask = |part, size_bytes| {
        let transfer = TransferRequest {
            part,
            size_bytes,
            ..transfer.clone()
        };
        start_probe(transfer)
    };
    let receiver = ask(TransferPart::Receiver { connect: address }, 999);
    let sender = ask(TransferPart::Sender { listen: address }, 1_000);
    for end in [sender, receiver] {
        let message = failed(answer(end), FailureKind::Instrument, "different sizes");
        assert!(
            message.contains("give both ends the same request"),
            "{message}"
        );
    }
}

#[test]
fn an_end_on_another_host_that_is_killed_is_a_failure_of_the_other() {
    for is_sender_killed in [true, false] {
        let directory = directory();
        let transfer = long_transfer(directory.path(), Channel::Tcp);
        let (sender, receiver) = parts(&transfer, 1);
        wait_for_bytes(directory.path());
        let (mut killed, other, name) = if is_sender_killed {
            (
                sender,
                receiver,
                "cannot send: the sender's process has ended",
            )
        } else {
            (
                receiver,
                sender,
                "cannot receive: the receiver's process has ended",
            )
        };
        kill(killed.id());
        killed.wait().unwrap();
        let message = failed(answer(other), FailureKind::Failed, name);
        assert!(message.starts_with(name), "{message}");
    }
}
