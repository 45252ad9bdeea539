//! Options of DHCP and BOOTP (RFC 2132 and those named beside others), in
//! words.

use core::net::Ipv4Addr;

use serde::Serialize;

use super::bytes::{colons, hex, text_or_hex, u16_at, u32_at};

/// An option in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DhcpOption {
    /// Its code.
    pub code: u8,
    /// Its name.
    pub name: String,
    /// Its value in words.
    pub value: String,
    /// Its bytes in hexadecimal digits.
    pub bytes: String,
}

/// How a value is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Addresses,
    /// Pairs of addresses.
    Routes,
    Seconds,
    SignedSeconds,
    Number,
    Numbers16,
    Flag,
    Text,
    Hex,
    MessageType,
    Overload,
    Codes,
    ClientId,
    Fqdn,
    Relay,
    Domains,
    Classless,
    VendorClasses,
    NetBios,
    Empty,
}

/// Codes with names and forms.
const OPTIONS: &[(u8, &str, Form)] = &[
    (1, "subnet mask", Form::Addresses),
    (2, "time offset", Form::SignedSeconds),
    (3, "routers", Form::Addresses),
    (4, "time servers", Form::Addresses),
    (5, "name servers (IEN 116)", Form::Addresses),
    (6, "DNS servers", Form::Addresses),
    (7, "log servers", Form::Addresses),
    (12, "host name", Form::Text),
    (13, "boot file size", Form::Number),
    (15, "domain name", Form::Text),
    (17, "root path", Form::Text),
    (19, "IP forwarding", Form::Flag),
    (23, "default time to live", Form::Number),
    (26, "interface MTU", Form::Number),
    (28, "broadcast address", Form::Addresses),
    (31, "router discovery", Form::Flag),
    (33, "static routes", Form::Routes),
    (40, "NIS domain", Form::Text),
    (41, "NIS servers", Form::Addresses),
    (42, "NTP servers", Form::Addresses),
    (43, "vendor-specific information", Form::Hex),
    (44, "NetBIOS name servers", Form::Addresses),
    (46, "NetBIOS node type", Form::NetBios),
    (47, "NetBIOS scope", Form::Text),
    (50, "requested address", Form::Addresses),
    (51, "lease time", Form::Seconds),
    (52, "options in other fields", Form::Overload),
    (53, "message type", Form::MessageType),
    (54, "server identifier", Form::Addresses),
    (55, "parameters asked for", Form::Codes),
    (56, "message", Form::Text),
    (57, "largest message taken", Form::Number),
    (58, "renewal time (T1)", Form::Seconds),
    (59, "rebinding time (T2)", Form::Seconds),
    (60, "vendor class", Form::Text),
    (61, "client identifier", Form::ClientId),
    (66, "TFTP server name", Form::Text),
    (67, "boot file name", Form::Text),
    (69, "SMTP servers", Form::Addresses),
    (77, "user class", Form::Text),
    (80, "rapid commit", Form::Empty),
    (81, "client's full name", Form::Fqdn),
    (82, "relay agent information", Form::Relay),
    (93, "client architecture", Form::Numbers16),
    (94, "client network interface", Form::Hex),
    (97, "client machine identifier", Form::Hex),
    (100, "time zone (POSIX)", Form::Text),
    (101, "time zone (name)", Form::Text),
    (108, "IPv6-only preferred, wait", Form::Seconds),
    (114, "captive portal", Form::Text),
    (116, "automatic configuration", Form::Flag),
    (118, "subnet selection", Form::Addresses),
    (119, "domain search", Form::Domains),
    (121, "classless routes", Form::Classless),
    (124, "vendor classes", Form::VendorClasses),
    (125, "vendor-identified information", Form::VendorClasses),
    (138, "CAPWAP controllers", Form::Addresses),
    (145, "FORCERENEW nonce", Form::Hex),
    (150, "TFTP servers", Form::Addresses),
    (249, "classless routes (Microsoft)", Form::Classless),
    (252, "proxy configuration", Form::Text),
];

/// The name of a code.
#[must_use]
pub fn name(code: u8) -> String {
    match OPTIONS.iter().find(|(known, _, _)| *known == code) {
        Some((_, name, _)) => (*name).to_owned(),
        None => format!("option {code}"),
    }
}

/// The name of a message type (RFC 2132, 9.6; RFC 3203, 4388, 6926, 7724).
#[must_use]
pub fn type_name(number: u8) -> Option<&'static str> {
    const NAMES: [&str; 18] = [
        "DISCOVER",
        "OFFER",
        "REQUEST",
        "DECLINE",
        "ACK",
        "NAK",
        "RELEASE",
        "INFORM",
        "FORCERENEW",
        "LEASEQUERY",
        "LEASEUNASSIGNED",
        "LEASEUNKNOWN",
        "LEASEACTIVE",
        "BULKLEASEQUERY",
        "LEASEQUERYDONE",
        "ACTIVELEASEQUERY",
        "LEASEQUERYSTATUS",
        "TLS",
    ];
    NAMES.get(usize::from(number).checked_sub(1)?).copied()
}

