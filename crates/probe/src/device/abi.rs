//! What `kernel/uapi/toll_device.h` lays down, where the fields are described.

#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Settings {
    pub buffer_bytes: u32,
    pub mode: u32,
    pub no_delay: u32,
    pub reserved: u32,
}

#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Endpoint {
    pub family: u16,
    pub port: u16,
    pub scope_id: u32,
    pub address: [u8; 16],
    pub timeout_ms: u32,
    pub reserved: u32,
}

#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Transfer {
    pub offset: u64,
    pub length: u64,
    pub done: u64,
    pub sequence: u64,
}

#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Completion {
    pub sequence: u64,
    pub result: i64,
    pub timeout_ms: u32,
    pub reserved: u32,
}

/// `struct toll_device_page`: what the page table says of an address.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Page {
    pub address: u64,
    /// The entry that maps it, 0 if none does. Without CAP_SYS_ADMIN its frame
    /// number reads 0.
    pub entry: u64,
    pub page_bytes: u64,
    pub reserved: u64,
}

#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Statistics {
    pub bytes_sent: u64,
    pub bytes_received: u64,
    pub sends: u64,
    pub receives: u64,
    /// How often one of them had to wait, or would have had to.
    pub waits: u64,
    pub queued_max: u64,
    pub reserved: [u64; 2],
}

/// `TOLL_DEVICE_BUFFER_MIN`, in bytes.
pub const BUFFER_BYTES_MIN: u32 = 512;
/// `TOLL_DEVICE_BUFFER_MAX`, in bytes.
pub const BUFFER_BYTES_MAX: u32 = 16 << 20;
/// `TOLL_DEVICE_BUFFER_DEFAULT`, in bytes.
pub const BUFFER_BYTES_DEFAULT: u32 = 64 << 10;
pub const QUEUE_MAX: usize = 64;

pub const SYNC: u32 = 0;
pub const FASYNC: u32 = 1;
pub const ASYNC: u32 = 2;

pub const GET_SETTINGS: libc::Ioctl = 0x8010_e800;
pub const SET_SETTINGS: libc::Ioctl = 0x4010_e801;
pub const LISTEN: libc::Ioctl = 0xc020_e802;
pub const ACCEPT: libc::Ioctl = 0xc020_e803;
pub const CONNECT: libc::Ioctl = 0x4020_e804;
pub const SEND: libc::Ioctl = 0xc020_e805;
pub const RECEIVE: libc::Ioctl = 0xc020_e806;
pub const REAP: libc::Ioctl = 0xc018_e807;
pub const FINISH: libc::Ioctl = 0xe808;
pub const PAGE: libc::Ioctl = 0xc020_e809;
pub const STATISTICS: libc::Ioctl = 0x8040_e80a;

