//! Captures of leases, and of packets that nobody would send, compared with the expected
//! reports.

use std::path::Path;

use proptest::prelude::*;
use toll_observe::dhcp::{Observer, Packet, Report, observe};

const LEASE: &[u8] = include_bytes!("captures/lease.pcap");
const PCAPNG: &[u8] = include_bytes!("captures/little-microseconds.pcapng");

/// Bytes before the packets of a pcap file, before each packet's content, and before the
/// DHCP options in an Ethernet frame.
const HEADER: usize = 24;
const PACKET_HEADER: usize = 16;
const OPTIONS: usize = 14 + 20 + 8 + 240;

/// Returns the frames of a lease: DISCOVER, OFFER, REQUEST, ACK, RELEASE.
fn lease() -> Vec<&'static [u8]> {
    let mut frames = Vec::new();
    let mut rest = &LEASE[HEADER..];
    while let [_, _, _, _, _, _, _, _, a, b, c, d, ..] = rest {
        let length = u32::from_le_bytes([*a, *b, *c, *d]) as usize;
        let (packet, behind) = rest.split_at(PACKET_HEADER + length);
        frames.push(&packet[PACKET_HEADER..]);
        rest = behind;
    }
    frames
}

fn observed(link: u16, frames: &[Vec<u8>]) -> Report {
    let mut observer = Observer::default();
    for (number, bytes) in (1..).zip(frames) {
        observer.take(&Packet {
            number,
            time_ns: None,
            link,
            bytes,
        });
    }
    observer.finish()
}

/// Each capture must give the content of the `.json` file beside it.
#[test]
fn captures_say_what_is_kept_beside_them() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/observe/captures");
    let entries = std::fs::read_dir(directory).expect("captures");
    let files = entries.map(|entry| entry.expect("an entry").path());
    let mut count = 0;
    for path in files.filter(|path| path.extension().is_some_and(|end| end != "json")) {
        let capture = std::fs::read(&path).expect("a capture");
        let found = match observe(&capture) {
            Ok(report) => serde_json::to_string_pretty(&report).expect("JSON"),
            Err(reason) => format!("error: {reason}"),
        };
        let expected = std::fs::read_to_string(path.with_extension("json")).expect("JSON");
        assert_eq!(found, expected.trim_end(), "{}", path.display());
        count += 1;
    }
    assert_eq!(count, 28);
}

#[test]
fn a_capture_that_ends_early_tells_where() {
    let mut ends = vec![HEADER];
    for frame in lease() {
        ends.push(ends[ends.len() - 1] + PACKET_HEADER + frame.len());
    }
    for cut in HEADER..LEASE.len() {
        let report = observe(&LEASE[..cut]).unwrap();
        let found: Vec<u64> = report.problems.iter().map(|one| one.packet).collect();
        let before = ends.iter().filter(|end| **end <= cut).count() as u64;
        if ends.contains(&cut) {
            assert_eq!(found, [0; 0], "{cut}")
        } else {
            assert!(
                found.iter().all(|packet| *packet == before) && !found.is_empty(),
                "{cut}"
            )
        }
    }
}

#[test]
fn many_messages_come_to_an_end() {
    let ack = lease()[3];
    let message = 14 + 20 + 8;
    let frames = |change: &dyn Fn(u32, &mut Vec<u8>)| -> Vec<Vec<u8>> {
        let frame = |n| {
            let mut frame = ack.to_vec();
            change(n, &mut frame);
            frame
        };
        (0..20_000).map(frame).collect()
    };
    // Each from another client with another number, all from one client, and all the
    // same.
    let of_many = frames(&|n, frame| {
        frame[message + 4..message + 8].copy_from_slice(&n.to_be_bytes());
        frame[message + 16..message + 20].copy_from_slice(&n.to_be_bytes());
        frame[message + 30..message + 34].copy_from_slice(&n.to_be_bytes());
    });
    let of_one = frames(&|n, frame| {
        frame[message + 16..message + 20].copy_from_slice(&n.to_be_bytes());
        frame[OPTIONS + 2] = if n % 2 == 0 { 6 } else { 2 };
    });
    for (frames, exchanges) in [(of_many, 20_000), (of_one, 1), (frames(&|_, _| {}), 1)] {
        let report = observed(1, &frames);
        assert_eq!(
            (report.messages, report.exchanges.len()),
            (20_000, exchanges)
        );
    }
}

proptest! {
    #[test]
    fn no_change_to_a_capture_makes_it_panic(changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..12), cut in any::<prop::sample::Index>(), is_next in any::<bool>()) {
        let mut file = if is_next { PCAPNG } else { LEASE }.to_vec();
        for (index, byte) in changes {
            let at = index.index(file.len());
            file[at] = byte;
        }
        let _ = observe(&file);
        file.truncate(cut.index(file.len()));
        let _ = observe(&file);
    }

    #[test]
    fn no_frame_makes_it_panic(link in prop::sample::select(vec![0_u16, 1, 12, 101, 108, 113, 228, 229, 276, 9]), bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        let _ = observed(link, &[bytes]);
    }

    #[test]
    fn no_options_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
        let mut frame = lease()[0][..OPTIONS].to_vec();
        frame.extend(&bytes);
        let length = u16::try_from(frame.len() - 14).unwrap();
        frame[16..18].copy_from_slice(&length.to_be_bytes());
        frame[38..40].copy_from_slice(&(length - 20).to_be_bytes());
        prop_assert_eq!(observed(1, &[frame]).messages, 1);
    }
}
