//! Captures by hand: leases, and what is wrong with messages.

mod forms;
mod hostile;

use core::net::Ipv4Addr;

use super::*;

const CLIENT: [u8; 6] = [2, 0, 0, 0, 0, 1];
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const OWN: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 5);
const NOWHERE: Ipv4Addr = Ipv4Addr::UNSPECIFIED;

/// A message: operation, number, addresses of the client and for it, options.
fn message(
    operation: u8,
    xid: u32,
    client: Ipv4Addr,
    your: Ipv4Addr,
    options: &[&[u8]],
) -> Vec<u8> {
    let mut bytes = vec![operation, 1, 6, 0];
    bytes.extend(xid.to_be_bytes());
    bytes.extend([0; 4]);
    bytes.extend(client.octets());
    bytes.extend(your.octets());
    bytes.extend([0; 8]);
    bytes.extend(CLIENT);
    bytes.extend([0; 10 + 64 + 128]);
    bytes.extend([0x63, 0x82, 0x53, 0x63]);
    bytes.extend(options.concat());
    bytes.push(255);
    bytes
}

/// A frame of Ethernet with it, without a checksum.
fn frame(from: (Ipv4Addr, u16), to: (Ipv4Addr, u16), payload: &[u8]) -> Vec<u8> {
    let mut bytes = [&[255; 6][..], &CLIENT, &[8, 0]].concat();
    let length = u16::try_from(28 + payload.len()).unwrap();
    bytes.extend([0x45, 0]);
    bytes.extend(length.to_be_bytes());
    bytes.extend([0, 0, 0, 0, 64, 17, 0, 0]);
    bytes.extend(from.0.octets());
    bytes.extend(to.0.octets());
    bytes.extend(from.1.to_be_bytes());
    bytes.extend(to.1.to_be_bytes());
    bytes.extend((length - 20).to_be_bytes());
    bytes.extend([0, 0]);
    bytes.extend(payload);
    bytes
}

fn to_server(payload: &[u8]) -> Vec<u8> {
    frame((NOWHERE, 68), (Ipv4Addr::BROADCAST, 67), payload)
}

fn to_client(payload: &[u8]) -> Vec<u8> {
    frame((SERVER, 67), (OWN, 68), payload)
}

fn address(code: u8, address: Ipv4Addr) -> Vec<u8> {
    [&[code, 4][..], &address.octets()].concat()
}

/// Discover, offer, request, ack of an hour, release.
fn lease() -> Vec<Vec<u8>> {
    let server = address(54, SERVER);
    let wanted = address(50, OWN);
    let hour: &[u8] = &[51, 4, 0, 0, 14, 16];
    vec![
        to_server(&message(
            1,
            7,
            NOWHERE,
            NOWHERE,
            &[&[53, 1, 1], &[12, 3, b'b', b'o', b'x']],
        )),
        to_client(&message(2, 7, NOWHERE, OWN, &[&[53, 1, 2], &server, hour])),
        to_server(&message(
            1,
            7,
            NOWHERE,
            NOWHERE,
            &[&[53, 1, 3], &server, &wanted],
        )),
        to_client(&message(2, 7, NOWHERE, OWN, &[&[53, 1, 5], &server, hour])),
        frame(
            (OWN, 68),
            (SERVER, 67),
            &message(1, 8, OWN, NOWHERE, &[&[53, 1, 7], &server]),
        ),
    ]
}

fn pcap(link: u16, frames: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    file.extend(0xa1b2_c3d4_u32.to_le_bytes());
    file.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0]);
    file.extend(u32::from(link).to_le_bytes());
    for (index, frame) in frames.iter().enumerate() {
        let length = u32::try_from(frame.len()).unwrap();
        for number in [1000 + u32::try_from(index).unwrap(), 500, length, length] {
            file.extend(number.to_le_bytes());
        }
        file.extend(frame);
    }
    file
}

fn observed(frames: &[Vec<u8>]) -> Report {
    observe(&pcap(1, frames)).expect("a capture")
}

