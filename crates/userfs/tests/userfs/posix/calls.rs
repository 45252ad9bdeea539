//! A table's line: who calls what, and what should come of it.
//!
//! `[UID:GID[,GID…] |] CALL ARGUMENT… -> OUTCOME`, where the outcome is `ok`,
//! the name of an error, or fields such as `mode=0644 size=3`. A name is
//! relative to the test's directory; `{N}` in it is a name of N bytes.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{AtFlags, CWD, Gid, Mode, RenameFlags, Timespec, Timestamps, Uid};
use rustix::io::Errno;

/// Every error that a table names.
const ERRORS: [(&str, i32); 22] = [
    ("EPERM", libc::EPERM),
    ("ENOENT", libc::ENOENT),
    ("EACCES", libc::EACCES),
    ("EEXIST", libc::EEXIST),
    ("EXDEV", libc::EXDEV),
    ("ENOTDIR", libc::ENOTDIR),
    ("EISDIR", libc::EISDIR),
    ("EINVAL", libc::EINVAL),
    ("ETXTBSY", libc::ETXTBSY),
    ("EFBIG", libc::EFBIG),
    ("ENOSPC", libc::ENOSPC),
    ("EROFS", libc::EROFS),
    ("EMLINK", libc::EMLINK),
    ("ENAMETOOLONG", libc::ENAMETOOLONG),
    ("ENOTEMPTY", libc::ENOTEMPTY),
    ("ELOOP", libc::ELOOP),
    ("ENODATA", libc::ENODATA),
    ("ENXIO", libc::ENXIO),
    ("EBUSY", libc::EBUSY),
    ("ERANGE", libc::ERANGE),
    ("EOPNOTSUPP", libc::EOPNOTSUPP),
    ("EIO", libc::EIO),
];

/// Who makes a call.
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

    /// Makes this thread, and no other, one of the caller's.
    fn become_it(&self) {
        let gid = self.groups[0];
        // SAFETY: the call reads as many numbers as the slice has. As a raw
        // system call it concerns this thread alone.
        let grouped =
            unsafe { libc::syscall(libc::SYS_setgroups, self.groups.len(), self.groups.as_ptr()) };
        // SAFETY: three numbers.
        let in_group = unsafe { libc::syscall(libc::SYS_setresgid, gid, gid, gid) };
        // SAFETY: three numbers.
        let as_user = unsafe { libc::syscall(libc::SYS_setresuid, self.uid, self.uid, self.uid) };
        assert_eq!((grouped, in_group, as_user), (0, 0, 0));
    }
}

/// Makes the call of a line and tells what came of it.
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
            let number = error.raw_os_error();
            let name = ERRORS.iter().find(|(_, errno)| *errno == number);
            name.map_or_else(|| format!("errno={number}"), |(name, _)| (*name).to_owned())
        }
    }
}

/// A name of the table as a path.
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

fn errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

/// A number of a user or group; `-` leaves it as it is.
fn id(text: &str) -> Option<u32> {
    (text != "-").then(|| text.parse().unwrap())
}

/// A time as seconds and nanoseconds, `now`, or `omit`.
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

type Outcome = rustix::io::Result<String>;

fn ok(outcome: rustix::io::Result<()>) -> Outcome {
    outcome.map(|()| "ok".to_owned())
}

fn call(words: &[&str], directory: &Path) -> Outcome {
    let at = |index: usize| path(directory, words[index]);
    let symlink_nofollow = AtFlags::SYMLINK_NOFOLLOW;
    match words[0] {
        "mkdir" => ok(rustix::fs::mkdir(
            at(1),
            Mode::from_raw_mode(octal(words[2])),
        )),
        "rmdir" => ok(rustix::fs::rmdir(at(1))),
        "unlink" => ok(rustix::fs::unlink(at(1))),
        "link" => ok(rustix::fs::linkat(CWD, at(1), CWD, at(2), AtFlags::empty())),
        "symlink" => ok(rustix::fs::symlink(
            words[1].replace("@", &directory.display().to_string()),
            at(2),
        )),
        "rename" => ok(rustix::fs::rename(at(1), at(2))),
        "rename-noreplace" => rename_with(&at(1), &at(2), RenameFlags::NOREPLACE),
        "rename-exchange" => rename_with(&at(1), &at(2), RenameFlags::EXCHANGE),
        "rename-both" => rename_with(
            &at(1),
            &at(2),
            RenameFlags::NOREPLACE | RenameFlags::EXCHANGE,
        ),
        "create" => open(
            &at(1),
            libc::O_CREAT | libc::O_EXCL | libc::O_WRONLY,
            octal(words[2]),
        ),
        "open" => open(
            &at(1),
            open_flags(words[2]),
            words.get(3).map_or(0, |mode| octal(mode)),
        ),
        "mknod" => mknod(&at(1), words[2], octal(words[3])),
        "chmod" => ok(rustix::fs::chmod(
            at(1),
            Mode::from_raw_mode(octal(words[2])),
        )),
        "chown" => chown(&at(1), &words[2..], AtFlags::empty()),
        "lchown" => chown(&at(1), &words[2..], symlink_nofollow),
        "truncate" => truncate(&at(1), words[2].parse().unwrap()),
        "utimens" | "lutimens" => {
            let times = Timestamps {
                last_access: time(words[2]),
                last_modification: time(words[3]),
            };
            let flags = match words[0] {
                "utimens" => AtFlags::empty(),
                _ => symlink_nofollow,
            };
            ok(rustix::fs::utimensat(CWD, at(1), &times, flags))
        }
        _ => look(words, directory),
    }
}

