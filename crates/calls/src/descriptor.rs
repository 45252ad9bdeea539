//! What a file descriptor refers to, from strace's `3</path>`.

use serde::{Deserialize, Serialize};

/// Kind of object that bytes come from or go to. Only kinds whose calls differ in cost are
/// distinguished.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A name in a file system: mostly a regular file.
    File,
    Null,
    Zero,
    /// An unnamed pipe.
    Pipe,
    /// A socket of any family.
    Socket,
    Terminal,
    /// Anything else: other devices, files that the kernel generates when they
    /// are read, event counters, closed file descriptors.
    Other,
}

/// A file by kind and name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Descriptor {
    pub kind: Kind,
    /// The file's path, or the kernel's name for an object without one, such as `pipe:[949548]`.
    /// Bytes that are not UTF-8 are replaced.
    pub name: String,
}

impl Descriptor {
    /// Returns the file with this name, which determines its kind.
    pub fn named(name: String) -> Self {
        let kind = kind_of(&name);
        Self { kind, name }
    }
}

/// Reads an argument such as `3</tmp/a\76b>` or `3</tmp/x>(deleted)`. A bare number is a file
/// descriptor that was not open.
pub fn parse(argument: &str) -> Option<Descriptor> {
    let digits = argument.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 {
        return None;
    }
    let rest = &argument[digits..];
    let name = match rest.strip_prefix('<') {
        Some(rest) => {
            let bytes = unescape(&rest[..rest.find('>')?]);
            String::from_utf8_lossy(&bytes).into_owned()
        }
        None if rest.is_empty() => format!("descriptor {argument}"),
        None => return None,
    };
    Some(Descriptor::named(name))
}

fn kind_of(name: &str) -> Kind {
    let is_below = |directory: &str| name.starts_with(directory);
    match name {
        "/dev/null" => Kind::Null,
        "/dev/zero" => Kind::Zero,
        "/dev/tty" | "/dev/console" => Kind::Terminal,
        _ if is_below("/dev/pts/") || is_below("/dev/ttyS") => Kind::Terminal,
        _ if is_below("/dev/shm/") => Kind::File,
        // Reading these files runs kernel code; there is no page to copy.
        _ if is_below("/dev/") || is_below("/proc/") || is_below("/sys/") => Kind::Other,
        _ if is_below("/") => Kind::File,
        _ if is_below("pipe:[") => Kind::Pipe,
        _ if is_below("socket:[") => Kind::Socket,
        _ => Kind::Other,
    }
}

/// Decodes the escapes of C strings. Everything else stays unchanged.
pub fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = text.bytes().peekable();
    let mut plain = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            plain.push(byte);
            continue;
        }
        match bytes.next() {
            Some(first @ b'0'..=b'7') => {
                let mut value = u32::from(first - b'0');
                for _ in 0..2 {
                    let Some(digit) = bytes.next_if(|b| (b'0'..=b'7').contains(b)) else {
                        break;
                    };
                    value = value * 8 + u32::from(digit - b'0');
                }
                plain.push(u8::try_from(value).unwrap_or(b'?'));
            }
            Some(b'n') => plain.push(b'\n'),
            Some(b't') => plain.push(b'\t'),
            Some(b'r') => plain.push(b'\r'),
            Some(b'v') => plain.push(0x0b),
            Some(b'f') => plain.push(0x0c),
            Some(other) => plain.push(other),
            None => plain.push(b'\\'),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(argument: &str, kind: Kind, name: &str) {
        let name = name.to_owned();
        assert_eq!(parse(argument), Some(Descriptor { kind, name }));
    }

    #[test]
    fn files_are_told_by_their_names() {
        check("3</tmp/x>", Kind::File, "/tmp/x");
        check("6</tmp/tr/out>(deleted)", Kind::File, "/tmp/tr/out");
        check("1</dev/null>", Kind::Null, "/dev/null");
        check("0<pipe:[949548]>", Kind::Pipe, "pipe:[949548]");
        check("3<socket:[949743]>", Kind::Socket, "socket:[949743]");
        check("1</dev/pts/0>", Kind::Terminal, "/dev/pts/0");
        check("4</proc/stat>", Kind::Other, "/proc/stat");
        check(
            "5<anon_inode:[eventfd]>",
            Kind::Other,
            "anon_inode:[eventfd]",
        );
        check("99", Kind::Other, "descriptor 99");
        assert_eq!(parse("AT_FDCWD</tmp>"), None);
        assert_eq!(parse("3<open"), None);
    }

    #[test]
    fn escapes_are_undone() {
        check(
            r#"3</tmp/tr/a\76b\74c\nd\"e\\f\33[1m\303\244>"#,
            Kind::File,
            "/tmp/tr/a>b<c\nd\"e\\f\u{1b}[1mä",
        );
        check(r"3</a\0011\7777\>", Kind::File, "/a\u{1}1?7\\");
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in r#"[0-9]{0,2}[<>\\0-9a-z"é]{0,30}"#) {
            let _ = parse(&text);
        }
    }
}