#[test]
fn a_lease_is_followed_from_its_begin_to_its_release() {
    let report = observed(&lease());
    assert_eq!((report.packets, report.messages), (5, 5));
    assert_eq!(report.problems, []);
    assert_eq!(report.exchanges.len(), 2);
    let exchange = &report.exchanges[0];
    let kinds: Vec<&str> = exchange
        .messages
        .iter()
        .map(|event| event.kind.as_str())
        .collect();
    assert_eq!(kinds, ["DISCOVER", "OFFER", "REQUEST", "ACK"]);
    assert_eq!(exchange.client, "02:00:00:00:00:01");
    assert_eq!(exchange.host_name.as_deref(), Some("box"));
    assert_eq!(exchange.messages[2].phase, Some(Phase::Selecting));
    assert_eq!(exchange.messages[0].time_ns, Some(1_000_000_500_000));
    assert_eq!(exchange.messages[3].since_begin_ns, Some(3_000_000_000));
    let outcome = "the client has 10.0.0.5 for 1 h; it asks for more time after 30 min (T1), and \
                   every server after 52 min 30 s (T2), as is usual";
    assert_eq!(exchange.outcome, outcome);
    let lease = &report.leases[0];
    assert_eq!((lease.address, lease.server), (OWN, Some(SERVER)));
    assert_eq!(
        (lease.granted, lease.end, lease.ended),
        (Some(4), LeaseEnd::Released, Some(5))
    );
    let answers: Vec<&str> = report
        .answers
        .iter()
        .map(|one| one.answer.as_str())
        .collect();
    assert_eq!(answers[0], "UDP; here from port 67 to 68, 68 to 67");
    assert_eq!(answers[2], "10.0.0.1");
    assert_eq!(answers[3], "10.0.0.5 to 02:00:00:00:00:01");
    assert!(answers[4].ends_with("here packet 5"), "{}", answers[4]);
    assert!(answers[5].starts_with("no: "), "{}", answers[5]);
    assert!(
        answers[6].contains("10.0.0.5 would have stayed taken for 1 h"),
        "{}",
        answers[6]
    );
}

#[test]
fn what_is_sent_again_is_told_from_what_is_there_twice() {
    let mut frames = lease();
    let mut again = frames[0].clone();
    // The seconds of the message, and the identification of IP.
    again[14 + 28 + 9] = 4;
    again[19] = 9;
    frames.insert(1, again);
    let last = frames.len() - 1;
    frames[last][19] = 3;
    frames.push(frames[last].clone());
    let report = observed(&frames);
    let repeats: Vec<Option<Repeat>> = report
        .exchanges
        .iter()
        .flat_map(|exchange| &exchange.messages)
        .map(|event| event.repeats)
        .collect();
    let again = Repeat {
        packet: 1,
        is_sent_again: true,
    };
    let twice = Repeat {
        packet: 6,
        is_sent_again: false,
    };
    assert_eq!(
        repeats,
        [None, Some(again), None, None, None, None, Some(twice)]
    );
    assert_eq!(report.leases.len(), 1);
}

#[test]
fn renewals_and_refusals_are_of_their_lease() {
    let server = address(54, SERVER);
    let hour: &[u8] = &[51, 4, 0, 0, 14, 16];
    let mut frames = lease();
    frames.pop();
    let renew = message(1, 9, OWN, NOWHERE, &[&[53, 1, 3]]);
    frames.push(frame((OWN, 68), (SERVER, 67), &renew));
    frames.push(to_client(&message(
        2,
        9,
        OWN,
        OWN,
        &[&[53, 1, 5], &server, hour],
    )));
    frames.push(to_server(&message(1, 10, OWN, NOWHERE, &[&[53, 1, 3]])));
    frames.push(to_client(&message(
        2,
        10,
        NOWHERE,
        NOWHERE,
        &[&[53, 1, 6], &server],
    )));
    let report = observed(&frames);
    let phases: Vec<Option<Phase>> = report
        .exchanges
        .iter()
        .map(|one| one.messages[0].phase)
        .collect();
    assert_eq!(
        phases,
        [None, Some(Phase::Renewing), Some(Phase::Rebinding)]
    );
    assert_eq!(report.leases.len(), 1);
    let lease = &report.leases[0];
    assert_eq!(
        (&lease.renewed[..], lease.end),
        (&[6][..], LeaseEnd::Refused)
    );
    let outcome = &report.exchanges[1].outcome;
    assert!(
        outcome.starts_with("the client has more time with 10.0.0.5"),
        "{outcome}"
    );
}

