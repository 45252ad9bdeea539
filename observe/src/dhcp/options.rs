//! Describes options of DHCP and BOOTP in words (RFC 2132, and other RFCs named below).

use core::net::Ipv4Addr;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::{Serialize, Serializer};

use super::message_types::type_name;

#[derive(Debug, Clone, Serialize)]
pub struct DhcpOption {
    pub code: u8,
    pub name: String,
    pub value: String,
    /// Value of the option, in JSON as hexadecimal digits.
    #[serde(serialize_with = "as_hex")]
    pub bytes: Vec<u8>,
}

fn as_hex<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&hex(bytes))
}

/// Form of the value and name of each known option, by code.
static OPTIONS: LazyLock<BTreeMap<u8, (&str, &str)>> = LazyLock::new(|| {
    let lines = include_str!("options.txt").lines();
    let option = |line: &'static str| {
        let (code, rest) = line.trim_start().split_once(' ')?;
        let (form, name) = rest.split_once(' ')?;
        Some((code.parse().ok()?, (form, name.trim_start())))
    };
    lines.filter_map(option).collect()
});

fn name(code: u8) -> String {
    match OPTIONS.get(&code) {
        Some((_, name)) => (*name).to_owned(),
        None => format!("option {code}"),
    }
}

/// Describes an option in words. The second result says what is wrong with its value.
pub(super) fn option(code: u8, bytes: Vec<u8>) -> (DhcpOption, Option<String>) {
    let form = OPTIONS.get(&code).map_or("hex", |(form, _)| form);
    let (name, words) = (name(code), words(form, &bytes));
    let problem = words.is_none().then(|| {
        let length = bytes.len();
        format!("option {code} ({name}) has a malformed value of length {length}")
    });
    let option = DhcpOption {
        code,
        name,
        value: words.unwrap_or_else(|| hex(&bytes)),
        bytes,
    };
    (option, problem)
}

/// Describes a value in words; `None` if the value does not have this form.
fn words(form: &str, bytes: &[u8]) -> Option<String> {
    let exactly4 = || u32_at(bytes, 0).filter(|_| bytes.len() == 4);
    let picked = |words: &[(u8, &str)]| match bytes {
        [byte] => Some(words.iter().find(|(own, _)| own == byte)?.1.to_owned()),
        _ => None,
    };
    match form {
        "addresses" => addresses(bytes),
        "static-routes" => joined(bytes.chunks(8).map(|pair| {
            let (network, router) = (u32_at(pair, 0)?, u32_at(pair, 4)?);
            Some(format!(
                "{} by {}",
                Ipv4Addr::from(network),
                Ipv4Addr::from(router)
            ))
        })),
        "seconds" => exactly4().map(duration),
        "signed-seconds" => exactly4().map(|seconds| format!("{} s", seconds.cast_signed())),
        "number" => Some(match *bytes {
            [byte] => byte.to_string(),
            [_, _] => u16_at(bytes, 0)?.to_string(),
            _ => exactly4()?.to_string(),
        }),
        "numbers-16" => joined(
            bytes
                .chunks(2)
                .map(|pair| Some(u16_at(pair, 0)?.to_string())),
        ),
        "flag" => picked(&[(0, "no"), (1, "yes")]),
        "text" => (!bytes.is_empty()).then(|| text_or_hex(bytes)),
        "message-type" => match bytes {
            [number] => Some(type_name(*number)),
            _ => None,
        },
        "overload" => picked(&[
            (1, "in the boot file field"),
            (2, "in the server name field"),
            (3, "in the boot file and server name fields"),
        ]),
        "codes" => joined(bytes.iter().map(|code| Some(name(*code)))),
        "client-id" => client_id(bytes),
        "fqdn" => fqdn(bytes),
        "relay-agent" => relay(bytes),
        "domains" => domains(bytes),
        "classless-routes" => classless(bytes),
        "vendor-data" => vendor_data(bytes),
        "netbios-node" => picked(&[
            (1, "broadcasts (B)"),
            (2, "name servers (P)"),
            (4, "broadcasts, then name servers (M)"),
            (8, "name servers, then broadcasts (H)"),
        ]),
        "empty" => bytes.is_empty().then(|| "yes".into()),
        _ => Some(hex(bytes)),
    }
}

