//! Files of captured packets: pcap (draft-ietf-opsawg-pcap) and pcapng
//! (draft-ietf-opsawg-pcapng).

/// A packet larger than this is none (the largest that libpcap takes).
const PACKET_BYTES_MAX: usize = 256 * 1024 + 64;

/// What stands before the network's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkType(pub u16);

impl LinkType {
    /// Ethernet.
    pub const ETHERNET: Self = Self(1);
    /// Nothing: the packet begins with the header of IP.
    pub const RAW: Self = Self(101);
}

/// A packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Its number in the capture, from 1.
    pub number: u64,
    /// When, in nanoseconds since 1970; none if the capture does not tell.
    pub time_ns: Option<u64>,
    /// What it begins with.
    pub link: LinkType,
    /// What was captured of it.
    pub bytes: &'a [u8],
    /// How long it was.
    pub length: usize,
}

/// Hands over each packet of a file, and what is wrong with it as a number of a
/// packet with a reason.
///
/// # Errors
/// If it is no capture, with what it is instead.
pub fn read<'a>(
    file: &'a [u8],
    on_packet: &mut dyn FnMut(Packet<'a>),
    on_problem: &mut dyn FnMut(u64, String),
) -> Result<(), String> {
    let magic = file.get(..4).ok_or("it is too short for a capture")?;
    let magic: [u8; 4] = magic.try_into().map_err(|_| "it is too short")?;
    match u32::from_be_bytes(magic) {
        0x0a0d_0d0a => {
            pcapng(file, on_packet, on_problem);
            Ok(())
        }
        0xa1b2_c3d4 => pcap(file, Order::Big, 1000, 16, on_packet, on_problem),
        0xd4c3_b2a1 => pcap(file, Order::Little, 1000, 16, on_packet, on_problem),
        0xa1b2_3c4d => pcap(file, Order::Big, 1, 16, on_packet, on_problem),
        0x4d3c_b2a1 => pcap(file, Order::Little, 1, 16, on_packet, on_problem),
        // The form of a patched libpcap of the nineties.
        0xa1b2_cd34 => pcap(file, Order::Big, 1000, 24, on_packet, on_problem),
        0x34cd_b2a1 => pcap(file, Order::Little, 1000, 24, on_packet, on_problem),
        _ if magic.starts_with(&[0x1f, 0x8b]) => {
            Err("it is compressed; unpack it with gunzip".into())
        }
        _ => Err("it is no capture in the form pcap or pcapng".into()),
    }
}

#[derive(Debug, Clone, Copy)]
enum Order {
    Big,
    Little,
}

impl Order {
    fn u16(self, bytes: &[u8], at: usize) -> Option<u16> {
        let part: [u8; 2] = bytes.get(at..at.checked_add(2)?)?.try_into().ok()?;
        Some(match self {
            Self::Big => u16::from_be_bytes(part),
            Self::Little => u16::from_le_bytes(part),
        })
    }

    fn u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        let part: [u8; 4] = bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
        Some(match self {
            Self::Big => u32::from_be_bytes(part),
            Self::Little => u32::from_le_bytes(part),
        })
    }
}

fn pcap<'a>(
    file: &'a [u8],
    order: Order,
    tick_ns: u64,
    header: usize,
    on_packet: &mut dyn FnMut(Packet<'a>),
    on_problem: &mut dyn FnMut(u64, String),
) -> Result<(), String> {
    let link = order.u32(file, 20).ok_or("its header is cut")?;
    // The upper half tells of check sequences at the end of frames.
    let link = LinkType((link & 0xffff) as u16);
    let mut at = 24;
    let mut number = 0;
    while at < file.len() {
        number += 1;
        let field = |index: usize| order.u32(file, at + 4 * index);
        let (Some(seconds), Some(fraction), Some(captured), Some(length)) =
            (field(0), field(1), field(2), field(3))
        else {
            on_problem(number, "the capture ends within the packet's header".into());
            break;
        };
        let captured = captured as usize;
        if captured > PACKET_BYTES_MAX {
            let reason = format!("it says it has {captured} bytes; what follows cannot be read");
            on_problem(number, reason);
            break;
        }
        at += header;
        let end = (at + captured).min(file.len());
        let bytes = file.get(at..end).unwrap_or_default();
        if bytes.len() < captured {
            on_problem(number, "the capture ends within the packet".into());
        }
        on_packet(Packet {
            number,
            time_ns: Some(u64::from(seconds) * 1_000_000_000 + u64::from(fraction) * tick_ns),
            link,
            bytes,
            length: length as usize,
        });
        at += captured;
    }
    Ok(())
}

/// An interface of a pcapng file.
#[derive(Debug, Clone, Copy)]
struct Interface {
    link: LinkType,
    /// Ticks of its clock in a second.
    ticks_per_second: u128,
    offset_seconds: i64,
    /// Bytes that are captured of a packet at most; 0 if all.
    snap_bytes: usize,
}

