//! Names of files, programs, calls and errors.

use rustix::fs::FileType;
use syscalls::{Errno, Sysno};
use toll_calls::descriptor::Descriptor;

use crate::layout::EventHead;

const PIPE_FILE_SYSTEM: u32 = 0x5049_5045;
const SOCKET_FILE_SYSTEM: u32 = 0x534f_434b;
const ANONYMOUS_FILE_SYSTEM: u32 = 0x0904_1934;

/// Returns the descriptor of a file, named as `/proc/PID/fd` shows it.
pub fn file(head: EventHead, text: &[u8]) -> Descriptor {
    let path = path(text);
    let kind = FileType::from_raw_mode(head.mode);
    Descriptor::named(match head.magic {
        PIPE_FILE_SYSTEM if kind == FileType::Fifo => format!("pipe:[{}]", head.inode),
        SOCKET_FILE_SYSTEM => format!("socket:[{}]", head.inode),
        ANONYMOUS_FILE_SYSTEM => format!("anon_inode:{}", path.trim_start_matches('/')),
        _ => path,
    })
}

/// Builds a path from its names, last name first, each followed by a zero byte.
fn path(text: &[u8]) -> String {
    let names = text
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty());
    let mut path = String::new();
    for name in names.rev() {
        path.push('/');
        path.push_str(&String::from_utf8_lossy(name));
    }
    if path.is_empty() { "/".into() } else { path }
}

/// Returns the name of a program: the path that was executed, without directories.
pub fn program(text: &[u8]) -> String {
    let path = text.split(|byte| *byte == 0).next().unwrap_or_default();
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    String::from_utf8_lossy(name).into_owned()
}

/// Returns the name of a call; `None` if no call has this number.
pub fn call(number: u32) -> Option<&'static str> {
    Sysno::new(number as usize).map(|call| call.name())
}

/// Returns the name of an error; `None` for errors on which the kernel restarts the call,
/// which no program sees.
pub fn error(number: u32) -> Option<String> {
    const FIRST_RESTART: u32 = 512;
    if number >= FIRST_RESTART {
        return None;
    }
    let error = Errno::new(i32::try_from(number).ok()?);
    Some(
        error
            .name()
            .map_or_else(|| format!("E{number}"), str::to_owned),
    )
}

#[cfg(test)]
mod tests {
    use toll_calls::descriptor::Kind;

    use super::*;

    #[track_caller]
    fn check(mode: u32, magic: u32, text: &[u8], kind: Kind, name: &str) {
        let head = EventHead {
            kind: 0,
            number: 1,
            mode,
            magic,
            inode: 7,
        };
        let name = name.to_owned();
        assert_eq!(file(head, text), Descriptor { kind, name });
    }

    #[test]
    fn files_have_the_names_of_their_descriptors() {
        check(0o100_644, 0xef53, b"b\0a\0", Kind::File, "/a/b");
        check(
            0o20_666,
            0x0102_1994,
            b"null\0dev\0",
            Kind::Null,
            "/dev/null",
        );
        check(0o10_600, PIPE_FILE_SYSTEM, b"\0", Kind::Pipe, "pipe:[7]");
        check(
            0o140_777,
            SOCKET_FILE_SYSTEM,
            b"TCP\0",
            Kind::Socket,
            "socket:[7]",
        );
        check(
            0o600,
            ANONYMOUS_FILE_SYSTEM,
            b"[eventfd]\0",
            Kind::Other,
            "anon_inode:[eventfd]",
        );
        check(0o10_644, 0xef53, b"fifo\0", Kind::File, "/fifo");
        check(0o40_755, 0xef53, b"", Kind::File, "/");
    }

    #[test]
    fn programs_are_named_without_directories() {
        assert_eq!(program(b"/usr/bin/dd\0"), "dd");
        assert_eq!(program(b"./x\0rest"), "x");
        assert_eq!(program(b""), "");
    }

    #[test]
    fn calls_and_errors_have_their_names() {
        assert_eq!(call(0), Some("read"));
        assert_eq!(call(326), Some("copy_file_range"));
        assert_eq!(call(1 << 20), None);
        assert_eq!(error(2).as_deref(), Some("ENOENT"));
        assert_eq!(error(512), None);
    }
}
