//! A server, a directory that it serves, and a source of that.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use toll_sshd::{Settings, Sshd, Subsystem};
use userfs::sftp::{Address, Options, Sftp};
use userfs::source::{Creation, Entry, Handle, OpenFlags, Result, SetTime, Source, Time};

/// Says why a test cannot run here.
#[expect(clippy::print_stderr, reason = "tools/test looks for it")]
pub fn skip(reason: &str) {
    eprintln!("skipped: {reason}");
}

/// A server with a directory of its own.
pub struct Bench {
    pub server: Sshd,
    pub directory: tempfile::TempDir,
    /// What was told to the user.
    pub told: Arc<Mutex<Vec<String>>>,
}

impl Bench {
    /// A server, or why there is none.
    pub fn with(settings: &Settings) -> Option<Self> {
        match Sshd::start(settings) {
            Ok(server) => {
                let directory = tempfile::tempdir().unwrap();
                set_mode(directory.path(), 0o755);
                Some(Self {
                    server,
                    directory,
                    told: Arc::default(),
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

    /// How the server is reached, with what it says kept.
    pub fn options(&self) -> Options {
        let told = Arc::clone(&self.told);
        Options {
            notice: Arc::new(move |line| told.lock().unwrap().push(line.to_owned())),
            answer_timeout: Duration::from_secs(30),
            port: Some(self.server.port()),
            identity: Some(self.server.identity()),
            config: Some("/dev/null".into()),
            settings: self.server.ssh_settings(),
            ..Options::default()
        }
    }

    /// Where a directory of this machine is through the server.
    pub fn address(&self, directory: &Path) -> Address {
        Address::parse(&self.server.location(directory)).unwrap()
    }

    pub fn connect(&self) -> Sftp {
        self.connect_to(self.directory.path())
    }

    pub fn connect_to(&self, directory: &Path) -> Sftp {
        Sftp::connect(&self.address(directory), &self.options()).unwrap()
    }

    /// Where a file of the source really lies.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

pub fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

/// Both of OpenSSH's servers: the one in sshd, and the program.
pub fn both_servers() -> [Settings; 2] {
    [
        Subsystem::Internal(Vec::new()),
        Subsystem::Program(Vec::new()),
    ]
    .map(|subsystem| Settings {
        subsystem,
        ..Settings::default()
    })
}

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

pub const CREATION: Creation = Creation {
    mode: 0o644,
    owner: None,
};

/// Read and write, and make the file if there is none.
pub const READ_WRITE: OpenFlags = OpenFlags {
    read: true,
    write: true,
    create: Some(CREATION),
    exclusive: false,
    truncate: false,
    begin: false,
};

pub fn open(source: &dyn Source, path: &str, flags: OpenFlags) -> Result<Box<dyn Handle>> {
    Ok(source.open(Path::new(path), flags)?.handle)
}

/// All that a directory has.
pub fn list(source: &dyn Source, path: &str) -> Result<Vec<Entry>> {
    Ok(source.list(Path::new(path), &[], usize::MAX)?.entries)
}

/// Bytes that differ from their neighbours at any distance.
pub fn pattern(bytes: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(2).wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut content = Vec::with_capacity(bytes + 8);
    while content.len() < bytes {
        // xorshift64 (Marsaglia, 2003).
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        content.extend_from_slice(&state.to_le_bytes());
    }
    content.truncate(bytes);
    content
}

/// A time to set, in seconds since 1970.
pub fn at(seconds: i64) -> Option<SetTime> {
    Some(SetTime::At(Time {
        seconds,
        nanoseconds: 0,
    }))
}
