//! Structures and requests of `kernel/uapi/toll_device.h`, which describes the fields.

use rustix::ioctl::{Opcode, opcode};

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

/// `struct toll_device_page`: the page-table entry of an address.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Page {
    pub address: u64,
    /// The entry that maps the address, or 0. Without CAP_SYS_ADMIN its frame
    /// number is 0.
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
    /// Number of sends and receives that had to wait. In asynchronous mode, those that were
    /// postponed because they would have had to.
    pub waits: u64,
    pub queued_max: u64,
    pub reserved: [u64; 2],
}

pub const BUFFER_BYTES_MIN: u32 = 512;
pub const BUFFER_BYTES_MAX: u32 = 16 << 20;
pub const BUFFER_BYTES_DEFAULT: u32 = 64 << 10;
pub const QUEUE_MAX: usize = 64;

pub const SYNC: u32 = 0;
pub const FASYNC: u32 = 1;
pub const ASYNC: u32 = 2;

const MAGIC: u8 = 0xe8;

pub const GET_SETTINGS: Opcode = opcode::read::<Settings>(MAGIC, 0);
pub const SET_SETTINGS: Opcode = opcode::write::<Settings>(MAGIC, 1);
pub const LISTEN: Opcode = opcode::read_write::<Endpoint>(MAGIC, 2);
pub const ACCEPT: Opcode = opcode::read_write::<Endpoint>(MAGIC, 3);
pub const CONNECT: Opcode = opcode::write::<Endpoint>(MAGIC, 4);
pub const SEND: Opcode = opcode::read_write::<Transfer>(MAGIC, 5);
pub const RECEIVE: Opcode = opcode::read_write::<Transfer>(MAGIC, 6);
pub const REAP: Opcode = opcode::read_write::<Completion>(MAGIC, 7);
pub const FINISH: Opcode = opcode::none(MAGIC, 8);
pub const PAGE: Opcode = opcode::read_write::<Page>(MAGIC, 9);
pub const STATISTICS: Opcode = opcode::read::<Statistics>(MAGIC, 10);

/// The published request numbers, whose argument is a number.
pub const PUBLISHED_PAGE: Opcode = 0x1234_5676;
pub const PUBLISHED_TRANSFER: Opcode = 0x1234_5678;

/// Returns the argument's size, which a request's number encodes (`_IOC_SIZE`).
pub const fn argument_bytes(request: Opcode) -> usize {
    ((request >> 16) & 0x3fff) as usize
}

#[cfg(test)]
mod tests {
    const HEADER: &str = include_str!("../../../../kernel/uapi/toll_device.h");
    const OWN: &str = include_str!("abi.rs");

    /// Reads the fields of a structure, which are `kind name` in C and `name: kind`
    /// in Rust. Both lay out the same fields in the same way.
    fn fields(text: &str, start: &str, field: fn(&str) -> Option<String>) -> Vec<String> {
        let (_, rest) = text.split_once(start).expect("the structure is there");
        let (body, _) = rest.split_once('}').unwrap();
        body.lines().filter_map(|line| field(line.trim())).collect()
    }

    fn of_header(line: &str) -> Option<String> {
        let (kind, name) = line.strip_suffix(';')?.split_once(' ')?;
        let kind = kind.replace("__s", "i").replace("__", "");
        Some(
            match name.strip_suffix(']').and_then(|name| name.split_once('[')) {
                Some((name, count)) => format!("{name}: [{kind}; {count}]"),
                None => format!("{name}: {kind}"),
            },
        )
    }

    fn own(line: &str) -> Option<String> {
        let line = line.strip_prefix("pub ")?.strip_suffix(',')?;
        Some(line.to_owned())
    }

    #[test]
    fn structures_have_the_fields_of_the_header() {
        for (name, in_header) in [
            ("Settings", "settings"),
            ("Endpoint", "endpoint"),
            ("Transfer", "transfer"),
            ("Completion", "completion"),
            ("Page", "page"),
            ("Statistics", "statistics"),
        ] {
            let header = format!("struct toll_device_{in_header} {{");
            let expected = fields(HEADER, &header, of_header);
            assert!(!expected.is_empty(), "{name}");
            let found = fields(OWN, &format!("pub struct {name} {{"), own);
            assert_eq!(found, expected, "{name}");
        }
    }

    #[test]
    fn requests_limits_and_modes_are_those_of_the_header() {
        let requests = OWN
            .lines()
            .filter_map(|line| line.strip_prefix("pub const "));
        let requests = requests.filter_map(|line| line.split_once(": Opcode = opcode::"));
        let mut count = 0;
        for (name, rest) in requests {
            let (direction, arguments) = rest.split_once('(').unwrap();
            let (direction, structure) = direction.split_once("::<").unwrap_or((direction, ""));
            let ordinal = arguments.trim_matches([')', ';']).replace("MAGIC, ", "");
            let kind = match direction {
                "none" => "_IO",
                "read" => "_IOR",
                "write" => "_IOW",
                _ => "_IOWR",
            };
            let structure = structure.trim_matches('>').to_ascii_lowercase();
            let argument = if structure.is_empty() {
                String::new()
            } else {
                format!(", struct toll_device_{structure}")
            };
            let line = format!(
                "#define TOLL_DEVICE_{name} {kind}(TOLL_DEVICE_MAGIC, {ordinal}{argument})"
            );
            assert!(HEADER.contains(&line), "{line}");
            count += 1;
        }
        assert_eq!(count, 11);
        for line in [
            "#define TOLL_DEVICE_MAGIC 0xE8\n",
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
        for (name, number) in [
            ("PAGE", super::PUBLISHED_PAGE),
            ("TRANSFER", super::PUBLISHED_TRANSFER),
        ] {
            let line = format!("#define TOLL_DEVICE_PUBLISHED_{name} {number:#x}\n");
            assert!(HEADER.contains(&line), "{line}");
        }
    }
}
