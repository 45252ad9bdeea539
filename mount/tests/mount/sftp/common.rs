//! A server, a directory that it serves, and a source for that directory.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use toll_mount::sftp::{Address, Options, Sftp};
use toll_mount::source::{
    Attributes, Creation, Entry, Error, Handle, New, OpenFlags, RenameFlags, Result, SetAttributes,
    SetTime, Source, Timespec,
};
use toll_sshd::{Settings, Sshd, Subsystem};

pub use crate::fixtures::{Small, content, set_mode};

#[expect(clippy::print_stderr, reason = "tools/test-summary looks for it")]
pub fn skip(reason: &str) {
    eprintln!("skipped: {reason}");
}

#[expect(clippy::print_stderr, reason = "a test's process reports to it")]
pub fn tell(line: &str) {
    eprintln!("{line}");
}

/// Runs this test program again.
#[expect(clippy::disallowed_methods, reason = "a process of a test")]
pub fn again(arguments: &[&str]) -> std::process::Output {
    let program = std::env::current_exe().unwrap();
    let mut command = std::process::Command::new(program);
    command.args(arguments).output().unwrap()
}

#[track_caller]
pub fn assert_errno<T: std::fmt::Debug>(found: Result<T>, errno: i32) {
    assert_eq!(found.err(), Some(Error::Errno(errno)));
}

pub struct Bench {
    pub server: Sshd,
    pub directory: tempfile::TempDir,
    pub actual: Arc<Mutex<Vec<String>>>,
}

impl Bench {
    pub fn with(settings: &Settings) -> Option<Self> {
        match Sshd::start(settings) {
            Ok(server) => {
                let directory = tempfile::tempdir().unwrap();
                set_mode(directory.path(), 0o755);
                Some(Self {
                    server,
                    directory,
                    actual: Arc::default(),
                })
            }
            Err(why) => {
                skip(&why);
                None
            }
        }
    }

    pub fn start() -> Option<Self> {
        Self::with(&Settings::default())
    }

    pub fn options(&self) -> Options {
        let actual = Arc::clone(&self.actual);
        Options {
            notice: Arc::new(move |line| actual.lock().unwrap().push(line.to_owned())),
            answer_timeout: Duration::from_secs(30),
            port: Some(self.server.port()),
            identity: Some(self.server.identity()),
            config: Some("/dev/null".into()),
            settings: self.server.ssh_settings(),
            ..Options::default()
        }
    }

    /// Returns the address of one of this machine's directories through the server.
    pub fn address(&self, directory: &Path) -> Address {
        Address::parse(&self.server.location(directory)).unwrap()
    }

    pub fn connect(&self) -> Sftp {
        self.connect_with(|_| {}).unwrap()
    }

    /// Connects with changed options.
    pub fn connect_with(
        &self,
        change: impl FnOnce(&mut Options),
    ) -> std::result::Result<Sftp, String> {
        let mut options = self.options();
        change(&mut options);
        Sftp::connect(&self.address(self.directory.path()), &options)
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    pub fn stat(&self, name: &str) -> std::fs::Metadata {
        std::fs::symlink_metadata(self.path(name)).unwrap()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

pub fn internal(options: &[&str]) -> Settings {
    Settings {
        subsystem: Subsystem::Internal(options.iter().map(|option| (*option).to_owned()).collect()),
        ..Settings::default()
    }
}

/// Returns both of OpenSSH's servers: the one inside sshd, and the separate program.
pub fn both_servers() -> impl Iterator<Item = Bench> {
    let program = Settings {
        subsystem: Subsystem::Program(Vec::new()),
        ..Settings::default()
    };
    [internal(&[]), program]
        .into_iter()
        .filter_map(|settings| Bench::with(&settings))
}

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

pub const CREATION: Creation = Creation {
    mode: 0o644,
    owner: None,
};

pub const READ_WRITE: OpenFlags = OpenFlags {
    read: true,
    create: Some(CREATION),
    ..OpenFlags::WRITE
};

pub fn open(source: &dyn Source, path: &str, flags: OpenFlags) -> Result<Box<dyn Handle>> {
    Ok(source.open(Path::new(path), flags)?.handle)
}

pub fn attributes(source: &dyn Source, path: &str) -> Result<Attributes> {
    source.attributes(Path::new(path))
}

pub fn make(source: &dyn Source, path: &str, new: New<'_>, mode: u32) -> Result<()> {
    let owner = None;
    source.make(Path::new(path), new, &Creation { mode, owner })
}

pub fn remove(source: &dyn Source, path: &str) -> Result<()> {
    source.remove(Path::new(path), false).map(drop)
}

pub fn remove_directory(source: &dyn Source, path: &str) -> Result<()> {
    source.remove(Path::new(path), true).map(drop)
}

pub fn link(source: &dyn Source, existing: &str, new: &str) -> Result<()> {
    source.hard_link(Path::new(existing), Path::new(new))
}

pub fn rename(source: &dyn Source, from: &str, to: &str) -> Result<()> {
    source.rename(Path::new(from), Path::new(to), RenameFlags::empty())
}

/// Renames a file unless the new name exists.
pub fn rename_new(source: &dyn Source, from: &str, to: &str) -> Result<()> {
    source.rename(Path::new(from), Path::new(to), RenameFlags::NOREPLACE)
}

pub fn set(source: &dyn Source, path: &str, changes: SetAttributes) -> Result<()> {
    source.set_attributes(Path::new(path), None, &changes)
}

/// Returns a change of the length alone, to 0.
pub fn cut() -> SetAttributes {
    SetAttributes {
        size_bytes: Some(0),
        ..SetAttributes::default()
    }
}

pub fn list(source: &dyn Source, path: &str) -> Result<Vec<Entry>> {
    Ok(source.list(Path::new(path), &[], usize::MAX)?.entries)
}

/// Returns a time to set, in seconds since 1970.
pub fn at(seconds: i64) -> Option<SetTime> {
    Some(SetTime::At(Timespec {
        tv_sec: seconds,
        tv_nsec: 0,
    }))
}
