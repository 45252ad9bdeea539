//! Extracts the UDP datagram from a captured frame.

use core::net::Ipv4Addr;

use etherparse::checksum::Sum16BitWords;
use etherparse::err::ipv4::HeaderSliceError;
use etherparse::{IpNumber, Ipv4HeaderSlice};
use serde::Serialize;

use super::options::{colons, u16_at, u32_at};

/// A captured frame.
#[derive(Debug, Clone, Copy)]
pub struct Packet<'a> {
    pub number: u64,
    /// Time since 1970; `None` if the capture does not contain it.
    pub time_ns: Option<u64>,
    /// Link type, which is the kind of header that the packet begins with
    /// (tcpdump.org/linktypes.html).
    pub link: u16,
    pub bytes: &'a [u8],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Checksum {
    Good,
    /// The sender computed no checksum, as IPv4 allows.
    None,
    /// The checksum is left to the network card, which comes after the point of
    /// capture.
    Offloaded,
    Bad,
    /// Some of the bytes that the checksum covers were not captured.
    Unknown,
}

/// A UDP datagram over IPv4, with its addresses.
#[derive(Debug, Clone, Serialize)]
pub struct Datagram {
    /// Link-layer address of the source, if the capture has it.
    pub source_link: Option<String>,
    /// Link-layer address of the destination, if the capture has it.
    pub destination_link: Option<String>,
    /// Virtual networks (VLANs) of the frame's tags, outermost first.
    pub vlans: Vec<u16>,
    pub source: Ipv4Addr,
    pub source_port: u16,
    pub destination: Ipv4Addr,
    pub destination_port: u16,
    pub checksum: Checksum,
    #[serde(skip)]
    pub(super) identification: u16,
    #[serde(skip)]
    pub(super) payload: Vec<u8>,
    /// Length of the payload in bytes, according to the header.
    #[serde(skip)]
    pub(super) payload_length: usize,
}

pub(super) enum Content {
    Datagram(Box<Datagram>),
    /// A fragment of a datagram. Only the first fragment has the ports.
    Fragment {
        is_dhcp: bool,
    },
    Dhcpv6,
    UnknownLink(u16),
    Other,
}

const VLANS_MAX: usize = 4;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;

/// Classifies a packet. The error says what is wrong with it.
pub(super) fn content(packet: &Packet) -> Result<Content, String> {
    let bytes = packet.bytes;
    let address = |at: usize, length: usize| bytes.get(at..at + length).map(colons);
    let (kind, header, source_link, destination_link) = match packet.link {
        1 if bytes.len() < 14 => {
            return Err("the frame is shorter than an Ethernet header".into());
        }
        1 => (u16_at(bytes, 12), 14, address(6, 6), address(0, 6)),
        // BSD's loopback: the address family in the capturing machine's byte order.
        0 | 108 => {
            let family = u32_at(bytes, 0).map(|family| family.min(family.swap_bytes()));
            let kind = match family {
                Some(2) => IPV4,
                Some(24 | 28 | 30) => IPV6,
                _ => 0,
            };
            (Some(kind), 4, None, None)
        }
        12 | 14 | 101 => match bytes.first().map(|byte| byte >> 4) {
            Some(4) => (Some(IPV4), 0, None, None),
            Some(6) => (Some(IPV6), 0, None, None),
            _ => return Ok(Content::Other),
        },
        228 => (Some(IPV4), 0, None, None),
        229 => (Some(IPV6), 0, None, None),
        // Linux's headers for captures on several kinds of interfaces.
        113 => {
            let length = u16_at(bytes, 4).unwrap_or(0).min(8);
            (u16_at(bytes, 14), 16, address(6, length.into()), None)
        }
        276 => {
            let length = bytes.get(11).map_or(0, |length| *length.min(&8));
            (u16_at(bytes, 0), 20, address(12, length.into()), None)
        }
        link => return Ok(Content::UnknownLink(link)),
    };
    let mut kind = kind.ok_or("the frame is shorter than its link-layer header")?;
    let mut rest = bytes.get(header..);
    let mut vlans = Vec::new();
    while matches!(kind, 0x8100 | 0x88a8 | 0x9100) && vlans.len() < VLANS_MAX {
        let tag = rest.and_then(|rest| Some((u16_at(rest, 0)?, u16_at(rest, 2)?, &rest[4..])));
        let (tag, inner, behind) = tag.ok_or("the frame ends within a VLAN tag")?;
        vlans.push(tag & 0xfff);
        (kind, rest) = (inner, Some(behind));
    }
    let rest = rest.ok_or("the frame ends within its link-layer header")?;
    let mut content = match kind {
        IPV4 => ipv4(rest)?,
        IPV6 if is_dhcpv6(rest) => Content::Dhcpv6,
        _ => Content::Other,
    };
    if let Content::Datagram(datagram) = &mut content {
        datagram.source_link = source_link;
        datagram.destination_link = destination_link;
        datagram.vlans = vlans;
    }
    Ok(content)
}

