//! Forms of captures and of frames.

use super::*;

#[test]
fn every_link_is_read() {
    let ip = lease()[0][14..].to_vec();
    let with = |header: &[u8]| [header, &ip[..]].concat();
    let cooked = [&[0, 4, 0, 1, 0, 6][..], &CLIENT, &[0, 0, 8, 0]].concat();
    let cooked2 = [&[8, 0, 0, 0, 0, 0, 0, 2, 0, 1, 4, 6][..], &CLIENT, &[0, 0]].concat();
    let tagged = [
        &[255; 6][..],
        &CLIENT,
        &[0x88, 0xa8, 0, 5, 0x81, 0, 0, 7, 8, 0],
    ]
    .concat();
    for (link, frame) in [
        (101, ip.clone()),
        (228, ip.clone()),
        (12, ip.clone()),
        (0, with(&[2, 0, 0, 0])),
        (108, with(&[0, 0, 0, 2])),
        (113, with(&cooked)),
        (276, with(&cooked2)),
        (1, with(&tagged)),
    ] {
        let report = observe(&pcap(link, &[frame])).unwrap();
        assert_eq!(report.messages, 1, "link type {link}: {report:#?}");
        let event = &report.exchanges[0].messages[0];
        match link {
            113 | 276 => assert_eq!(event.source_link.as_deref(), Some("02:00:00:00:00:01")),
            1 => assert_eq!(event.vlans, [5, 7]),
            _ => assert_eq!(event.source_link, None),
        }
    }
    let report = observe(&pcap(147, &lease())).unwrap();
    assert!(
        report.notes[0].contains("link type 147"),
        "{:?}",
        report.notes
    );
}

/// A section of pcapng in either order of bytes.
pub(super) fn pcapng(is_big: bool, resolution: u8, frames: &[Vec<u8>]) -> Vec<u8> {
    let n16 = |number: u16| {
        if is_big {
            number.to_be_bytes()
        } else {
            number.to_le_bytes()
        }
    };
    let n32 = |number: u32| {
        if is_big {
            number.to_be_bytes()
        } else {
            number.to_le_bytes()
        }
    };
    let block = |kind: u32, body: &[u8]| {
        let mut body = body.to_vec();
        body.resize(body.len().next_multiple_of(4), 0);
        let length = n32(u32::try_from(body.len() + 12).unwrap());
        [&n32(kind)[..], &length, &body, &length].concat()
    };
    let section = [&n32(0x1a2b_3c4d)[..], &n16(1), &n16(0), &[255; 8]].concat();
    let options = [
        &n16(9)[..],
        &n16(1),
        &[resolution, 0, 0, 0],
        &n16(0),
        &n16(0),
    ]
    .concat();
    let raw = [&n16(101)[..], &n16(0), &n32(0)].concat();
    let ethernet = [&n16(1)[..], &n16(0), &n32(0), &options].concat();
    let mut file = [
        block(0x0a0d_0d0a, &section),
        block(1, &raw),
        block(1, &ethernet),
    ]
    .concat();
    // Names, statistics, and what nobody knows.
    for kind in [4, 5, 0xbad, 0x0bad_f00d] {
        file.extend(block(kind, &[0; 8]));
    }
    for frame in frames {
        let length = u32::try_from(frame.len()).unwrap();
        let numbers = [1, 0, 5_000_000, length, length].map(n32).concat();
        file.extend(block(6, &[numbers, frame.clone()].concat()));
    }
    let length = u32::try_from(frames[0].len() - 14).unwrap();
    file.extend(block(3, &[&n32(length)[..], &frames[0][14..]].concat()));
    file
}

#[test]
fn pcapng_is_read_in_both_orders_with_several_interfaces() {
    for (is_big, resolution, time_ns) in [
        (false, 6, 5_000_000_000),
        (true, 9, 5_000_000),
        (true, 0x80 | 20, 4_768_371_582),
    ] {
        let file = pcapng(is_big, resolution, &lease());
        let report = observe(&[file.clone(), file].concat()).unwrap();
        assert_eq!((report.packets, report.messages), (12, 12), "{report:#?}");
        assert_eq!(report.problems, []);
        assert_eq!(report.exchanges[0].messages[0].time_ns, Some(time_ns));
    }
}