/// An option in words; what is wrong with its value comes second.
pub(super) fn option(code: u8, bytes: &[u8]) -> (DhcpOption, Option<String>) {
    let form = OPTIONS.iter().find(|(known, _, _)| *known == code);
    let form = form.map_or(Form::Hex, |(_, _, form)| *form);
    let words = words(form, bytes);
    let problem = words.is_none().then(|| {
        format!(
            "option {code} ({}) has a value of {} bytes that has not its form",
            name(code),
            bytes.len()
        )
    });
    let option = DhcpOption {
        code,
        name: name(code),
        value: words.unwrap_or_else(|| hex(bytes)),
        bytes: hex(bytes),
    };
    (option, problem)
}

fn words(form: Form, bytes: &[u8]) -> Option<String> {
    match form {
        Form::Addresses => addresses(bytes),
        Form::Routes => {
            let pairs = bytes.chunks(8).map(|pair| {
                let pair = (u32_at(pair, 0)?, u32_at(pair, 4)?);
                Some(format!(
                    "{} by {}",
                    Ipv4Addr::from(pair.0),
                    Ipv4Addr::from(pair.1)
                ))
            });
            joined(pairs)
        }
        Form::Seconds => exactly(bytes, 4).then(|| u32_at(bytes, 0))?.map(duration),
        Form::SignedSeconds => {
            let seconds = exactly(bytes, 4).then(|| u32_at(bytes, 0))??;
            Some(format!("{} s", seconds.cast_signed()))
        }
        Form::Number => number(bytes).map(|number| number.to_string()),
        Form::Numbers16 => joined(
            bytes
                .chunks(2)
                .map(|pair| u16_at(pair, 0).map(|n| n.to_string())),
        ),
        Form::Flag => match bytes {
            [0] => Some("no".into()),
            [1] => Some("yes".into()),
            _ => None,
        },
        Form::Text => (!bytes.is_empty()).then(|| text_or_hex(bytes)),
        Form::Hex => Some(hex(bytes)),
        Form::MessageType => match bytes {
            [number] => {
                Some(type_name(*number).map_or_else(|| format!("type {number}"), str::to_owned))
            }
            _ => None,
        },
        Form::Overload => match bytes {
            [1] => Some("in the field of the boot file".into()),
            [2] => Some("in the field of the server's name".into()),
            [3] => Some("in the fields of the boot file and of the server's name".into()),
            _ => None,
        },
        Form::Codes => joined(bytes.iter().map(|code| Some(name(*code)))),
        Form::ClientId => client_id(bytes),
        Form::Fqdn => fqdn(bytes),
        Form::Relay => relay(bytes),
        Form::Domains => domains(bytes),
        Form::Classless => classless(bytes),
        Form::VendorClasses => vendor_classes(bytes),
        Form::NetBios => match bytes {
            [1] => Some("broadcasts (B)".into()),
            [2] => Some("name servers (P)".into()),
            [4] => Some("broadcasts, then name servers (M)".into()),
            [8] => Some("name servers, then broadcasts (H)".into()),
            _ => None,
        },
        Form::Empty => bytes.is_empty().then(|| "yes".into()),
    }
}

fn exactly(bytes: &[u8], length: usize) -> bool {
    bytes.len() == length
}

fn joined(parts: impl Iterator<Item = Option<String>>) -> Option<String> {
    let parts: Option<Vec<String>> = parts.collect();
    parts
        .filter(|parts| !parts.is_empty())
        .map(|parts| parts.join(", "))
}

fn addresses(bytes: &[u8]) -> Option<String> {
    joined(
        bytes
            .chunks(4)
            .map(|four| u32_at(four, 0).map(|number| Ipv4Addr::from(number).to_string())),
    )
}

fn number(bytes: &[u8]) -> Option<u32> {
    match bytes.len() {
        1 => Some(bytes[0].into()),
        2 => u16_at(bytes, 0).map(u32::from),
        4 => u32_at(bytes, 0),
        _ => None,
    }
}

/// A time as DHCP counts it.
#[must_use]
pub fn duration(seconds: u32) -> String {
    if seconds == u32::MAX {
        return "for ever".into();
    }
    let units = [
        (seconds / 86_400, "d"),
        (seconds / 3600 % 24, "h"),
        (seconds / 60 % 60, "min"),
        (seconds % 60, "s"),
    ];
    let parts: Vec<String> = units
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, unit)| format!("{count} {unit}"))
        .collect();
    match parts.is_empty() {
        true => "0 s".into(),
        false => parts.join(" "),
    }
}

