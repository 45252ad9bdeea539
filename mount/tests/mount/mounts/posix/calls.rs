//! A line of a table: the caller, the call, and the expected outcome.
//!
//! `[UID:GID[,GID…] |] CALL ARGUMENT… -> OUTCOME`, where the outcome is `ok`,
//! the name of an error, or fields such as `mode=0644 size=3`. A name is
//! relative to the test's directory; `{N}` in it is a name of N bytes.

use std::ffi::{CString, OsStr};
use std::fs::{File, Metadata};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{
    AtFlags, CWD, FileType, Gid, Mode, OFlags, RenameFlags, Timespec, Timestamps, Uid,
    renameat_with,
};

use crate::mounts::common::close;

macro_rules! errors {
    ($($name:ident)*) => {
        &[$((stringify!($name), libc::$name)),*]
    };
}

/// Every error that a table names.
const ERRORS: &[(&str, i32)] = errors! {
    EPERM ENOENT EACCES EEXIST ENOTDIR EISDIR EINVAL ENAMETOOLONG ENOTEMPTY ELOOP ENXIO EBUSY
};

#[derive(Clone, Debug, PartialEq, Eq)]
struct Caller {
    uid: u32,
    groups: Vec<u32>,
}

pub struct Line<'a> {
    caller: Option<Caller>,
    words: Vec<&'a str>,
    expected: Vec<&'a str>,
}

impl<'a> Line<'a> {
    pub fn parse(text: &'a str) -> Self {
        let (call, expected) = text.split_once(" -> ").expect("a line has an outcome");
        let (caller, call) = match call.split_once('|') {
            Some((caller, call)) => (Some(Caller::parse(caller.trim())), call),
            None => (None, call),
        };
        Self {
            caller,
            words: call.split_whitespace().collect(),
            expected: expected.split_whitespace().collect(),
        }
    }

    pub fn is_met_by(&self, found: &str) -> bool {
        let found: Vec<&str> = found.split_whitespace().collect();
        self.expected.iter().all(|wanted| found.contains(wanted))
    }
}

impl Caller {
    fn parse(text: &str) -> Self {
        let (uid, groups) = text.split_once(':').expect("UID:GID");
        let groups = groups.split(',').map(|gid| gid.parse().unwrap());
        Self {
            uid: uid.parse().unwrap(),
            groups: groups.collect(),
        }
    }

    /// Gives this thread, and no other, the caller's credentials.
    fn become_it(&self) {
        let gid = self.groups[0];
        // SAFETY: the call reads as many numbers as the slice has. As a raw system call it
        // affects this thread alone.
        let grouped =
            unsafe { libc::syscall(libc::SYS_setgroups, self.groups.len(), self.groups.as_ptr()) };
        // SAFETY: three numbers.
        let in_group = unsafe { libc::syscall(libc::SYS_setresgid, gid, gid, gid) };
        // SAFETY: three numbers.
        let as_user = unsafe { libc::syscall(libc::SYS_setresuid, self.uid, self.uid, self.uid) };
        assert_eq!((grouped, in_group, as_user), (0, 0, 0));
    }
}

pub fn perform(line: &Line<'_>, directory: &Path) -> String {
    let outcome = match &line.caller {
        None => call(&line.words, directory),
        Some(caller) => std::thread::scope(|scope| {
            let made = scope.spawn(|| {
                caller.become_it();
                call(&line.words, directory)
            });
            made.join().unwrap()
        }),
    };
    match outcome {
        Ok(found) => found,
        Err(error) => {
            let number = error.raw_os_error().unwrap_or(0);
            let name = ERRORS.iter().find(|(_, errno)| *errno == number);
            name.map_or_else(|| format!("errno={number}"), |(name, _)| (*name).to_owned())
        }
    }
}

