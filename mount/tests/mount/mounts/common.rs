//! Mounts for tests: a source, a mountpoint and a serving process.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, RwLock, RwLockWriteGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::mount::UnmountFlags;
use rustix::process::Signal;
use tempfile::TempDir;
use toll_sshd::{Settings, Sshd};

use crate::mounts::watched::Control;

pub use crate::fixtures::{Small, assert_same, content, set_mode};

/// Read-locked while a process is started, until it executes its program.
static STARTS: RwLock<()> = RwLock::new(());

/// Keeps other tests from starting processes. A child process has a copy of every file
/// descriptor until it executes its program. Each copy of a file in a mount counts: closing
/// it writes the file back, and until then it keeps the mount busy. Where that matters, a
/// test holds this lock while the file is open.
pub fn without_new_processes() -> RwLockWriteGuard<'static, ()> {
    STARTS.write().unwrap_or_else(PoisonError::into_inner)
}

pub fn starting<T>(start: impl FnOnce() -> T) -> T {
    let _others = STARTS.read().unwrap_or_else(PoisonError::into_inner);
    start()
}

pub fn start(settings: &Settings) -> Result<Sshd, String> {
    starting(|| Sshd::start(settings))
}

#[derive(Clone, Debug)]
pub struct Setting {
    pub mode: &'static str,
    pub kernel: &'static str,
    pub lifetime_ms: u32,
    pub is_read_only: bool,
    /// The source is reached over SFTP, through the test's own server.
    pub is_remote: bool,
    /// The test sees the calls of the source, and can stop them.
    pub is_watched: bool,
    /// A resource limit of the serving process, in the syntax of prlimit(1).
    pub limit: Option<&'static str>,
    /// The mount accesses the source as a user other than root.
    pub is_of_user: bool,
}

impl Setting {
    pub const fn new(mode: &'static str, kernel: &'static str) -> Self {
        Self {
            mode,
            kernel,
            lifetime_ms: 1000,
            is_read_only: false,
            is_remote: false,
            is_watched: false,
            limit: None,
            is_of_user: false,
        }
    }

    pub const fn watched(self) -> Self {
        Self {
            is_watched: true,
            ..self
        }
    }

    pub const fn remote(mode: &'static str, kernel: &'static str) -> Self {
        Self {
            is_remote: true,
            ..Self::new(mode, kernel)
        }
    }
}

/// All cache settings that change behaviour.
pub const SETTINGS: [Setting; 6] = [
    Setting::new("whole", "pages"),
    Setting::new("blocks", "pages"),
    Setting::new("none", "pages"),
    Setting::new("none", "direct"),
    Setting::new("none", "writeback"),
    Setting::new("none", "passthrough"),
];

/// The settings with a local copy.
pub const CACHED: &[Setting] = SETTINGS.split_at(2).0;

/// All settings over SFTP, where passthrough is impossible.
pub const REMOTE_SETTINGS: [Setting; 5] = [
    Setting::remote("whole", "pages"),
    Setting::remote("blocks", "pages"),
    Setting::remote("none", "pages"),
    Setting::remote("none", "direct"),
    Setting::remote("none", "writeback"),
];

/// The settings over SFTP with a local copy.
pub const REMOTE_CACHED: &[Setting] = REMOTE_SETTINGS.split_at(2).0;

/// The settings over SFTP that are the default for each mode.
pub const REMOTE_MODES: [Setting; 3] = [
    Setting::remote("whole", "pages"),
    Setting::remote("blocks", "pages"),
    DIRECT,
];

/// Over SFTP without a copy.
pub const DIRECT: Setting = Setting::remote("none", "direct");

pub fn watched<'a>(settings: impl IntoIterator<Item = &'a Setting>) -> Vec<Setting> {
    let settings = settings.into_iter();
    settings.map(|setting| setting.clone().watched()).collect()
}

/// Why this machine cannot mount, and why not over SFTP; `None` if it can.
static REFUSAL: LazyLock<Option<&'static str>> = LazyLock::new(|| {
    if !rustix::process::geteuid().is_root() {
        return Some("only root may mount without a helper program");
    }
    let device = File::open("/dev/fuse");
    device.is_err().then_some("cannot open /dev/fuse")
});
static REMOTE_REFUSAL: LazyLock<Option<String>> =
    LazyLock::new(|| start(&Settings::default()).err());

impl Setting {
    /// Returns whether this machine can mount with this setting; prints why not.
    pub fn is_possible(&self) -> bool {
        let remote = REMOTE_REFUSAL.as_deref().filter(|_| self.is_remote);
        let refusal = REFUSAL.or(remote);
        if let Some(why) = refusal {
            eprintln!("skipped: {why}");
        }
        refusal.is_none()
    }
}

/// Runs a test in each setting that this machine can mount.
pub fn each<'a>(settings: impl IntoIterator<Item = &'a Setting>, test: impl Fn(&mut Mounted)) {
    for setting in settings {
        if setting.is_possible() {
            eprintln!("in {setting:?}");
            test(&mut Mounted::new(setting));
        }
    }
}