#[test]
fn declines_and_questions_for_parameters_are_told() {
    let server = address(54, SERVER);
    let other = Ipv4Addr::new(10, 0, 0, 9);
    let wanted = address(50, other);
    let decline = message(1, 11, NOWHERE, NOWHERE, &[&[53, 1, 4], &server, &wanted]);
    let reboot = message(1, 12, NOWHERE, NOWHERE, &[&[53, 1, 3], &wanted]);
    let inform = message(1, 13, OWN, NOWHERE, &[&[53, 1, 8]]);
    let report = observed(&[
        to_server(&decline),
        to_server(&reboot),
        frame((OWN, 68), (SERVER, 67), &inform),
        to_client(&message(2, 13, OWN, NOWHERE, &[&[53, 1, 5], &server])),
    ]);
    let lease = &report.leases[0];
    assert_eq!(
        (lease.address, lease.end, lease.granted),
        (other, LeaseEnd::Declined, None)
    );
    assert_eq!(
        report.exchanges[1].messages[0].phase,
        Some(Phase::InitReboot)
    );
    let outcome = &report.exchanges[2].outcome;
    assert_eq!(outcome, "the client has the parameters that it asked for");
}

#[test]
fn long_and_overloaded_options_are_put_together() {
    let mut bytes = message(
        2,
        7,
        NOWHERE,
        OWN,
        &[&[53, 1, 5], &[52, 1, 3], &[12, 2, b'a', b'b']],
    );
    // The boot file's field, and that of the server's name.
    bytes[108..113].copy_from_slice(&[12, 1, b'c', 255, 0]);
    bytes[44..48].copy_from_slice(&[12, 1, b'd', 255]);
    let report = observed(&[to_client(&bytes)]);
    let options = &report.exchanges[0].messages[0].options;
    assert_eq!(
        options
            .iter()
            .find(|option| option.code == 12)
            .unwrap()
            .value,
        "abcd"
    );
    assert_eq!(report.problems, []);
}

#[test]
fn what_is_malformed_is_told_with_its_packet() {
    let good = message(1, 7, NOWHERE, NOWHERE, &[&[53, 1, 1]]);
    let mut operation = good.clone();
    operation[0] = 9;
    let mut hardware = good.clone();
    hardware[2] = 200;
    let mut cookie = good.clone();
    cookie[236] = 0;
    let mut option = good.clone();
    option.truncate(243);
    option.extend([51, 9, 0]);
    let mut udp = to_server(&good);
    udp[14 + 20 + 4] = 9;
    let cases = [
        (to_server(&good[..100]), "fixed part"),
        (to_server(&operation), "operation is 9"),
        (to_server(&hardware), "says it has 200 bytes"),
        (to_server(&cookie), "cookie"),
        (
            to_server(&option),
            "option 51 says it has 9 bytes, and 1 are left",
        ),
        (to_server(&good[..good.len() - 1]), "no end of the options"),
        (
            to_server(&message(
                1,
                7,
                NOWHERE,
                NOWHERE,
                &[&[53, 1, 1], &[51, 1, 0]],
            )),
            "option 51",
        ),
        (udp, "length of UDP"),
        (to_server(&good)[..40].to_vec(), "header of UDP"),
        (vec![0; 9], "Ethernet"),
    ];
    for (frame, needle) in cases {
        let report = observed(&[lease()[0].clone(), frame]);
        let told = report
            .problems
            .iter()
            .any(|one| one.packet == 2 && one.reason.contains(needle));
        assert!(told, "{needle}: {:?}", report.problems);
    }
}

#[test]
fn an_ack_answers_the_request_before_it_and_no_release() {
    let server = address(54, SERVER);
    let release = frame(
        (OWN, 68),
        (SERVER, 67),
        &message(1, 7, OWN, NOWHERE, &[&[53, 1, 7], &server]),
    );
    let acknowledged = |frames: &[Vec<u8>]| observed(frames).answers[5].answer.clone();
    // A client that uses one transaction id for all.
    let again = [vec![release.clone()], lease()[..4].to_vec()].concat();
    let said = acknowledged(&again);
    assert!(said.ends_with("and none is in this capture"), "{said}");
    let ack = to_client(&message(2, 7, NOWHERE, OWN, &[&[53, 1, 5], &server]));
    let said = acknowledged(&[release, ack]);
    assert!(
        said.ends_with("yet a server sent one in this capture"),
        "{said}"
    );
}
