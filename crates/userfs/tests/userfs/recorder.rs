//! What a mount and its server say to each other: a program between sshd and the
//! real `sftp-server` records who said what in which order, each packet before it
//! is passed on.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::FromRawFd;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Mutex;

use toll_sshd::{Settings, Subsystem};

use crate::common::{Mounted, Setting};

const SERVER: &str = "/usr/lib/openssh/sftp-server";

/// Where the recording program has its output, as its standard output is the test
/// harness's.
const OUTPUT: i32 = 3;

/// The names of requests by their types, from 3 on, and how many strings of each
/// are recorded (draft-ietf-secsh-filexfer-02, section 3).
const REQUESTS: [(&str, usize); 18] = [
    ("OPEN", 1),
    ("CLOSE", 0),
    ("READ", 0),
    ("WRITE", 1),
    ("LSTAT", 0),
    ("FSTAT", 0),
    ("SETSTAT", 0),
    ("FSETSTAT", 0),
    ("OPENDIR", 0),
    ("READDIR", 0),
    ("REMOVE", 0),
    ("MKDIR", 0),
    ("RMDIR", 0),
    ("REALPATH", 0),
    ("STAT", 0),
    ("RENAME", 2),
    ("READLINK", 0),
    ("SYMLINK", 0),
];
const STATUS: u8 = 101;
const HANDLE: u8 = 102;
const EXTENDED: u8 = 200;

/// Takes a string from the front of a packet's fields.
fn string<'a>(fields: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, rest) = fields.split_first_chunk()?;
    let (value, rest) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
    *fields = rest;
    Some(value)
}

/// What a packet says, in words: what it is, its number, and names, handles (which
/// are made printable) or a status.
fn line(packet: &[u8]) -> Option<String> {
    let (kind, rest) = packet.split_first()?;
    let (id, mut fields) = rest.split_first_chunk()?;
    let (name, strings) = match *kind {
        STATUS => {
            let (code, _) = fields.split_first_chunk()?;
            let (id, code) = (u32::from_be_bytes(*id), u32::from_be_bytes(*code));
            return Some(format!("STATUS {id} {code}"));
        }
        HANDLE => ("HANDLE", 1),
        EXTENDED => match string(&mut fields)? {
            b"fsync@openssh.com" => ("FSYNC", 1),
            b"posix-rename@openssh.com" => ("RENAME", 2),
            _ => ("EXTENDED", 0),
        },
        kind => *REQUESTS.get(usize::from(kind).checked_sub(3)?)?,
    };
    let mut line = format!("{name} {}", u32::from_be_bytes(*id));
    for _ in 0..strings {
        line += &format!(" {}", string(&mut fields)?.escape_ascii());
    }
    Some(line)
}

/// Passes packets on, each recorded before.
fn pass(mut from: impl Read, mut to: impl Write, record: &Mutex<File>) {
    let mut length = [0; 4];
    while from.read_exact(&mut length).is_ok() {
        let mut packet = vec![0; u32::from_be_bytes(length) as usize];
        if from.read_exact(&mut packet).is_err() {
            return;
        }
        if let Some(line) = line(&packet) {
            let mut record = record.lock().unwrap();
            record.write_all(format!("{line}\n").as_bytes()).unwrap();
        }
        let passed = to.write_all(&[&length, &*packet].concat());
        // Either end may have gone.
        if passed.and_then(|()| to.flush()).is_err() {
            return;
        }
    }
}

#[test]
#[ignore = "not a test: the program between sshd and the server"]
fn record() {
    let Some(path) = std::env::var_os("USERFS_RECORD") else {
        return;
    };
    let record = File::options().create(true).append(true).open(path);
    let record = Mutex::new(record.unwrap());
    let mut server = Command::new(SERVER)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (input, output) = (server.stdin.take().unwrap(), server.stdout.take().unwrap());
    // SAFETY: whoever starts this program opens it for this function alone.
    let answers = unsafe { File::from_raw_fd(OUTPUT) };
    std::thread::scope(|scope| {
        scope.spawn(|| pass(std::io::stdin(), input, &record));
        pass(output, answers, &record);
        // sshd has ended, or the server has; nobody reads what would follow.
        let _ = server.kill();
        let _ = server.wait();
        std::process::exit(0);
    });
}

/// A mount through the recording program.
pub struct Recorded {
    pub mounted: Mounted,
    record: PathBuf,
}

impl Recorded {
    pub fn new(setting: &Setting) -> Self {
        let mut record = PathBuf::new();
        let mounted = Mounted::with(setting, |place| {
            record = place.join("record");
            let command = format!(
                "USERFS_RECORD={} exec {} --exact recorder::record --ignored --nocapture \
                 {OUTPUT}>&1 >/dev/null",
                record.display(),
                std::env::current_exe().unwrap().display()
            );
            Settings {
                subsystem: Subsystem::Command(command),
                ..Settings::default()
            }
        });
        Self { mounted, record }
    }

    /// What was said until now, each packet in words.
    pub fn said(&self) -> Vec<Vec<String>> {
        let text = fs::read_to_string(&self.record).unwrap();
        let words = |line: &str| line.split(' ').map(str::to_owned).collect();
        text.lines().map(words).collect()
    }
}