fn client_id(bytes: &[u8]) -> Option<String> {
    let (kind, rest) = bytes.split_first()?;
    Some(match (kind, rest) {
        (1, [_, _, _, _, _, _]) => format!("Ethernet {}", colons(rest)),
        (0, text) if !text.is_empty() => text_or_hex(text),
        (255, rest) if rest.len() > 4 => {
            format!(
                "interface {}, unique identifier {}",
                hex(&rest[..4]),
                hex(&rest[4..])
            )
        }
        _ => hex(bytes),
    })
}

/// RFC 4702: flags, two results, and a name in the form of DNS or of old.
fn fqdn(bytes: &[u8]) -> Option<String> {
    let (head, name) = bytes.split_at_checked(3)?;
    let flags = head[0];
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
    Some(format!("{name}{update}"))
}

/// RFC 3046 and those that name more sub-options.
fn relay(bytes: &[u8]) -> Option<String> {
    let mut parts = Vec::new();
    let mut rest = bytes;
    while let [code, length, behind @ ..] = rest {
        let (value, behind) = behind.split_at_checked(usize::from(*length))?;
        let (name, value) = match code {
            1 => ("circuit", text_or_hex(value)),
            2 => ("remote", text_or_hex(value)),
            5 => ("link", addresses(value)?),
            6 => ("subscriber", text_or_hex(value)),
            11 => ("server identifier override", addresses(value)?),
            12 => ("relay agent identifier", hex(value)),
            151 => ("network", text_or_hex(value)),
            _ => ("", hex(value)),
        };
        match name {
            "" => parts.push(format!("sub-option {code} {value}")),
            name => parts.push(format!("{name} {value}")),
        }
        rest = behind;
    }
    (rest.is_empty() && !parts.is_empty()).then(|| parts.join(", "))
}

/// Names as in DNS (RFC 1035, 4.1.4), with compression (RFC 3397).
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

/// The name at a place, and where the next one begins.
fn domain(bytes: &[u8], begin: usize) -> Option<(String, usize)> {
    let mut labels: Vec<String> = Vec::new();
    let mut at = begin;
    let mut end = None;
    // A name has at most 255 bytes, and pointers may only go back.
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

/// RFC 3442: width of the mask, as many bytes of the network as it needs, router.
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

/// RFC 3925: enterprise numbers, each with data.
fn vendor_classes(bytes: &[u8]) -> Option<String> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(code: u8, bytes: &[u8], value: &str) {
        let (option, problem) = option(code, bytes);
        assert_eq!((option.value.as_str(), problem), (value, None), "{code}");
    }

    #[test]
    fn values_are_put_into_words() {
        check(51, &[0, 0, 0x0e, 0x10], "1 h");
        check(51, &[255; 4], "for ever");
        check(58, &[0, 1, 0x51, 0xb5], "1 d 53 s");
        check(3, &[10, 0, 0, 1, 10, 0, 0, 2], "10.0.0.1, 10.0.0.2");
        check(12, b"box\0", "box");
        check(12, b"\x1b[31m", "1b5b33316d");
        check(55, &[1, 3, 254], "subnet mask, routers, option 254");
        check(61, &[1, 2, 0, 0, 0, 0, 1], "Ethernet 02:00:00:00:00:01");
        check(61, &[0, b'm', b'e'], "me");
        check(2, &[255, 255, 255, 0], "-256 s");
        check(80, &[], "yes");
    }

    #[test]
    fn examples_of_the_standards_are_read() {
        // RFC 3397, 2: three names over two options.
        let search = b"\x03eng\x05apple\x03com\0\x09marketing\xc0\x04";
        check(119, search, "eng.apple.com, marketing.apple.com");
        // RFC 3442: the table of descriptors.
        let routes = [
            0, 10, 0, 0, 1, 24, 10, 0, 0, 10, 0, 0, 2, 25, 10, 27, 129, 0, 10, 0, 0, 3,
        ];
        let told = "0.0.0.0/0 by 10.0.0.1, 10.0.0.0/24 by 10.0.0.2, 10.27.129.0/25 by 10.0.0.3";
        check(121, &routes, told);
        check(82, b"\x01\x04eth1\x02\x03abc", "circuit eth1, remote abc");
        check(124, &[0, 0, 0, 9, 3, b'a', b'b', b'c'], "enterprise 9: abc");
        check(
            81,
            b"\x05\0\0\x03box\x03lan\0",
            "box.lan, the server enters it into DNS",
        );
    }

    #[test]
    fn what_has_not_its_form_is_told_and_shown() {
        for (code, bytes) in [
            (51, &[1, 2, 3][..]),
            (3, &[10, 0, 0]),
            (53, &[]),
            (52, &[4]),
            (82, &[1, 9, 0]),
            (121, &[33, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
            (121, &[24, 10]),
            (119, &[0xc0, 0]),
            (119, &[0x40]),
            (124, &[0, 0, 0, 9, 200]),
        ] {
            let (option, problem) = option(code, bytes);
            assert_eq!(option.value, hex(bytes), "{code}");
            assert!(problem.is_some_and(|told| told.contains(&format!("option {code} "))));
        }
    }
}
