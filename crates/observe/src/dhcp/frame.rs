//! From a captured frame to what a UDP datagram carries.

use core::net::Ipv4Addr;

use super::bytes::{colons, u16_at, u32_at};
use super::capture::{LinkType, Packet};

/// Tags of virtual networks that a frame may have.
const VLANS_MAX: usize = 4;

/// A UDP checksum as it was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Checksum {
    /// It is right.
    Good,
    /// The sender made none, as IPv4 allows.
    None,
    /// It is left to the network card, which comes behind where this was
    /// captured.
    Offloaded,
    /// It is wrong.
    Bad,
    /// Not all that it covers was captured.
    Unknown,
}

/// A datagram of UDP over IPv4.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Datagram<'a> {
    pub source_link: Option<String>,
    pub destination_link: Option<String>,
    pub vlans: Vec<u16>,
    pub source: Ipv4Addr,
    pub destination: Ipv4Addr,
    pub source_port: u16,
    pub destination_port: u16,
    /// Identification of IP.
    pub identification: u16,
    pub checksum: Checksum,
    pub payload: &'a [u8],
    /// Bytes that it says it carries.
    pub payload_length: usize,
}

/// What a packet is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Content<'a> {
    Datagram(Box<Datagram<'a>>),
    /// A part of a datagram; of the first one the ports are known.
    Fragment {
        is_dhcp: Option<bool>,
    },
    /// UDP port 546 or 547 over IPv6.
    Dhcpv6,
    /// Nothing that is looked at here.
    Other,
    /// This link type is not read.
    UnknownLink(u16),
    /// It is not what it says it is.
    Malformed(String),
}

#[derive(Debug, Default)]
struct Link {
    source: Option<String>,
    destination: Option<String>,
    vlans: Vec<u16>,
}

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;

/// Reads a packet.
pub(super) fn content<'a>(packet: &Packet<'a>) -> Content<'a> {
    let bytes = packet.bytes;
    match packet.link {
        LinkType::ETHERNET => ethernet(bytes),
        // BSD's loopback: the family in the capturing machine's byte order.
        LinkType(0 | 108) => {
            let family = u32_at(bytes, 0).map(|number| number.min(number.swap_bytes()));
            by_type(family_type(family), bytes.get(4..), Link::default())
        }
        LinkType(12 | 14 | 101) => {
            let kind = match bytes.first().map(|byte| byte >> 4) {
                Some(4) => IPV4,
                Some(6) => IPV6,
                _ => 0,
            };
            by_type(kind, Some(bytes), Link::default())
        }
        LinkType(228) => by_type(IPV4, Some(bytes), Link::default()),
        LinkType(229) => by_type(IPV6, Some(bytes), Link::default()),
        LinkType(113) => {
            let length = u16_at(bytes, 4).unwrap_or(0);
            cooked(bytes, u16_at(bytes, 14), usize::from(length), 6, 16)
        }
        LinkType(276) => {
            let length = bytes.get(11).copied().unwrap_or(0);
            cooked(bytes, u16_at(bytes, 0), length.into(), 12, 20)
        }
        LinkType(other) => Content::UnknownLink(other),
    }
}

fn family_type(family: Option<u32>) -> u16 {
    match family {
        Some(2) => IPV4,
        Some(24 | 28 | 30) => IPV6,
        _ => 0,
    }
}

fn ethernet(bytes: &[u8]) -> Content<'_> {
    let (Some(destination), Some(source)) = (bytes.get(0..6), bytes.get(6..12)) else {
        return Content::Malformed("the frame is shorter than the header of Ethernet".into());
    };
    let link = Link {
        source: Some(colons(source)),
        destination: Some(colons(destination)),
        vlans: Vec::new(),
    };
    by_type(u16_at(bytes, 12).unwrap_or(0), bytes.get(14..), link)
}

/// Linux's header for captures of several kinds of interfaces.
fn cooked(bytes: &[u8], kind: Option<u16>, length: usize, at: usize, header: usize) -> Content<'_> {
    let address = bytes
        .get(at..at + length.min(8))
        .filter(|address| !address.is_empty());
    let link = Link {
        source: address.map(colons),
        ..Link::default()
    };
    match kind {
        Some(kind) => by_type(kind, bytes.get(header..), link),
        None => Content::Malformed("the frame is shorter than its link's header".into()),
    }
}

fn by_type(kind: u16, bytes: Option<&[u8]>, mut link: Link) -> Content<'_> {
    let Some(mut bytes) = bytes else {
        return Content::Malformed("the frame ends within its link's header".into());
    };
    let mut kind = kind;
    while matches!(kind, 0x8100 | 0x88a8 | 0x9100) && link.vlans.len() < VLANS_MAX {
        let (Some(tag), Some(inner)) = (u16_at(bytes, 0), u16_at(bytes, 2)) else {
            return Content::Malformed("the frame ends within the tag of a virtual network".into());
        };
        link.vlans.push(tag & 0xfff);
        kind = inner;
        bytes = &bytes[4..];
    }
    match kind {
        IPV4 => ipv4(bytes, link),
        IPV6 => ipv6(bytes),
        _ => Content::Other,
    }
}