fn is_dhcpv6(bytes: &[u8]) -> bool {
    let is_port = |at| matches!(u16_at(bytes, at), Some(546 | 547));
    bytes.get(6) == Some(&IpNumber::UDP.0) && (is_port(40) || is_port(42))
}

fn ipv4(bytes: &[u8]) -> Result<Content, String> {
    if bytes
        .get(9)
        .is_some_and(|protocol| *protocol != IpNumber::UDP.0)
    {
        return Ok(Content::Other);
    }
    let ip = Ipv4HeaderSlice::from_slice(bytes).map_err(|error| match error {
        HeaderSliceError::Len(_) => "it ends within the IP header",
        HeaderSliceError::Content(_) => "its IP version is not 4",
    })?;
    let header = ip.slice().len();
    let total = usize::from(ip.total_len());
    let ip_length = total.checked_sub(header);
    let ip_length = ip_length.ok_or("the IP length is less than that of its header")?;
    // Short frames have padding after the IP packet.
    let udp = &bytes[header..total.min(bytes.len())];
    let ports = u16_at(udp, 0).zip(u16_at(udp, 2));
    let is_dhcp = ports.is_some_and(|(from, to)| matches!(from, 67 | 68) || matches!(to, 67 | 68));
    if ip.is_fragmenting_payload() {
        let is_dhcp = is_dhcp && ip.fragments_offset().value() == 0;
        return Ok(Content::Fragment { is_dhcp });
    }
    if ports.is_some() && !is_dhcp {
        return Ok(Content::Other);
    }
    let Some((&[a, b, c, d, e, f, g, h], payload)) = udp.split_first_chunk() else {
        return Err("it ends within the UDP header".into());
    };
    let number = |high, low| u16::from_be_bytes([high, low]);
    let length = usize::from(number(e, f));
    if length < 8 || length > ip_length {
        return Err(format!(
            "the UDP length is {length}, but IP carries {ip_length}"
        ));
    }
    let checksum = match number(g, h) {
        0 => Checksum::None,
        _ if udp.len() < length => Checksum::Unknown,
        found => verify(&udp[..length], &ip, found),
    };
    Ok(Content::Datagram(Box::new(Datagram {
        source_link: None,
        destination_link: None,
        vlans: Vec::new(),
        source: ip.source_addr(),
        source_port: number(a, b),
        destination: ip.destination_addr(),
        destination_port: number(c, d),
        checksum,
        identification: ip.identification(),
        payload: payload[..payload.len().min(length - 8)].to_vec(),
        payload_length: length - 8,
    })))
}

fn verify(udp: &[u8], ip: &Ipv4HeaderSlice, found: u16) -> Checksum {
    let pseudo = Sum16BitWords::new()
        .add_4bytes(ip.source())
        .add_4bytes(ip.destination())
        .add_2bytes([0, IpNumber::UDP.0])
        .add_2bytes([udp[4], udp[5]]);
    match u16::from_be(pseudo.ones_complement()) {
        // With a valid checksum, the sum over everything, including the checksum, has
        // the complement 0.
        _ if pseudo.add_slice(udp).ones_complement() == 0 => Checksum::Good,
        // Linux stores the sum of the pseudo header in the field, and the card adds the
        // rest.
        complement if found == !complement => Checksum::Offloaded,
        _ => Checksum::Bad,
    }
}