fn path(directory: &Path, name: &str) -> PathBuf {
    let mut whole = Vec::new();
    let mut rest = name;
    while let Some((before, after)) = rest.split_once('{') {
        let (number, after) = after.split_once('}').expect("a closing brace");
        whole.extend(before.as_bytes());
        match number.strip_prefix('x') {
            Some(hex) => whole.push(u8::from_str_radix(hex, 16).unwrap()),
            None => whole.extend(vec![b'n'; number.parse().unwrap()]),
        }
        rest = after;
    }
    whole.extend(rest.as_bytes());
    directory.join(OsStr::from_bytes(&whole))
}

fn octal(text: &str) -> u32 {
    u32::from_str_radix(text, 8).expect("an octal number")
}

/// Parses the id of a user or group; `-` leaves it unchanged.
fn id(text: &str) -> Option<u32> {
    (text != "-").then(|| text.parse().unwrap())
}

/// Parses a time: seconds and nanoseconds, `now`, or `omit`.
fn time(text: &str) -> Timespec {
    let (tv_sec, tv_nsec) = match text {
        "now" => (0, rustix::fs::UTIME_NOW),
        "omit" => (0, rustix::fs::UTIME_OMIT),
        text => {
            let (seconds, nanoseconds) = text.split_once('.').expect("seconds.nanoseconds");
            (seconds.parse().unwrap(), nanoseconds.parse().unwrap())
        }
    };
    Timespec { tv_sec, tv_nsec }
}

/// `ok` or fields, or an error of the system.
type Outcome = std::io::Result<String>;

fn ok(outcome: rustix::io::Result<()>) -> Outcome {
    outcome?;
    Ok("ok".to_owned())
}

fn call(words: &[&str], directory: &Path) -> Outcome {
    let at = |index: usize| path(directory, words[index]);
    let mode = |index: usize| Mode::from_raw_mode(octal(words[index]));
    let rename = |flags| ok(renameat_with(CWD, at(1), CWD, at(2), flags));
    match words[0] {
        "mkdir" => ok(rustix::fs::mkdir(at(1), mode(2))),
        "rmdir" => ok(rustix::fs::rmdir(at(1))),
        "unlink" => ok(rustix::fs::unlink(at(1))),
        "link" => ok(rustix::fs::linkat(CWD, at(1), CWD, at(2), AtFlags::empty())),
        "symlink" => {
            let target = words[1].replace("@", &directory.display().to_string());
            ok(rustix::fs::symlink(target, at(2)))
        }
        "rename" => rename(RenameFlags::empty()),
        "rename-noreplace" => rename(RenameFlags::NOREPLACE),
        "rename-exchange" => rename(RenameFlags::EXCHANGE),
        "rename-both" => rename(RenameFlags::NOREPLACE | RenameFlags::EXCHANGE),
        "create" => {
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY;
            open(&at(1), flags, mode(2))
        }
        "open" => {
            let mode = words.get(3).map_or(0, |mode| octal(mode));
            open(&at(1), open_flags(words[2]), Mode::from_raw_mode(mode))
        }
        "mknod" => {
            let (kind, device) = kind_and_device(words[2]);
            ok(rustix::fs::mknodat(CWD, at(1), kind, mode(3), device))
        }
        "chmod" => ok(rustix::fs::chmod(at(1), mode(2))),
        "chown" | "lchown" => {
            let (uid, gid) = (
                id(words[2]).map(Uid::from_raw),
                id(words[3]).map(Gid::from_raw),
            );
            ok(rustix::fs::chownat(CWD, at(1), uid, gid, follow(words[0])))
        }
        "truncate" => {
            truncate(&at(1), words[2].parse().unwrap())?;
            Ok("ok".to_owned())
        }
        "utimens" | "lutimens" => {
            let times = Timestamps {
                last_access: time(words[2]),
                last_modification: time(words[3]),
            };
            ok(rustix::fs::utimensat(CWD, at(1), &times, follow(words[0])))
        }
        _ => look(words, directory),
    }
}