fn joined(parts: impl Iterator<Item = Option<String>>) -> Option<String> {
    let parts: Vec<String> = parts.collect::<Option<_>>()?;
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn addresses(bytes: &[u8]) -> Option<String> {
    let address = |four| Some(Ipv4Addr::from(u32_at(four, 0)?).to_string());
    joined(bytes.chunks(4).map(address))
}

#[must_use]
pub fn duration(seconds: u32) -> String {
    match seconds {
        0 => return "0 s".into(),
        u32::MAX => return "for ever".into(),
        _ => {}
    }
    let units = [
        (seconds / 86_400, "d"),
        (seconds / 3600 % 24, "h"),
        (seconds / 60 % 60, "min"),
        (seconds % 60, "s"),
    ];
    let units = units.iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> = units
        .map(|(count, unit)| format!("{count} {unit}"))
        .collect();
    parts.join(" ")
}

fn client_id(bytes: &[u8]) -> Option<String> {
    Some(match bytes {
        [] => return None,
        [1, rest @ ..] if rest.len() == 6 => format!("Ethernet {}", colons(rest)),
        [0, text @ ..] if !text.is_empty() => text_or_hex(text),
        [255, a, b, c, d, rest @ ..] if !rest.is_empty() => {
            let interface = hex(&[*a, *b, *c, *d]);
            format!("interface {interface}, unique identifier {}", hex(rest))
        }
        _ => hex(bytes),
    })
}

/// Describes a client's domain name (RFC 4702): flags, two results, and a name in DNS
/// form or in an older form.
fn fqdn(bytes: &[u8]) -> Option<String> {
    let [flags, _, _, name @ ..] = bytes else {
        return None;
    };
    let name = match flags & 4 {
        0 => text_or_hex(name),
        _ if name.is_empty() => "(none)".into(),
        _ => domains(name)?,
    };
    let update = match flags & 9 {
        1 => ", the server enters it into DNS",
        8 | 9 => ", nobody enters it into DNS",
        _ => "",
    };
    Some(name + update)
}

/// Describes a relay agent's information (RFC 3046, and the RFCs that define more
/// sub-options).
fn relay(bytes: &[u8]) -> Option<String> {
    let mut parts = Vec::new();
    let mut rest = bytes;
    while let [code, length, behind @ ..] = rest {
        let (value, behind) = behind.split_at_checked(usize::from(*length))?;
        parts.push(match code {
            1 => format!("circuit {}", text_or_hex(value)),
            2 => format!("remote {}", text_or_hex(value)),
            5 => format!("link {}", addresses(value)?),
            6 => format!("subscriber {}", text_or_hex(value)),
            11 => format!("server identifier override {}", addresses(value)?),
            12 => format!("relay agent identifier {}", hex(value)),
            151 => format!("network {}", text_or_hex(value)),
            _ => format!("sub-option {code} {}", hex(value)),
        });
        rest = behind;
    }
    (rest.is_empty() && !parts.is_empty()).then(|| parts.join(", "))
}

/// Describes domain names in DNS form (RFC 1035, 4.1.4), with compression (RFC 3397).
fn domains(bytes: &[u8]) -> Option<String> {
    let mut names = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let (name, end) = domain(bytes, at)?;
        names.push(name);
        at = end;
    }
    (!names.is_empty()).then(|| names.join(", "))
}

/// Returns the name at a position, and the position of the next name.
fn domain(bytes: &[u8], begin: usize) -> Option<(String, usize)> {
    let mut labels = Vec::new();
    let mut at = begin;
    let mut end = None;
    // A name has at most 255 bytes, and a pointer may only point back.
    for _ in 0..128 {
        let length = *bytes.get(at)?;
        match length >> 6 {
            0 if length == 0 => {
                let end = end.unwrap_or(at + 1);
                return Some((labels.join("."), end));
            }
            0 => {
                let label = bytes.get(at + 1..at + 1 + usize::from(length))?;
                labels.push(text_or_hex(label));
                at += 1 + usize::from(length);
            }
            3 => {
                let target = usize::from(u16_at(bytes, at)? & 0x3fff);
                end.get_or_insert(at + 2);
                at = (target < at).then_some(target)?;
            }
            _ => return None,
        }
    }
    None
}

/// Describes classless routes (RFC 3442): width of the mask, the significant bytes of
/// the network, router.
fn classless(bytes: &[u8]) -> Option<String> {
    let mut routes = Vec::new();
    let mut rest = bytes;
    while let [width, behind @ ..] = rest {
        let significant = usize::from(*width).div_ceil(8);
        if *width > 32 {
            return None;
        }
        let (network, behind) = behind.split_at_checked(significant)?;
        let (router, behind) = behind.split_at_checked(4)?;
        let mut padded = [0; 4];
        padded[..significant].copy_from_slice(network);
        let router = Ipv4Addr::from(u32_at(router, 0)?);
        routes.push(format!("{}/{width} by {router}", Ipv4Addr::from(padded)));
        rest = behind;
    }
    (!routes.is_empty()).then(|| routes.join(", "))
}

/// Describes vendor data (RFC 3925): enterprise numbers, each with data.
fn vendor_data(bytes: &[u8]) -> Option<String> {
    let mut parts = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let enterprise = u32_at(rest, 0)?;
        let length = usize::from(*rest.get(4)?);
        let (data, behind) = rest[5..].split_at_checked(length)?;
        parts.push(format!("enterprise {enterprise}: {}", text_or_hex(data)));
        rest = behind;
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

pub(super) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Formats bytes as `02:00:00:aa:bb:cc`.
pub(super) fn colons(bytes: &[u8]) -> String {
    let parts: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    parts.join(":")
}

/// Formats bytes as `0a00ff`.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns bytes as text if they are text, else as hexadecimal digits.
pub(super) fn text_or_hex(bytes: &[u8]) -> String {
    let text = str::from_utf8(bytes).map(|text| text.trim_end_matches('\0'));
    match text {
        Ok(text) if !text.is_empty() && !text.contains(char::is_control) => text.to_owned(),
        _ => hex(bytes),
    }
}