/// The calls that change nothing, and those on content.
fn look(words: &[&str], directory: &Path) -> Outcome {
    let at = |index: usize| path(directory, words[index]);
    match words[0] {
        "stat" => std::fs::metadata(at(1))
            .map(|found| told(&found))
            .map_err(|error| errno(&error)),
        "lstat" => {
            let found = std::fs::symlink_metadata(at(1));
            found
                .map(|found| told(&found))
                .map_err(|error| errno(&error))
        }
        "readlink" => {
            let target = rustix::fs::readlink(at(1), Vec::new())?;
            Ok(format!("target={}", target.to_string_lossy()))
        }
        "list" => {
            let listed = std::fs::read_dir(at(1)).map_err(|error| errno(&error))?;
            Ok(format!("entries={}", listed.count()))
        }
        "access" => {
            let access = rustix::fs::Access::from_bits_retain(words[2].parse().unwrap());
            ok(rustix::fs::accessat(CWD, at(1), access, AtFlags::EACCESS))
        }
        "append" => append(&at(1), words[2]),
        "read" => {
            let content = std::fs::read(at(1)).map_err(|error| errno(&error))?;
            Ok(format!("content={}", String::from_utf8_lossy(&content)))
        }
        "changes" => changes(&at(1), &words[2..], directory),
        other => panic!("no call is named {other}"),
    }
}

fn rename_with(from: &Path, to: &Path, flags: RenameFlags) -> Outcome {
    ok(rustix::fs::renameat_with(CWD, from, CWD, to, flags))
}

fn open_flags(text: &str) -> i32 {
    let known = [
        ("RDONLY", libc::O_RDONLY),
        ("WRONLY", libc::O_WRONLY),
        ("RDWR", libc::O_RDWR),
        ("CREAT", libc::O_CREAT),
        ("EXCL", libc::O_EXCL),
        ("TRUNC", libc::O_TRUNC),
        ("APPEND", libc::O_APPEND),
        ("DIRECTORY", libc::O_DIRECTORY),
        ("NOFOLLOW", libc::O_NOFOLLOW),
        ("NONBLOCK", libc::O_NONBLOCK),
        ("TMPFILE", libc::O_TMPFILE),
    ];
    let flag = |name: &str| known.iter().find(|(known, _)| *known == name).unwrap().1;
    text.split(',')
        .map(flag)
        .fold(0, |flags, flag| flags | flag)
}

fn open(path: &Path, flags: i32, mode: u32) -> Outcome {
    let path = CString::new(path.as_os_str().as_bytes()).unwrap();
    // SAFETY: the path ends with a zero byte and outlives the call.
    let descriptor = unsafe { libc::open(path.as_ptr(), flags | libc::O_CLOEXEC, mode) };
    if descriptor < 0 {
        return Err(errno(&std::io::Error::last_os_error()));
    }
    // SAFETY: the descriptor was just opened and is used by nobody else.
    let closed = unsafe { libc::close(descriptor) };
    assert_eq!(closed, 0);
    Ok("ok".to_owned())
}

fn mknod(path: &Path, kind: &str, mode: u32) -> Outcome {
    use rustix::fs::FileType;
    let (kind, device) = match kind {
        "file" => (FileType::RegularFile, 0),
        "fifo" => (FileType::Fifo, 0),
        "socket" => (FileType::Socket, 0),
        "char" => (FileType::CharacterDevice, rustix::fs::makedev(1, 3)),
        "block" => (FileType::BlockDevice, rustix::fs::makedev(7, 300)),
        other => panic!("no kind of file is named {other}"),
    };
    ok(rustix::fs::mknodat(
        CWD,
        path,
        kind,
        Mode::from_raw_mode(mode),
        device,
    ))
}

fn chown(path: &Path, ids: &[&str], flags: AtFlags) -> Outcome {
    let (uid, gid) = (id(ids[0]).map(Uid::from_raw), id(ids[1]).map(Gid::from_raw));
    ok(rustix::fs::chownat(CWD, path, uid, gid, flags))
}

fn truncate(path: &Path, length: i64) -> Outcome {
    let path = CString::new(path.as_os_str().as_bytes()).unwrap();
    // SAFETY: the path ends with a zero byte and outlives the call.
    match unsafe { libc::truncate(path.as_ptr(), length) } {
        0 => Ok("ok".to_owned()),
        _ => Err(errno(&std::io::Error::last_os_error())),
    }
}

fn append(path: &Path, text: &str) -> Outcome {
    let mut options = File::options();
    let mut file = options
        .append(true)
        .custom_flags(libc::O_CLOEXEC)
        .open(path)
        .map_err(|error| errno(&error))?;
    file.write_all(text.as_bytes())
        .map_err(|error| errno(&error))?;
    Ok("ok".to_owned())
}

fn told(found: &std::fs::Metadata) -> String {
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

/// Makes a call and tells which times of a file it changed.
fn changes(of: &Path, words: &[&str], directory: &Path) -> Outcome {
    let times = |path: &Path| {
        let found = std::fs::symlink_metadata(path).map_err(|error| errno(&error))?;
        Ok::<_, Errno>([
            ("mtime", (found.mtime(), found.mtime_nsec())),
            ("ctime", (found.ctime(), found.ctime_nsec())),
        ])
    };
    let before = times(of)?;
    // The kernel's clock for files advances by ticks of up to 10 ms.
    std::thread::sleep(Duration::from_millis(25));
    call(words, directory)?;
    let after = times(of)?;
    let mut changed = String::new();
    for ((name, before), (_, after)) in before.iter().zip(&after) {
        let how = match after > before {
            true => "new",
            false => "same",
        };
        changed += &format!("{name}={how} ");
    }
    Ok(changed)
}