/// Bytes of the argument that a request's number carries (`_IOC_SIZE`).
pub const fn argument_bytes(request: libc::Ioctl) -> usize {
    ((request >> 16) & 0x3fff) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = include_str!("../../../../kernel/uapi/toll_device.h");

    /// Fields of a structure of the header, with their sizes in bytes.
    fn fields(structure: &str) -> Vec<(&'static str, usize)> {
        let start = format!("struct {structure} {{");
        let (_, rest) = HEADER.split_once(&start).expect("the header has it");
        let (body, _) = rest.split_once('}').unwrap();
        let field = |line: &'static str| {
            let (kind, name) = line.trim().trim_end_matches(';').split_once(' ')?;
            let bytes = match kind {
                "__u8" => 1,
                "__u16" => 2,
                "__u32" => 4,
                "__u64" | "__s64" => 8,
                _ => panic!("{kind} is new"),
            };
            let (name, count) = name.split_once('[').unwrap_or((name, "1"));
            let count: usize = count.trim_end_matches(']').parse().unwrap();
            Some((name, bytes * count))
        };
        body.lines().filter_map(field).collect()
    }

    macro_rules! laid_out_as {
        ($structure:ident, $name:literal, $($field:ident),+) => {
            let mut offset = 0;
            let mut expected = fields($name).into_iter();
            $(
                let (name, bytes) = expected.next().unwrap();
                assert_eq!(name, stringify!($field));
                assert_eq!(std::mem::offset_of!($structure, $field), offset, "{name}");
                offset += bytes;
            )+
            assert_eq!(expected.next(), None);
            assert_eq!(size_of::<$structure>(), offset);
        };
    }

    #[test]
    fn structures_are_laid_out_as_in_the_header() {
        laid_out_as!(
            Settings,
            "toll_device_settings",
            buffer_bytes,
            mode,
            no_delay,
            reserved
        );
        laid_out_as!(
            Endpoint,
            "toll_device_endpoint",
            family,
            port,
            scope_id,
            address,
            timeout_ms,
            reserved
        );
        laid_out_as!(
            Transfer,
            "toll_device_transfer",
            offset,
            length,
            done,
            sequence
        );
        laid_out_as!(
            Completion,
            "toll_device_completion",
            sequence,
            result,
            timeout_ms,
            reserved
        );
        laid_out_as!(
            Page,
            "toll_device_page",
            address,
            entry,
            page_bytes,
            reserved
        );
        laid_out_as!(
            Statistics,
            "toll_device_statistics",
            bytes_sent,
            bytes_received,
            sends,
            receives,
            waits,
            queued_max,
            reserved
        );
    }

    /// The number that a request has by the header (`_IOC` of asm-generic/ioctl.h).
    fn number(name: &str) -> u64 {
        let start = format!("#define TOLL_DEVICE_{name} _IO");
        let line = HEADER.lines().find(|line| line.starts_with(&start));
        let (kind, rest) = line.unwrap()[start.len()..].split_once('(').unwrap();
        let direction = match kind {
            "" => 0,
            "W" => 1,
            "R" => 2,
            _ => 3,
        };
        let mut arguments = rest.trim_end_matches(')').split(", ").skip(1);
        let ordinal: u64 = arguments.next().unwrap().parse().unwrap();
        let bytes: usize = arguments.next().map_or(0, |structure| {
            let name = structure.trim_start_matches("struct ");
            fields(name).iter().map(|(_, bytes)| bytes).sum()
        });
        (direction << 30) | ((bytes as u64) << 16) | (0xe8 << 8) | ordinal
    }

    #[test]
    fn requests_have_the_numbers_of_the_header() {
        assert!(HEADER.contains("#define TOLL_DEVICE_MAGIC 0xE8\n"));
        for (name, request) in [
            ("GET_SETTINGS", GET_SETTINGS),
            ("SET_SETTINGS", SET_SETTINGS),
            ("LISTEN", LISTEN),
            ("ACCEPT", ACCEPT),
            ("CONNECT", CONNECT),
            ("SEND", SEND),
            ("RECEIVE", RECEIVE),
            ("REAP", REAP),
            ("FINISH", FINISH),
            ("PAGE", PAGE),
            ("STATISTICS", STATISTICS),
        ] {
            assert_eq!(request, number(name), "{name}");
        }
    }

    #[test]
    fn limits_and_modes_are_those_of_the_header() {
        for line in [
            "#define TOLL_DEVICE_BUFFER_MIN 512u",
            "#define TOLL_DEVICE_BUFFER_MAX (16u << 20)",
            "#define TOLL_DEVICE_BUFFER_DEFAULT (64u << 10)",
            "#define TOLL_DEVICE_QUEUE_MAX 64u",
            "#define TOLL_DEVICE_SYNC 0 ",
            "#define TOLL_DEVICE_FASYNC 1 ",
            "#define TOLL_DEVICE_ASYNC 2 ",
        ] {
            assert!(HEADER.contains(line), "{line}");
        }
        assert_eq!((SYNC, FASYNC, ASYNC), (0, 1, 2));
        assert_eq!(BUFFER_BYTES_MIN, 512);
        assert_eq!(
            (BUFFER_BYTES_MAX, BUFFER_BYTES_DEFAULT),
            (16 << 20, 64 << 10)
        );
        assert_eq!(QUEUE_MAX, 64);
    }
}
