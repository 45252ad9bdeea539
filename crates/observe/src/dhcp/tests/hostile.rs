//! Captures that nobody would send.

use proptest::prelude::*;

use super::forms::pcapng;
use super::*;

#[test]
fn many_messages_come_to_an_end() {
    // Each of another client, all of one client, and all the same.
    let frames = |of: &dyn Fn(u32) -> Vec<u8>| (0..20_000).map(of).collect::<Vec<_>>();
    let server = address(54, SERVER);
    let of_many = frames(&|n| {
        let mut bytes = message(2, n, NOWHERE, Ipv4Addr::from(n), &[&[53, 1, 5], &server]);
        bytes[30..34].copy_from_slice(&n.to_be_bytes());
        to_client(&bytes)
    });
    let of_one = frames(&|n| {
        let kind = [53, 1, if n % 2 == 0 { 6 } else { 2 }];
        to_client(&message(2, 1, NOWHERE, Ipv4Addr::from(n), &[&kind]))
    });
    for (frames, exchanges) in [
        (of_many, 20_000),
        (of_one, 1),
        (vec![lease()[3].clone(); 20_000], 1),
    ] {
        let report = observed(&frames);
        assert_eq!(
            (report.messages, report.exchanges.len()),
            (20_000, exchanges)
        );
    }
}

proptest! {
    #[test]
    fn no_change_to_a_capture_makes_it_panic(changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..12), cut in any::<prop::sample::Index>(), is_next in any::<bool>()) {
        let mut file = match is_next {
            true => pcapng(false, 6, &lease()),
            false => pcap(1, &lease()),
        };
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
        let _ = observe(&pcap(link, &[bytes]));
    }

    #[test]
    fn no_options_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
        let frame = to_server(&message(1, 7, NOWHERE, NOWHERE, &[&bytes]));
        let report = observed(&[frame]);
        prop_assert_eq!(report.messages, 1);
    }
}