pub struct Mounted {
    pub source: PathBuf,
    pub at: PathBuf,
    pub copies: PathBuf,
    pub setting: Setting,
    pub control: Control,
    process: Option<Process>,
    pub server: Option<Sshd>,
    _place: Option<TempDir>,
}

struct Process {
    child: Child,
    input: Option<ChildStdin>,
    said: Arc<Mutex<Vec<String>>>,
    reader: JoinHandle<()>,
}

impl Mounted {
    pub fn new(setting: &Setting) -> Self {
        Self::with(setting, |_| Settings::default())
    }

    /// Mounts over a server with these settings. `settings` gets the directory that
    /// contains the source and the mount point.
    pub fn with(setting: &Setting, settings: impl FnOnce(&Path) -> Settings) -> Self {
        let place = tempfile::Builder::new()
            .prefix("userfs-")
            .tempdir()
            .unwrap();
        let source = place.path().join("source");
        fs::create_dir(&source).unwrap();
        let start = || start(&settings(place.path())).expect("a server starts");
        let server = setting.is_remote.then(start);
        let mut mounted = Self::over(&source, place.path(), setting, server);
        mounted._place = Some(place);
        mounted
    }

    /// Mounts an existing source at `place/at`.
    pub fn existing(source: &Path, place: &Path, setting: &Setting) -> Self {
        assert!(!setting.is_remote);
        Self::over(source, place, setting, None)
    }

    fn over(source: &Path, place: &Path, setting: &Setting, server: Option<Sshd>) -> Self {
        // Other users access it, too.
        set_mode(place, 0o755);
        let mut mounted = Self {
            source: source.to_path_buf(),
            at: place.join("at"),
            copies: place.join("copies"),
            setting: setting.clone(),
            control: Control::new(&place.join("control")),
            process: None,
            server,
            _place: None,
        };
        fs::create_dir_all(&mounted.at).unwrap();
        mounted.mount();
        mounted
    }