#[test]
fn every_form_of_pcap_is_read() {
    let little = pcap(1, &lease());
    let mut nanoseconds = little.clone();
    nanoseconds[..4].copy_from_slice(&0xa1b2_3c4d_u32.to_le_bytes());
    let report = observe(&nanoseconds).unwrap();
    assert_eq!(
        report.exchanges[0].messages[0].time_ns,
        Some(1_000_000_000_500)
    );
    // Numbers of four bytes each, but for the frames.
    let mut big = little.clone();
    big[..4].reverse();
    big[20..24].reverse();
    let mut at = 24;
    for frame in lease() {
        big[at..at + 16].chunks_mut(4).for_each(<[u8]>::reverse);
        at += 16 + frame.len();
    }
    assert_eq!(observe(&big).unwrap().messages, 5);
    assert!(observe(b"\x1f\x8b\x08\0").unwrap_err().contains("gunzip"));
    assert!(observe(b"hello").unwrap_err().contains("no capture"));
    assert!(observe(b"").is_err());
}

#[test]
fn a_capture_that_ends_early_tells_where() {
    let whole = pcap(1, &lease());
    let mut ends = vec![24];
    for frame in lease() {
        ends.push(ends[ends.len() - 1] + 16 + frame.len());
    }
    for cut in 24..whole.len() {
        let report = observe(&whole[..cut]).unwrap();
        let told: Vec<u64> = report.problems.iter().map(|one| one.packet).collect();
        let before = ends.iter().filter(|end| **end <= cut).count() as u64;
        match ends.contains(&cut) {
            true => assert_eq!(told, [0; 0], "{cut}"),
            false => assert!(
                told.iter().all(|packet| *packet == before) && !told.is_empty(),
                "{cut}"
            ),
        }
    }
}

#[test]
fn checksums_are_verified() {
    let mut frame = lease()[0].clone();
    let sum = |frame: &[u8]| observed(&[frame.to_vec()]).exchanges[0].messages[0].checksum;
    assert_eq!(sum(&frame), Checksum::None);
    // The sum over everything, with nothing in its place.
    let udp = 14 + 20;
    let pseudo: Vec<u8> = [&frame[26..34], &[0, 17], &frame[udp + 4..udp + 6]].concat();
    let words = |bytes: &[u8]| -> u32 {
        bytes
            .chunks(2)
            .map(|pair| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |b| u32::from(*b)))
            .sum()
    };
    let fold = |mut sum: u32| {
        while sum >> 16 > 0 {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        u16::try_from(sum).unwrap()
    };
    let right = !fold(words(&pseudo) + words(&frame[udp..]));
    frame[udp + 6..udp + 8].copy_from_slice(&right.to_be_bytes());
    assert_eq!(sum(&frame), Checksum::Good);
    let partial = fold(words(&pseudo));
    frame[udp + 6..udp + 8].copy_from_slice(&partial.to_be_bytes());
    assert_eq!(sum(&frame), Checksum::Offloaded);
    frame[udp + 6] ^= 1;
    assert_eq!(sum(&frame), Checksum::Bad);
}

#[test]
fn fragments_and_the_other_version_are_told() {
    let mut fragment = lease()[0].clone();
    fragment[20] = 0x20;
    let mut rest = fragment.clone();
    rest[21] = 9;
    let mut six = vec![0; 14 + 48];
    six[12..14].copy_from_slice(&[0x86, 0xdd]);
    six[14] = 0x60;
    six[20] = 17;
    six[14 + 42..14 + 44].copy_from_slice(&547_u16.to_be_bytes());
    let report = observed(&[fragment, rest, six]);
    assert_eq!(report.messages, 0);
    assert!(
        report.notes.iter().any(|note| note.contains("DHCPv6")),
        "{:?}",
        report.notes
    );
    assert!(
        report
            .notes
            .iter()
            .any(|note| note.starts_with("2 packets are fragments"))
    );
    assert_eq!(report.problems.len(), 1);
}