fn ipv6(bytes: &[u8]) -> Content<'_> {
    let ports = (u16_at(bytes, 40), u16_at(bytes, 42));
    let is_dhcp = |port: Option<u16>| matches!(port, Some(546 | 547));
    match bytes.get(6) {
        Some(17) if is_dhcp(ports.0) || is_dhcp(ports.1) => Content::Dhcpv6,
        _ => Content::Other,
    }
}

fn is_dhcp(source: u16, destination: u16) -> bool {
    matches!(source, 67 | 68) || matches!(destination, 67 | 68)
}

fn malformed<'a>(reason: &str) -> Content<'a> {
    Content::Malformed(reason.to_owned())
}

fn ipv4(bytes: &[u8], link: Link) -> Content<'_> {
    let Some(header) = bytes.first() else {
        return malformed("it ends before the header of IP");
    };
    let header_length = usize::from(header & 15) * 4;
    if header >> 4 != 4 || header_length < 20 {
        return malformed("its header of IP is none of version 4");
    }
    let (Some(total), Some(identification), Some(fragment), Some(protocol)) = (
        u16_at(bytes, 2),
        u16_at(bytes, 4),
        u16_at(bytes, 6),
        bytes.get(9),
    ) else {
        return malformed("it ends within the header of IP");
    };
    if *protocol != 17 {
        return Content::Other;
    }
    let total = usize::from(total);
    let (Some(source), Some(destination)) = (u32_at(bytes, 12), u32_at(bytes, 16)) else {
        return malformed("it ends within the header of IP");
    };
    if total < header_length {
        return malformed("the length of IP is less than that of its header");
    }
    // Short frames are filled up behind it.
    let Some(udp) = bytes.get(header_length..total.min(bytes.len())) else {
        return malformed("it ends within the header of IP");
    };
    if fragment & 0x3fff != 0 {
        let is_dhcp = match (fragment & 0x1fff, u16_at(udp, 0), u16_at(udp, 2)) {
            (0, Some(from), Some(to)) => Some(is_dhcp(from, to)),
            _ => None,
        };
        return Content::Fragment { is_dhcp };
    }
    let ip = Ip {
        source,
        destination,
        identification,
        length: total - header_length,
    };
    datagram(udp, &ip, link)
}

/// What the header of IP says.
struct Ip {
    source: u32,
    destination: u32,
    identification: u16,
    /// Of what it carries.
    length: usize,
}

fn datagram<'a>(udp: &'a [u8], ip: &Ip, link: Link) -> Content<'a> {
    let (Some(source_port), Some(destination_port)) = (u16_at(udp, 0), u16_at(udp, 2)) else {
        return malformed("it ends within the header of UDP");
    };
    if !is_dhcp(source_port, destination_port) {
        return Content::Other;
    }
    let (Some(length), Some(sum), Some(payload)) = (u16_at(udp, 4), u16_at(udp, 6), udp.get(8..))
    else {
        return malformed("it ends within the header of UDP");
    };
    let length = usize::from(length);
    if length < 8 || length > ip.length {
        return Content::Malformed(format!(
            "the length of UDP is {length}, and IP has {} for it",
            ip.length
        ));
    }
    let payload = &payload[..payload.len().min(length - 8)];
    let checksum = match sum {
        0 => Checksum::None,
        _ if udp.len() < length => Checksum::Unknown,
        _ => verify(&udp[..length], ip, sum),
    };
    Content::Datagram(Box::new(Datagram {
        source_link: link.source,
        destination_link: link.destination,
        vlans: link.vlans,
        source: ip.source.into(),
        destination: ip.destination.into(),
        source_port,
        destination_port,
        identification: ip.identification,
        checksum,
        payload,
        payload_length: length - 8,
    }))
}

/// The sum of RFC 768 and RFC 1071.
fn verify(udp: &[u8], ip: &Ip, found: u16) -> Checksum {
    let halves = |number: u32| u64::from(number >> 16) + u64::from(number & 0xffff);
    let pseudo = halves(ip.source) + halves(ip.destination) + 17 + udp.len() as u64;
    let fold = |mut sum: u64| {
        while sum >> 16 != 0 {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum
    };
    let words = udp
        .chunks(2)
        .map(|pair| u64::from(pair[0]) << 8 | pair.get(1).copied().map_or(0, u64::from));
    if fold(pseudo + words.sum::<u64>()) == 0xffff {
        return Checksum::Good;
    }
    // Linux lays the sum of the pseudo header there for the card to go on with.
    match u64::from(found) == fold(pseudo) {
        true => Checksum::Offloaded,
        false => Checksum::Bad,
    }
}
