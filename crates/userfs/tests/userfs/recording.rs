//! What `fsync` and `close` acknowledge over SFTP: the server has answered
//! `fsync@openssh.com` for the file, and that was asked after the last write. A
//! program between sshd and the real `sftp-server` records who said what in which
//! order, each answer before this client gets it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::{FromRawFd, IntoRawFd};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use toll_sshd::{Settings, Subsystem};

use crate::common::{Mounted, Setting, can_mount_remote, start, without_new_processes};

const SERVER: &str = "/usr/lib/openssh/sftp-server";

/// Where the recording program has its output, as its standard output is the test
/// harness's.
const OUTPUT: i32 = 3;

const MODES: [Setting; 3] = [
    Setting::remote("whole", "pages"),
    Setting::remote("blocks", "pages"),
    Setting::remote("none", "direct"),
];

// Types of packets (draft-ietf-secsh-filexfer-02, section 3).
const OPEN: u8 = 3;
const WRITE: u8 = 6;
const RENAME: u8 = 18;
const STATUS: u8 = 101;
const HANDLE: u8 = 102;
const EXTENDED: u8 = 200;

/// What a packet says, as far as it matters here, in one line: what it is, its
/// number, and names or handles.
fn line(packet: &[u8]) -> Option<String> {
    let (kind, rest) = packet.split_first()?;
    let (id, mut rest) = rest.split_at_checked(4)?;
    let id = u32::from_be_bytes(id.try_into().ok()?);
    let mut string = || {
        let (length, behind) = rest.split_at_checked(4)?;
        let length = u32::from_be_bytes(length.try_into().ok()?);
        let (value, behind) = behind.split_at_checked(length as usize)?;
        rest = behind;
        Some(value.to_vec())
    };
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).ok();
    let hex = |bytes: Vec<u8>| -> String {
        let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
        digits.collect()
    };
    Some(match *kind {
        OPEN => format!("open {id} {}", text(string()?)?),
        WRITE => format!("write {id} {}", hex(string()?)),
        RENAME => format!("rename {id} {} {}", text(string()?)?, text(string()?)?),
        HANDLE => format!("handle {id} {}", hex(string()?)),
        STATUS => format!(
            "status {id} {}",
            u32::from_be_bytes(rest[..4].try_into().ok()?)
        ),
        EXTENDED => match &*text(string()?)? {
            "fsync@openssh.com" => format!("fsync {id} {}", hex(string()?)),
            "posix-rename@openssh.com" => {
                format!("rename {id} {} {}", text(string()?)?, text(string()?)?)
            }
            _ => return None,
        },
        _ => return None,
    })
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
        // Either end may have gone.
        if to
            .write_all(&[&length, &*packet].concat())
            .and_then(|()| to.flush())
            .is_err()
        {
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
    let record = File::options()
        .create(true)
        .append(true)
        .open(path)
        .unwrap();
    let record = Mutex::new(record);
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
struct Recorded {
    mounted: Mounted,
    record: PathBuf,
    _place: tempfile::TempDir,
}

impl Recorded {
    fn new(setting: &Setting) -> Self {
        let place = tempfile::Builder::new()
            .prefix("userfs-")
            .tempdir()
            .unwrap();
        let (source, record) = (place.path().join("source"), place.path().join("record"));
        fs::create_dir(&source).unwrap();
        fs::write(&record, "").unwrap();
        let script = place.path().join("server");
        let own = std::env::current_exe().unwrap();
        let text = format!(
            "#!/bin/sh\nUSERFS_RECORD={} exec {} --exact recording::record --ignored --nocapture \
             {OUTPUT}>&1 >/dev/null\n",
            record.display(),
            own.display()
        );
        {
            let _others = without_new_processes();
            fs::write(&script, text).unwrap();
            fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).unwrap();
        }
        let settings = Settings {
            subsystem: Subsystem::Command(script.display().to_string()),
            ..Settings::default()
        };
        let server = start(&settings).unwrap();
        let mounted = Mounted::over(&source, place.path(), setting, Some(server));
        Self {
            mounted,
            record,
            _place: place,
        }
    }

    /// What was said until now.
    fn said(&self) -> Vec<String> {
        let text = fs::read_to_string(&self.record).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    /// Fails unless the server has answered that what a name stands for is on its
    /// device with all that was written.
    #[track_caller]
    fn is_durable(&self, name: &str, what: &str) {
        let said = self.said();
        let path = self.mounted.behind(name);
        if let Err(why) = durable(&said, &path) {
            let end = said[said.len().saturating_sub(12)..].join("\n");
            panic!("{}, {what}: {why}\n{end}", self.mounted.setting.mode);
        }
    }
}

/// What is known of a file on the server.
#[derive(Default, Clone)]
struct Known {
    is_written: bool,
    is_durable: bool,
    /// Numbers of requests for durability since the last write.
    asked: Vec<String>,
}

fn durable(said: &[String], path: &Path) -> Result<(), String> {
    let mut files: Vec<Known> = Vec::new();
    let mut names: BTreeMap<&str, usize> = BTreeMap::new();
    let mut handles: BTreeMap<&str, usize> = BTreeMap::new();
    let mut opens: BTreeMap<&str, &str> = BTreeMap::new();
    let mut renames: BTreeMap<&str, (&str, &str)> = BTreeMap::new();
    for line in said {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["open", id, name] => {
                opens.insert(id, name);
            }
            ["handle", id, handle] => {
                // Others are of directories.
                let Some(name) = opens.remove(id) else {
                    continue;
                };
                let file = *names.entry(name).or_insert_with(|| {
                    files.push(Known::default());
                    files.len() - 1
                });
                handles.insert(handle, file);
            }
            ["write", _, handle] => {
                files[handles[handle]] = Known {
                    is_written: true,
                    ..Known::default()
                };
            }
            ["fsync", id, handle] => {
                if let Some(file) = handles.get(handle) {
                    files[*file].asked.push(id.to_owned());
                }
            }
            ["rename", id, from, to] => {
                renames.insert(id, (from, to));
            }
            ["status", id, "0"] => {
                if let Some((from, to)) = renames.remove(id)
                    && let Some(file) = names.remove(from)
                {
                    names.insert(to, file);
                }
                for file in &mut files {
                    file.is_durable |= file.asked.iter().any(|asked| asked == id);
                }
            }
            _ => {}
        }
    }
    let file = names.get(path.to_str().unwrap()).map(|file| &files[*file]);
    match file {
        None => Err("the server has not opened it".into()),
        Some(file) if !file.is_written => Err("nothing was written to it".into()),
        Some(file) if !file.is_durable => {
            Err("no answer to fsync@openssh.com came after the last write".into())
        }
        Some(_) => Ok(()),
    }
}

