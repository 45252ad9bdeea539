//! A message of BOOTP (RFC 951) or DHCP (RFC 2131).

use core::net::Ipv4Addr;

use serde::Serialize;

use super::options::{self, DhcpOption, colons, hex, text_or_hex, u16_at, u32_at};

const COOKIE: [u8; 4] = [0x63, 0x82, 0x53, 0x63];

/// A message with the values of its fields. An address of zeros is `None`.
#[derive(Debug, Clone, Serialize)]
pub struct Message {
    #[serde(skip)]
    pub(super) is_reply: bool,
    #[serde(skip)]
    pub(super) xid: u32,
    #[serde(skip)]
    pub(super) hardware: String,
    /// The address that the client already has (`ciaddr`).
    pub client_address: Option<Ipv4Addr>,
    /// The address that the client gets (`yiaddr`).
    pub your_address: Option<Ipv4Addr>,
    /// Address of the server that has the client's boot file (`siaddr`).
    pub next_server: Option<Ipv4Addr>,
    /// The relay agent that forwarded the message (`giaddr`).
    pub relay: Option<Ipv4Addr>,
    /// Number of relay agents that forwarded the message.
    pub hops: u8,
    /// Seconds since the client began, as counted by the client.
    pub seconds: u16,
    pub wants_broadcast: bool,
    pub server_name: Option<String>,
    pub boot_file: Option<String>,
    /// Each option once, in the order of the message.
    pub options: Vec<DhcpOption>,
}

impl Message {
    /// Returns the type's number; `None` for BOOTP.
    pub(super) fn kind(&self) -> Option<u8> {
        self.option(53)?.bytes.first().copied()
    }

    pub fn option(&self, code: u8) -> Option<&DhcpOption> {
        self.options.iter().find(|option| option.code == code)
    }

    pub(super) fn seconds_of(&self, code: u8) -> Option<u32> {
        let bytes = self.option(code)?.bytes.as_slice();
        Some(u32::from_be_bytes(bytes.try_into().ok()?))
    }

    pub(super) fn address_of(&self, code: u8) -> Option<Ipv4Addr> {
        self.seconds_of(code).map(Ipv4Addr::from)
    }
}

/// Reads a message. If it can be read despite errors, the errors go to `problems`.
pub(super) fn read(bytes: &[u8], problems: &mut Vec<String>) -> Result<Message, String> {
    let Some((fixed, behind)) = bytes.split_at_checked(236) else {
        let length = bytes.len();
        return Err(format!(
            "the message has {length} bytes, but its fixed part needs 236"
        ));
    };
    let mut message = fixed_part(fixed, problems)?;
    let (server_name, boot_file) = (&fixed[44..108], &fixed[108..]);
    let Some(options) = behind.strip_prefix(&COOKIE) else {
        if behind.iter().any(|byte| *byte != 0) {
            let problem = "it has no options: the cookie before them is missing (RFC 2131, 3)";
            problems.push(problem.into());
        }
        message.server_name = text_field(server_name);
        message.boot_file = text_field(boot_file);
        return Ok(message);
    };
    let mut values = Vec::new();
    problems.extend(read_options(options, "", &mut values));
    let overload = values.iter().find(|(code, _)| *code == 52);
    let overload = overload
        .and_then(|(_, value)| value.first().copied())
        .unwrap_or(0);
    // The order is that of RFC 2131, 4.1: first the boot file field, then the server
    // name field.
    match overload & 1 {
        0 => message.boot_file = text_field(boot_file),
        _ => problems.extend(read_options(
            boot_file,
            " in the boot file field",
            &mut values,
        )),
    }
    match overload & 2 {
        0 => message.server_name = text_field(server_name),
        _ => {
            let place = " in the server name field";
            problems.extend(read_options(server_name, place, &mut values));
        }
    }
    for (code, value) in values {
        let (option, problem) = options::option(code, value);
        message.options.push(option);
        problems.extend(problem);
    }
    Ok(message)
}

/// Reads the part of a message that precedes the server's name.
fn fixed_part(fixed: &[u8], problems: &mut Vec<String>) -> Result<Message, String> {
    let number = |at: usize| u32_at(fixed, at).unwrap_or(0);
    let address = |at: usize| Some(Ipv4Addr::from(number(at))).filter(|one| !one.is_unspecified());
    let is_reply = match fixed[0] {
        1 => false,
        2 => true,
        other => {
            return Err(format!(
                "its operation is {other}, neither request nor reply"
            ));
        }
    };
    let length = usize::from(fixed[2]);
    if length > 16 {
        problems.push(format!(
            "its link-layer address claims {length} bytes; there is room for 16"
        ));
    }
    let hardware = &fixed[28..28 + length.min(16)];
    Ok(Message {
        is_reply,
        xid: number(4),
        hardware: match fixed[1] {
            // InfiniBand messages have no address in this field (RFC 4390).
            _ if length == 0 => "none".into(),
            1 if length == 6 => colons(hardware),
            kind => format!("type {kind} {}", hex(hardware)),
        },
        client_address: address(12),
        your_address: address(16),
        next_server: address(20),
        relay: address(24),
        hops: fixed[3],
        seconds: u16_at(fixed, 8).unwrap_or(0),
        wants_broadcast: fixed[10] & 0x80 != 0,
        server_name: None,
        boot_file: None,
        options: Vec::new(),
    })
}

/// Returns the text of a field that ends with a zero byte; `None` if it is empty.
fn text_field(bytes: &[u8]) -> Option<String> {
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    (!text.is_empty()).then(|| text_or_hex(text))
}

/// Reads options, and joins those of one code (RFC 3396). Returns what is wrong with
/// the options.
fn read_options(mut bytes: &[u8], place: &str, values: &mut Vec<(u8, Vec<u8>)>) -> Option<String> {
    loop {
        match bytes {
            [0, behind @ ..] => bytes = behind,
            [255, ..] => return None,
            [] => return Some(format!("the options{place} lack the end option (255)")),
            [code] => return Some(format!("option {code}{place} ends before its length")),
            [code, length, behind @ ..] => {
                let Some((value, behind)) = behind.split_at_checked(usize::from(*length)) else {
                    let left = behind.len();
                    return Some(format!(
                        "option {code}{place} claims {length} bytes, but has only {left}"
                    ));
                };
                match values.iter_mut().find(|(known, _)| known == code) {
                    Some((_, whole)) => whole.extend_from_slice(value),
                    None => values.push((*code, value.to_vec())),
                }
                bytes = behind;
            }
        }
    }
}