fn look(words: &[&str], directory: &Path) -> Outcome {
    let at = |index: usize| path(directory, words[index]);
    match words[0] {
        "stat" => Ok(actual(&std::fs::metadata(at(1))?)),
        "lstat" => Ok(actual(&std::fs::symlink_metadata(at(1))?)),
        "readlink" => {
            let target = rustix::fs::readlink(at(1), Vec::new())?;
            Ok(format!("target={}", target.to_string_lossy()))
        }
        "list" => Ok(format!("entries={}", std::fs::read_dir(at(1))?.count())),
        "access" => {
            let access = rustix::fs::Access::from_bits_retain(words[2].parse().unwrap());
            ok(rustix::fs::accessat(CWD, at(1), access, AtFlags::EACCESS))
        }
        "append" => {
            let mut file = File::options().append(true).open(at(1))?;
            file.write_all(words[2].as_bytes())?;
            Ok("ok".to_owned())
        }
        "read" => {
            let content = std::fs::read(at(1))?;
            Ok(format!("content={}", String::from_utf8_lossy(&content)))
        }
        "changes" => changes(&at(1), &words[2..], directory),
        other => panic!("unknown call {other}"),
    }
}

/// Calls with an `l` do not follow a symbolic link.
fn follow(call: &str) -> AtFlags {
    if call.starts_with('l') {
        AtFlags::SYMLINK_NOFOLLOW
    } else {
        AtFlags::empty()
    }
}

fn open(path: &Path, flags: OFlags, mode: Mode) -> Outcome {
    let file = rustix::fs::open(path, flags | OFlags::CLOEXEC, mode)?;
    assert_eq!(close(file.into()), Ok(()));
    Ok("ok".to_owned())
}

fn open_flags(text: &str) -> OFlags {
    let flag = |name: &str| match name {
        // Has no bit.
        "RDONLY" => OFlags::RDONLY,
        "CREAT" => OFlags::CREATE,
        name => OFlags::from_name(name).expect("a flag of open(2)"),
    };
    text.split(',').map(flag).collect()
}

fn kind_and_device(kind: &str) -> (FileType, u64) {
    match kind {
        "file" => (FileType::RegularFile, 0),
        "fifo" => (FileType::Fifo, 0),
        "socket" => (FileType::Socket, 0),
        "char" => (FileType::CharacterDevice, rustix::fs::makedev(1, 3)),
        "block" => (FileType::BlockDevice, rustix::fs::makedev(7, 300)),
        other => panic!("unknown kind of file {other}"),
    }
}

/// Calls `truncate(2)`: by name, without opening the file.
pub fn truncate(path: &Path, length: i64) -> std::io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes()).unwrap();
    // SAFETY: the path ends with a zero byte and outlives the call.
    match unsafe { libc::truncate(path.as_ptr(), length) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

fn actual(found: &Metadata) -> String {
    let kind = match found.file_type() {
        kind if kind.is_dir() => "dir",
        kind if kind.is_symlink() => "symlink",
        kind if kind.is_fifo() => "fifo",
        kind if kind.is_socket() => "socket",
        kind if kind.is_char_device() => "char",
        kind if kind.is_block_device() => "block",
        _ => "file",
    };
    format!(
        "type={kind} mode={:04o} uid={} gid={} nlink={} size={} atime={}.{} mtime={}.{} rdev={}",
        found.mode() & 0o7777,
        found.uid(),
        found.gid(),
        found.nlink(),
        found.size(),
        found.atime(),
        found.atime_nsec(),
        found.mtime(),
        found.mtime_nsec(),
        found.rdev(),
    )
}

/// Makes a call and reports which times of a file it changed.
fn changes(of: &Path, words: &[&str], directory: &Path) -> Outcome {
    let before = std::fs::symlink_metadata(of)?;
    // The kernel's clock for files advances by ticks of up to 10 ms.
    std::thread::sleep(Duration::from_millis(25));
    call(words, directory)?;
    let after = std::fs::symlink_metadata(of)?;
    let how = |time: fn(&Metadata) -> (i64, i64)| {
        if time(&after) > time(&before) {
            "new"
        } else {
            "same"
        }
    };
    let (mtime, ctime) = (
        how(|found| (found.mtime(), found.mtime_nsec())),
        how(|found| (found.ctime(), found.ctime_nsec())),
    );
    Ok(format!("mtime={mtime} ctime={ctime}"))
}