impl Interface {
    fn read(order: Order, body: &[u8]) -> Option<Self> {
        let mut interface = Self {
            link: LinkType(order.u16(body, 0)?),
            ticks_per_second: 1_000_000,
            offset_seconds: 0,
            snap_bytes: order.u32(body, 4)? as usize,
        };
        let mut at = 8;
        while let (Some(code), Some(length)) = (order.u16(body, at), order.u16(body, at + 2)) {
            let length = usize::from(length);
            let value = body.get(at + 4..at + 4 + length)?;
            match (code, value) {
                (0, _) => break,
                (9, [resolution]) => {
                    let (base, exponent) = match resolution & 0x80 {
                        0 => (10_u128, resolution & 0x7f),
                        _ => (2, resolution & 0x7f),
                    };
                    interface.ticks_per_second = base.checked_pow(exponent.into())?;
                }
                (14, value) if value.len() == 8 => {
                    let high = u64::from(order.u32(value, 0)?);
                    let low = u64::from(order.u32(value, 4)?);
                    let offset = match order {
                        Order::Big => high << 32 | low,
                        Order::Little => low << 32 | high,
                    };
                    interface.offset_seconds = offset.cast_signed();
                }
                _ => {}
            }
            at += 4 + length.next_multiple_of(4);
        }
        Some(interface)
    }

    fn time_ns(&self, high: u32, low: u32) -> Option<u64> {
        let ticks = u128::from(high) << 32 | u128::from(low);
        let ns = ticks.checked_mul(1_000_000_000)? / self.ticks_per_second;
        let ns = i128::try_from(ns).ok()? + i128::from(self.offset_seconds) * 1_000_000_000;
        u64::try_from(ns).ok()
    }
}

fn pcapng<'a>(
    file: &'a [u8],
    on_packet: &mut dyn FnMut(Packet<'a>),
    on_problem: &mut dyn FnMut(u64, String),
) {
    let mut order = Order::Little;
    let mut interfaces: Vec<Option<Interface>> = Vec::new();
    let mut at = 0;
    let mut number = 0;
    while at < file.len() {
        let is_section = file[at..].starts_with(&[0x0a, 0x0d, 0x0d, 0x0a]);
        if is_section {
            order = match file.get(at + 8..at + 12) {
                Some([0x1a, 0x2b, 0x3c, 0x4d]) => Order::Big,
                Some([0x4d, 0x3c, 0x2b, 0x1a]) => Order::Little,
                _ => return on_problem(number + 1, "a section before it has no byte order".into()),
            };
            interfaces.clear();
        }
        let (Some(kind), Some(length)) = (order.u32(file, at), order.u32(file, at + 4)) else {
            return on_problem(
                number + 1,
                "the capture ends within a block's header".into(),
            );
        };
        let length = length as usize;
        if length < 12 || !length.is_multiple_of(4) {
            let reason = format!("a block says it has {length} bytes; what follows cannot be read");
            return on_problem(number + 1, reason);
        }
        let end = at.saturating_add(length);
        let is_cut = end > file.len();
        let body = file
            .get(at + 8..end.min(file.len()).max(at + 12) - 4)
            .unwrap_or_default();
        if is_cut {
            on_problem(number + 1, "the capture ends within a block".into());
        } else if order.u32(file, end - 4) != Some(length as u32) {
            on_problem(number + 1, "a block's two lengths differ".into());
        }
        match kind {
            1 => interfaces.push(Interface::read(order, body)),
            2 | 3 | 6 => {
                number += 1;
                match packet_block(order, kind, body, &interfaces) {
                    Ok(packet) => on_packet(Packet { number, ..packet }),
                    Err(reason) => on_problem(number, reason),
                }
            }
            _ => {}
        }
        at = end;
    }
}

/// A packet block, old (2) or enhanced (6), or a simple one (3).
fn packet_block<'a>(
    order: Order,
    kind: u32,
    body: &'a [u8],
    interfaces: &[Option<Interface>],
) -> Result<Packet<'a>, String> {
    let short = || "its block is too short".to_owned();
    let field = |index: usize| order.u32(body, 4 * index).ok_or_else(short);
    let index = match kind {
        2 => usize::from(order.u16(body, 0).ok_or_else(short)?),
        3 => 0,
        _ => field(0)? as usize,
    };
    let interface = interfaces.get(index).copied().flatten();
    let interface = interface.ok_or_else(|| format!("its interface {index} is not described"))?;
    let (time_ns, captured, length, begin) = match kind {
        3 => {
            let length = field(0)? as usize;
            let most = if interface.snap_bytes == 0 {
                length
            } else {
                interface.snap_bytes
            };
            (None, length.min(most), length, 4)
        }
        _ => {
            let time_ns = interface.time_ns(field(1)?, field(2)?);
            (time_ns, field(3)? as usize, field(4)? as usize, 20)
        }
    };
    let end = begin + captured.min(PACKET_BYTES_MAX);
    let bytes = body.get(begin..end.min(body.len())).ok_or_else(short)?;
    if bytes.len() < captured {
        return Err(format!(
            "it says it has {captured} bytes, and its block has {}",
            bytes.len()
        ));
    }
    Ok(Packet {
        number: 0,
        time_ns,
        link: interface.link,
        bytes,
        length,
    })
}