    pub fn mount(&mut self) {
        let said = Arc::new(Mutex::new(Vec::new()));
        let program = std::env::current_exe().unwrap();
        let mut command = match self.setting.limit {
            Some(limit) => {
                let mut limited = Command::new("prlimit");
                limited.arg(limit).arg("--").arg(program);
                limited
            }
            None => Command::new(program),
        };
        command
            .args([
                "--exact",
                "mounts::server::serve",
                "--ignored",
                "--nocapture",
            ])
            .env("USERFS_SOURCE", &self.source)
            .env("USERFS_MOUNTPOINT", &self.at)
            .env("USERFS_DIRECTORY", &self.copies)
            .env("USERFS_MODE", self.setting.mode)
            .env("USERFS_KERNEL", self.setting.kernel)
            .env("USERFS_LIFETIME_MS", self.setting.lifetime_ms.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        if let Some(server) = &self.server {
            command
                .env("USERFS_SOURCE", server.location(&self.source))
                .env("USERFS_SSH_PORT", server.port().to_string())
                .env("USERFS_SSH_IDENTITY", server.identity())
                .env("USERFS_SSH_SETTINGS", server.ssh_settings().join("\n"));
        }
        if self.setting.is_watched {
            command.env("USERFS_CONTROL", self.control.directory());
        }
        if self.setting.is_of_user && !self.setting.is_remote {
            command.env("USERFS_AS_USER", "1");
        }
        if self.setting.is_read_only {
            command.env("USERFS_READ_ONLY", "1");
        }
        let mut child = starting(|| command.spawn().unwrap());
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        loop {
            match lines.next() {
                Some(Ok(line)) if line == "ready" => break,
                Some(Ok(line)) => said.lock().unwrap().push(line),
                _ => panic!("cannot mount: {:?}", said.lock().unwrap()),
            }
        }
        let heard = Arc::clone(&said);
        let reader = std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                heard.lock().unwrap().push(line);
            }
        });
        let input = child.stdin.take();
        self.process = Some(Process {
            child,
            input,
            said,
            reader,
        });
    }

    pub fn start_server_again(&mut self) {
        let server = self.server.as_mut().expect("it is remote");
        starting(|| server.start_again()).expect("the server starts");
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.at.join(name)
    }

    pub fn behind(&self, name: &str) -> PathBuf {
        self.source.join(name)
    }

    #[track_caller]
    pub fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    #[track_caller]
    pub fn read_behind(&self, name: &str) -> Vec<u8> {
        fs::read(self.behind(name)).unwrap()
    }

    #[track_caller]
    pub fn assert_behind(&self, name: &str, expected: impl AsRef<[u8]>) {
        assert_same(
            &self.read_behind(name),
            expected.as_ref(),
            &format!("{name} at the source of {:?}", self.setting),
        );
    }

    #[track_caller]
    pub fn assert_read(&self, name: &str, expected: impl AsRef<[u8]>) {
        assert_same(
            &self.read(name),
            expected.as_ref(),
            &format!("{name} in {:?}", self.setting),
        );
    }

    #[track_caller]
    pub fn open(&self, name: &str) -> File {
        open(&self.path(name))
    }

    fn running(&self) -> &Process {
        self.process.as_ref().expect("it is mounted")
    }

    /// Returns the serving process. prlimit(1) executes it without a fork.
    pub fn process_id(&self) -> u32 {
        self.running().child.id()
    }

    pub fn said(&self) -> Vec<String> {
        self.running().said.lock().unwrap().clone()
    }

    /// Stops the mount as a signal would. Returns the messages of the process, and whether
    /// everything was written back.
    pub fn stop(&mut self) -> (Vec<String>, bool) {
        let Some(mut process) = self.process.take() else {
            return (Vec::new(), true);
        };
        if self.setting.is_of_user && !self.setting.is_remote {
            // The process is not allowed to unmount.
            self.detach();
        } else {
            drop(process.input.take());
        }
        let status = process.child.wait().unwrap();
        process.reader.join().unwrap();
        let said = process.said.lock().unwrap().clone();
        (said, status.success())
    }

    /// Stops the mount. Panics unless everything was written back.
    #[track_caller]
    pub fn stop_clean(&mut self) {
        let (said, is_clean) = self.stop();
        assert!(is_clean, "{:?}: {said:?}", self.setting);
    }

    pub fn signal(&self, signal: Signal) {
        let child = &self.running().child;
        let pid = rustix::process::Pid::from_child(child);
        rustix::process::kill_process(pid, signal).unwrap();
        // Until all threads are stopped, one may still answer a request.
        while signal == Signal::STOP && !is_stopped(child.id()) {
            std::thread::yield_now();
        }
    }

    /// Returns the contents in the directory of kept copies, without their records.
    pub fn kept(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.copies.join("kept"));
        let entries = entries.into_iter().flatten();
        let paths = entries.map(|entry| entry.unwrap().path());
        paths
            .filter(|path| path.extension() != Some("json".as_ref()))
            .collect()
    }

    /// Waits until the serving process ends by itself. Returns whether it succeeded.
    pub fn await_end(&mut self) -> bool {
        let mut process = self.process.take().expect("it is mounted");
        process.child.wait().unwrap().success()
    }

    pub fn unmount_and_mount(&mut self) {
        self.stop_clean();
        self.mount();
    }

    /// Detaches the mount of a killed process, and mounts again.
    pub fn mount_anew(&mut self) {
        self.detach();
        self.mount();
    }

    pub fn kill(&mut self) {
        let mut process = self.process.take().expect("it is mounted");
        process.child.kill().unwrap();
        process.child.wait().unwrap();
    }

    pub fn detach(&self) {
        let _ = rustix::mount::unmount(&self.at, UnmountFlags::DETACH);
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        self.stop();
        self.detach();
    }
}

/// Whether all threads of a process are stopped (`T` in proc_pid_stat(5)).
fn is_stopped(process: u32) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    threads.flatten().all(|thread| {
        // A thread that has ended meanwhile has none.
        let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        let state = stat.rsplit(')').next().unwrap_or_default().trim_start();
        state.is_empty() || state.starts_with('T')
    })
}

#[track_caller]
pub fn open(path: &Path) -> File {
    File::options().read(true).write(true).open(path).unwrap()
}

/// Closes a file and returns the error of `close`, which dropping it would hide.
pub fn close(file: File) -> rustix::io::Result<()> {
    use std::os::fd::IntoRawFd;
    let descriptor = file.into_raw_fd();
    // SAFETY: the descriptor was given up by its owner just now.
    match unsafe { libc::close(descriptor) } {
        0 => Ok(()),
        _ => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap()),
    }
}

#[track_caller]
pub fn assert_errno<T: std::fmt::Debug>(outcome: std::io::Result<T>, errno: i32) {
    let found = outcome
        .as_ref()
        .err()
        .and_then(|error| error.raw_os_error());
    assert_eq!(found, Some(errno), "{outcome:?}");
}

/// Timeout: longer than anything takes that does not hang.
pub const LONG: Duration = Duration::from_secs(600);

#[track_caller]
pub fn await_that(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + LONG;
    while !is_so() {
        assert!(Instant::now() < deadline, "timed out waiting for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub fn temporaries(directory: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(directory)
        .unwrap()
        .flatten()
        .map(|entry| entry.path());
    let is_temporary = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default();
        name.to_string_lossy().starts_with(".toll-")
    };
    paths.filter(is_temporary).collect()
}

/// Waits, because a failed write-back may be tried again just now, and the kernel may
/// report the last close only after that has returned.
#[track_caller]
pub fn await_no_temporaries(directory: &Path) {
    await_that("the end of temporary files", || {
        temporaries(directory).is_empty()
    });
}
