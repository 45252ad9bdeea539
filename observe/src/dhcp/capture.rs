//! Reads files of captured packets: pcap (draft-ietf-opsawg-pcap) and pcapng
//! (draft-ietf-opsawg-pcapng).

use super::frame::Packet;
use super::observer::Observer;
use super::options::{u16_at, u32_at};

/// Length of the longest valid packet, which is the longest that libpcap accepts.
const PACKET_BYTES_MAX: usize = 256 * 1024 + 64;

#[derive(Debug, Clone, Copy)]
struct Order {
    is_big: bool,
}

impl Order {
    fn u16(self, bytes: &[u8], at: usize) -> Option<u16> {
        let number = u16_at(bytes, at)?;
        Some(if self.is_big {
            number
        } else {
            number.swap_bytes()
        })
    }

    fn u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        let number = u32_at(bytes, at)?;
        Some(if self.is_big {
            number
        } else {
            number.swap_bytes()
        })
    }
}

/// Passes each packet of a file to `observer`, and reports what is wrong with a packet.
pub(super) fn read(file: &[u8], observer: &mut Observer) -> Result<(), String> {
    let magic = file.first_chunk().ok_or("it is too short for a capture")?;
    let (is_big, tick_ns, head_bytes) = match u32::from_be_bytes(*magic) {
        0x0a0d_0d0a => {
            pcapng(file, observer);
            return Ok(());
        }
        0xa1b2_c3d4 => (true, 1000, 16),
        0xd4c3_b2a1 => (false, 1000, 16),
        0xa1b2_3c4d => (true, 1, 16),
        0x4d3c_b2a1 => (false, 1, 16),
        // The format of a patched libpcap of the nineties.
        0xa1b2_cd34 => (true, 1000, 24),
        0x34cd_b2a1 => (false, 1000, 24),
        _ if magic.starts_with(&[0x1f, 0x8b]) => {
            return Err("it is compressed; unpack it with gunzip".into());
        }
        _ => return Err("it is not a pcap or pcapng capture".into()),
    };
    let order = Order { is_big };
    let link = order.u32(file, 20).ok_or("its header is truncated")?;
    // The upper half describes check sequences at the end of frames.
    let link = (link & 0xffff) as u16;
    let mut rest = &file[24..];
    let mut number = 0;
    while !rest.is_empty() {
        number += 1;
        let field = |index: usize| order.u32(rest, 4 * index);
        let (Some(seconds), Some(fraction), Some(captured), Some(_)) =
            (field(0), field(1), field(2), field(3))
        else {
            observer.problem(number, "the capture ends within the packet's header".into());
            break;
        };
        let captured = captured as usize;
        if captured > PACKET_BYTES_MAX {
            let reason = format!("it claims {captured} bytes; the rest cannot be read");
            observer.problem(number, reason);
            break;
        }
        let behind = rest.get(head_bytes..).unwrap_or_default();
        if behind.len() < captured {
            observer.problem(number, "the capture ends within the packet".into());
        }
        let (bytes, behind) = behind.split_at(captured.min(behind.len()));
        rest = behind;
        observer.take(&Packet {
            number,
            time_ns: Some(u64::from(seconds) * 1_000_000_000 + u64::from(fraction) * tick_ns),
            link,
            bytes,
        });
    }
    Ok(())
}

struct Interface {
    link: u16,
    ticks_per_second: u128,
    offset_seconds: i64,
    /// Maximum number of bytes of each packet that are captured; 0 means all.
    snap_bytes: usize,
}

impl Interface {
    fn read(order: Order, body: &[u8]) -> Option<Self> {
        let mut interface = Self {
            link: order.u16(body, 0)?,
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
                    let base: u128 = if resolution & 0x80 == 0 { 10 } else { 2 };
                    interface.ticks_per_second = base.checked_pow((resolution & 0x7f).into())?;
                }
                (14, &[a, b, c, d, e, f, g, h]) => {
                    let offset = i64::from_be_bytes([a, b, c, d, e, f, g, h]);
                    let is_big = order.is_big;
                    interface.offset_seconds = if is_big { offset } else { offset.swap_bytes() };
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

fn pcapng(file: &[u8], observer: &mut Observer) {
    let mut order = Order { is_big: false };
    let mut interfaces: Vec<Option<Interface>> = Vec::new();
    let mut rest = file;
    let mut number = 0;
    while !rest.is_empty() {
        let mut stop = |reason: String| observer.problem(number + 1, reason);
        if rest.starts_with(&[0x0a, 0x0d, 0x0d, 0x0a]) {
            order.is_big = match rest.get(8..12) {
                Some([0x1a, 0x2b, 0x3c, 0x4d]) => true,
                Some([0x4d, 0x3c, 0x2b, 0x1a]) => false,
                _ => return stop("a section before it has no byte order".into()),
            };
            interfaces.clear();
        }
        let (Some(kind), Some(said)) = (order.u32(rest, 0), order.u32(rest, 4)) else {
            return stop("the capture ends within a block's header".into());
        };
        let length = said as usize;
        if length < 12 || !length.is_multiple_of(4) {
            let reason = format!("a block claims {length} bytes; the rest cannot be read");
            return stop(reason);
        }
        let (block, behind) = rest.split_at(length.min(rest.len()));
        if block.len() < length {
            stop("the capture ends within a block".into());
        } else if order.u32(block, length - 4) != Some(said) {
            stop("a block's two lengths differ".into());
        }
        let body = block.get(8..block.len().max(12) - 4).unwrap_or_default();
        match kind {
            1 => interfaces.push(Interface::read(order, body)),
            2 | 3 | 6 => {
                number += 1;
                match packet_block(order, kind, body, &interfaces) {
                    Ok(packet) => observer.take(&Packet { number, ..packet }),
                    Err(reason) => observer.problem(number, reason),
                }
            }
            _ => {}
        }
        rest = behind;
    }
}

/// Reads a packet block: old (2), enhanced (6) or simple (3).
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
    let Some(Some(interface)) = interfaces.get(index) else {
        return Err(format!("its interface {index} is not described"));
    };
    let (time_ns, captured, begin) = match kind {
        3 if interface.snap_bytes == 0 => (None, field(0)? as usize, 4),
        3 => (None, interface.snap_bytes.min(field(0)? as usize), 4),
        _ => (
            interface.time_ns(field(1)?, field(2)?),
            field(3)? as usize,
            20,
        ),
    };
    let behind = body.get(begin..).ok_or_else(short)?;
    let bytes = &behind[..captured.min(PACKET_BYTES_MAX).min(behind.len())];
    if bytes.len() < captured {
        return Err(format!(
            "it claims {captured} bytes, but its block has {}",
            bytes.len()
        ));
    }
    Ok(Packet {
        number: 0,
        time_ns,
        link: interface.link,
        bytes,
    })
}