/// `close(2)`, which must acknowledge.
fn close(file: File) {
    // SAFETY: the descriptor is this function's own.
    let closed = unsafe { libc::close(file.into_raw_fd()) };
    assert_eq!(closed, 0, "{}", std::io::Error::last_os_error());
}

fn with(mut test: impl FnMut(&Recorded)) {
    if !can_mount_remote() {
        return;
    }
    for setting in MODES {
        test(&Recorded::new(&setting));
    }
}

#[test]
fn an_fsync_waits_for_the_servers() {
    with(|recorded| {
        for (name, bytes) in [("short", 10_000), ("long", 3 << 20)] {
            let mut file = File::create_new(recorded.mounted.path(name)).unwrap();
            for content in [vec![1; bytes], vec![2; 5000]] {
                file.write_all(&content).unwrap();
                file.sync_all().unwrap();
                recorded.is_durable(name, "fsync of a new file");
            }
            file.write_all_at(&[3; 200], 100).unwrap();
            file.sync_data().unwrap();
            recorded.is_durable(name, "fdatasync of a changed file");
        }
    });
}

#[test]
fn an_fsync_waits_for_the_servers_whoever_wrote_and_has_closed() {
    with(|recorded| {
        for (name, bytes) in [("short", 10_000), ("long", 3 << 20)] {
            let path = recorded.mounted.path(name);
            let mut file = File::create_new(&path).unwrap();
            file.write_all(&vec![1; bytes]).unwrap();
            File::open(&path).unwrap().sync_all().unwrap();
            recorded.is_durable(name, "fsync by another descriptor");
            file.write_all(&[2; 300]).unwrap();
            close(file);
            File::open(&path).unwrap().sync_all().unwrap();
            recorded.is_durable(name, "fsync after close");
            let file = File::options().write(true).open(&path).unwrap();
            file.write_all_at(&[3; 300], 50).unwrap();
            close(file);
            let directory = File::open(&recorded.mounted.at).unwrap();
            directory.sync_all().unwrap();
            File::open(&path).unwrap().sync_all().unwrap();
            recorded.is_durable(name, "fsync after a change in place was closed");
        }
        let path = recorded.mounted.path("new");
        fs::write(&path, [1; 10_000]).unwrap();
        File::open(&path).unwrap().sync_all().unwrap();
        recorded.is_durable("new", "fsync after a new file was closed");
    });
}

#[test]
fn a_close_that_has_replaced_a_file_has_waited_for_the_servers_fsync() {
    with(|recorded| {
        if recorded.mounted.setting.mode == "none" {
            return;
        }
        fs::write(recorded.mounted.behind("f"), vec![1; 50_000]).unwrap();
        let path = recorded.mounted.path("f");
        let mut file = File::create(&path).unwrap();
        file.write_all(&vec![2; 40_000]).unwrap();
        close(file);
        recorded.is_durable("f", "close of a file that was written anew");
        let file = File::options().write(true).open(&path).unwrap();
        file.write_all_at(&[3; 300], 50).unwrap();
        close(file);
        recorded.is_durable("f", "close of a file of which a part was written");
    });
}
