//! A message of BOOTP (RFC 951) or DHCP (RFC 2131).

use core::net::Ipv4Addr;
use std::collections::BTreeMap;

use super::bytes::{colons, hex, text_or_hex, u16_at, u32_at};
use super::options::{self, DhcpOption};

/// What stands before the options, with the cookie.
const HEADER_BYTES: usize = 240;
const COOKIE: u32 = 0x6382_5363;

/// A message as its fields have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Message {
    pub is_reply: bool,
    pub hops: u8,
    pub xid: u32,
    pub seconds: u16,
    pub wants_broadcast: bool,
    pub client: Ipv4Addr,
    pub your: Ipv4Addr,
    pub next_server: Ipv4Addr,
    pub relay: Ipv4Addr,
    /// The client's link-layer address.
    pub hardware: String,
    pub server_name: Option<String>,
    pub boot_file: Option<String>,
    /// By code, in the order of the message.
    pub values: Vec<(u8, Vec<u8>)>,
    pub options: Vec<DhcpOption>,
    /// What is wrong with it, though it can be read.
    pub problems: Vec<String>,
}

impl Message {
    /// The type's number; none for BOOTP.
    pub fn kind(&self) -> Option<u8> {
        self.value(53)?.first().copied()
    }

    pub fn value(&self, code: u8) -> Option<&[u8]> {
        let found = self.values.iter().find(|(own, _)| *own == code);
        found.map(|(_, value)| value.as_slice())
    }

    pub fn seconds_of(&self, code: u8) -> Option<u32> {
        self.value(code)
            .filter(|value| value.len() == 4)
            .and_then(|value| u32_at(value, 0))
    }

    pub fn address_of(&self, code: u8) -> Option<Ipv4Addr> {
        self.seconds_of(code).map(Ipv4Addr::from)
    }

    pub fn words_of(&self, code: u8) -> Option<&str> {
        let found = self.options.iter().find(|option| option.code == code);
        found.map(|option| option.value.as_str())
    }
}

/// Reads a message.
///
/// # Errors
/// If it is none: the reason.
pub(super) fn read(bytes: &[u8]) -> Result<Message, String> {
    let cut = || {
        format!(
            "the message has {} bytes, and its fixed part 236",
            bytes.len()
        )
    };
    let fixed = bytes.get(..236).ok_or_else(cut)?;
    let mut message = fixed_part(fixed)?;
    let (server_name, boot_file) = (&fixed[44..108], &fixed[108..236]);
    if u32_at(bytes, 236) != Some(COOKIE) {
        if bytes[236..].iter().any(|byte| *byte != 0) {
            let problem = "no options are in it: the cookie before them is missing (RFC 2131, 3)";
            message.problems.push(problem.into());
        }
        message.server_name = field(server_name);
        message.boot_file = field(boot_file);
        return Ok(message);
    }
    let mut found = Found::default();
    let problems = &mut message.problems;
    found.read(&bytes[HEADER_BYTES..], "", problems);
    let overload = found
        .value(52)
        .and_then(|value| value.first().copied())
        .unwrap_or(0);
    // RFC 2131, 4.1: first the boot file's field, then the server's name.
    match overload & 1 {
        0 => message.boot_file = field(boot_file),
        _ => found.read(boot_file, " in the field of the boot file", problems),
    }
    match overload & 2 {
        0 => message.server_name = field(server_name),
        _ => found.read(server_name, " in the field of the server's name", problems),
    }
    message.values = found.in_order();
    for (code, value) in &message.values {
        let (option, problem) = options::option(*code, value);
        message.options.push(option);
        message.problems.extend(problem);
    }
    Ok(message)
}

/// What stands before the server's name.
fn fixed_part(fixed: &[u8]) -> Result<Message, String> {
    let address = |at: usize| Ipv4Addr::from(u32_at(fixed, at).unwrap_or(0));
    let is_reply = match fixed[0] {
        1 => false,
        2 => true,
        other => {
            return Err(format!(
                "its operation is {other}, neither request nor reply"
            ));
        }
    };
    let mut problems = Vec::new();
    let mut length = usize::from(fixed[2]);
    if length > 16 {
        problems.push(format!(
            "its link-layer address says it has {length} bytes; there is room for 16"
        ));
        length = 16;
    }
    Ok(Message {
        is_reply,
        hops: fixed[3],
        xid: u32_at(fixed, 4).unwrap_or(0),
        seconds: u16_at(fixed, 8).unwrap_or(0),
        wants_broadcast: fixed[10] & 0x80 != 0,
        client: address(12),
        your: address(16),
        next_server: address(20),
        relay: address(24),
        hardware: match fixed[1] {
            // InfiniBand has none here (RFC 4390).
            _ if length == 0 => "none".into(),
            1 if length == 6 => colons(&fixed[28..34]),
            kind => format!("type {kind} {}", hex(&fixed[28..28 + length])),
        },
        server_name: None,
        boot_file: None,
        values: Vec::new(),
        options: Vec::new(),
        problems,
    })
}

/// A field that ends with a zero byte.
fn field(bytes: &[u8]) -> Option<String> {
    let end = bytes
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(bytes.len());
    (end > 0).then(|| text_or_hex(&bytes[..end]))
}

/// Options, those of one code put together (RFC 3396).
#[derive(Debug, Default)]
struct Found {
    values: BTreeMap<u8, (usize, Vec<u8>)>,
}

impl Found {
    fn value(&self, code: u8) -> Option<&Vec<u8>> {
        self.values.get(&code).map(|(_, value)| value)
    }

    fn read(&mut self, bytes: &[u8], place: &str, problems: &mut Vec<String>) {
        let mut at = 0;
        loop {
            let code = match bytes.get(at) {
                Some(0) => {
                    at += 1;
                    continue;
                }
                Some(255) => return,
                Some(code) => *code,
                None => {
                    problems.push(format!("no end of the options{place}"));
                    return;
                }
            };
            let Some(length) = bytes.get(at + 1).copied().map(usize::from) else {
                problems.push(format!("option {code}{place} ends before its length"));
                return;
            };
            let Some(value) = bytes.get(at + 2..at + 2 + length) else {
                let left = bytes.len() - at - 2;
                problems.push(format!(
                    "option {code}{place} says it has {length} bytes, and {left} are left"
                ));
                return;
            };
            let order = self.values.len();
            let (_, whole) = self
                .values
                .entry(code)
                .or_insert_with(|| (order, Vec::new()));
            whole.extend_from_slice(value);
            at += 2 + length;
        }
    }

    fn in_order(self) -> Vec<(u8, Vec<u8>)> {
        let mut all: Vec<(usize, u8, Vec<u8>)> = self
            .values
            .into_iter()
            .map(|(code, (order, value))| (order, code, value))
            .collect();
        all.sort_by_key(|(order, _, _)| *order);
        all.into_iter()
            .map(|(_, code, value)| (code, value))
            .collect()
    }
}
