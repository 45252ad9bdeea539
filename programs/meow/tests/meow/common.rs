//! Starts `meow`, and checks how it ended.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tempfile::TempDir;

pub const MEOW: &str = env!("CARGO_BIN_EXE_meow");

/// Longest wait of any test. It is far above what the tests need: it only keeps a hang
/// from stopping the whole suite.
pub const PATIENCE: Duration = Duration::from_secs(600);

/// The options under which the same bytes must come out: the fastest method, and copying.
pub const WAYS: [&[&str]; 2] = [&[], &["--copy"]];

/// More bytes than any pipe between meow and its neighbours holds.
pub const MORE_THAN_PIPES_HOLD: usize = 16 << 20;

/// Ends a shell script so that `meow` replaces the shell.
pub const EXEC: &str = r#"exec "$0" "$@""#;

#[expect(clippy::print_stderr, reason = "a skip prints its reason")]
pub fn skip(reason: &str) {
    eprintln!("skipped: {reason}");
}

/// The program, with untranslated messages and options parsed as GNU programs do.
pub fn meow() -> Command {
    neutral(Command::new(MEOW))
}

/// Returns the program as a shell script starts it with `exec "$0" "$@"`. Some settings
/// need a shell, unless the test uses unsafe code.
pub fn meow_under(script: &str) -> Command {
    let mut command = neutral(Command::new("sh"));
    command.args(["-c", script, MEOW]);
    command
}

fn neutral(mut command: Command) -> Command {
    command.env("LC_ALL", "C").env_remove("POSIXLY_CORRECT");
    command
}

/// A child process that is killed when its test ends.
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Killing fails if it has already ended, and that is fine.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    /// Starts a program. Consumes its command, so that no copy of a pipe's end stays open
    /// here.
    pub fn start(mut command: Command) -> Self {
        let child = command.spawn();
        Self(child.unwrap_or_else(|error| panic!("cannot start {command:?}: {error}")))
    }

    #[track_caller]
    pub fn succeed(&mut self) {
        let status = self.end();
        let errors = self.0.stderr.take().map(|errors| join(collect(errors)));
        let errors = errors.unwrap_or_default();
        assert!(status.success(), "{status}: {}", errors.escape_ascii());
    }

    #[track_caller]
    pub fn end(&mut self) -> ExitStatus {
        let mut status = None;
        wait_until("meow ends", || {
            status = self.0.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }
}

#[track_caller]
pub fn wait_until(what: &str, mut happened: impl FnMut() -> bool) {
    let start = Instant::now();
    while !happened() {
        assert!(start.elapsed() < PATIENCE, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

pub struct Ended {
    pub status: ExitStatus,
    pub output: Vec<u8>,
    pub errors: String,
}

impl Ended {
    /// Requires success without a message, and returns the output.
    #[track_caller]
    pub fn succeeded(self) -> Vec<u8> {
        assert_eq!(self.errors, "", "{}", self.status);
        assert!(self.status.success(), "{}", self.status);
        self.output
    }

    /// Requires exit status 1 and messages, one a line, and returns the output.
    #[track_caller]
    pub fn failed(self, messages: &[&str]) -> Vec<u8> {
        let printed: Vec<&str> = self.errors.lines().collect();
        assert_eq!(printed, messages, "{}", self.status);
        assert_eq!(self.status.code(), Some(1), "{}", self.status);
        self.output
    }

    /// Requires an end by a signal, without any message.
    #[track_caller]
    pub fn was_ended_by(self, signal: rustix::process::Signal) {
        assert_eq!(
            self.status.signal(),
            Some(signal.as_raw()),
            "{}",
            self.status
        );
        assert_eq!(self.errors, "");
    }
}

/// Reads all of a stream while the test goes on.
pub fn collect(mut stream: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // A terminal whose other side is closed reports its end as an error.
        let _ = stream.read_to_end(&mut bytes);
        bytes
    })
}

/// Writes all bytes to a stream while the test goes on, and closes it.
pub fn supply(mut stream: impl Write + Send + 'static, bytes: Vec<u8>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        // If a program ends without reading, the test judges its output.
        let _ = stream.write_all(&bytes);
    })
}

pub fn join<T>(thread: JoinHandle<T>) -> T {
    thread.join().unwrap()
}

#[track_caller]
pub fn run(mut command: Command) -> Ended {
    command.stderr(Stdio::piped());
    let mut running = Running::start(command);
    let errors = collect(running.0.stderr.take().unwrap());
    let output = running.0.stdout.take().map(collect);
    let status = running.end();
    Ended {
        status,
        output: output.map(join).unwrap_or_default(),
        errors: String::from_utf8(join(errors)).unwrap(),
    }
}

#[track_caller]
pub fn run_meow<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Ended {
    let mut command = meow();
    command.args(arguments).stdin(Stdio::null());
    command.stdout(Stdio::piped());
    run(command)
}

pub fn writable(path: impl AsRef<Path>) -> File {
    File::options().write(true).open(path).unwrap()
}

/// Opens a file for appending, and creates it if it does not exist.
pub fn appendable(path: impl AsRef<Path>) -> File {
    File::options()
        .append(true)
        .create(true)
        .open(path)
        .unwrap()
}

pub struct Files(TempDir);

impl Files {
    /// Creates an empty directory on the file system of the build, which is more likely
    /// than `/tmp` to be on a disk.
    pub fn new() -> Self {
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"));
        Self(directory.unwrap())
    }

    /// Creates an empty directory in memory if there is such a file system. There, huge
    /// holes are read without filling the page cache.
    pub fn in_memory() -> Self {
        match tempfile::tempdir_in("/dev/shm") {
            Ok(directory) => Self(directory),
            Err(_) => Self::new(),
        }
    }

    /// Returns the path of a file that may or may not exist.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn directory(&self) -> &Path {
        self.0.path()
    }

    pub fn file(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    pub fn content(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    pub fn sink(&self, name: &str) -> File {
        File::create(self.path(name)).unwrap()
    }

    pub fn open(&self, name: &str) -> File {
        File::open(self.path(name)).unwrap()
    }

    pub fn meow(&self) -> Command {
        let mut command = meow();
        command.current_dir(self.directory());
        command
    }

    /// A shell script with meow as `$0`, started in this directory with nothing to read.
    pub fn meow_under(&self, script: &str) -> Command {
        let mut command = meow_under(script);
        command.current_dir(self.directory());
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        command
    }

    #[track_caller]
    pub fn shell<A: AsRef<OsStr>>(&self, script: &str, arguments: &[A]) -> Ended {
        let mut command = self.meow_under(script);
        command.args(arguments);
        run(command)
    }

    #[track_caller]
    pub fn run_between(
        &self,
        stdin: impl Into<Stdio>,
        arguments: &[&str],
        stdout: impl Into<Stdio>,
    ) -> Ended {
        let mut command = self.meow();
        command.args(arguments).stdin(stdin).stdout(stdout);
        run(command)
    }

    /// Like `run_between`, with nothing to read.
    #[track_caller]
    pub fn run(&self, arguments: &[&str]) -> Ended {
        self.run_between(Stdio::null(), arguments, Stdio::piped())
    }

    /// Like `run`, with a pipe at both ends.
    #[track_caller]
    pub fn run_with_pipes(&self, input: &[u8], arguments: &[&str]) -> Ended {
        self.run_between(pipe_of(input), arguments, Stdio::piped())
    }

    /// Like `run_between` into the file `out`; requires success and returns the file's
    /// content.
    #[track_caller]
    pub fn copied(&self, stdin: impl Into<Stdio>, arguments: &[&str]) -> Vec<u8> {
        let ended = self.run_between(stdin, arguments, self.sink("out"));
        ended.succeeded();
        self.content("out")
    }
}

pub fn pipe_of(bytes: &[u8]) -> std::io::PipeReader {
    let (reader, writer) = std::io::pipe().unwrap();
    supply(writer, bytes.to_vec());
    reader
}

/// Bytes without a pattern that could hide a wrong offset, up to `MORE_THAN_PIPES_HOLD`.
/// Shorter ones are prefixes of longer ones.
pub fn content(length: usize) -> Vec<u8> {
    static CONTENT: OnceLock<Vec<u8>> = OnceLock::new();
    let all = CONTENT.get_or_init(|| {
        let mut state = 1u64;
        let mut bytes = Vec::with_capacity(MORE_THAN_PIPES_HOLD);
        while bytes.len() < MORE_THAN_PIPES_HOLD {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            bytes.extend_from_slice(&state.to_be_bytes()[..4]);
        }
        bytes
    });
    all[..length].to_vec()
}

/// Compares long contents without printing them.
#[track_caller]
pub fn assert_same(found: &[u8], expected: &[u8], what: &str) {
    if found == expected {
        return;
    }
    let differs = found.iter().zip(expected).position(|(a, b)| a != b);
    panic!(
        "{what}: {} bytes instead of {}, the first difference at {differs:?}",
        found.len(),
        expected.len()
    );
}

/// Waits until meow can write no more into a pipe.
#[track_caller]
pub fn wait_until_full(pipe: impl std::os::fd::AsFd) {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let now = Timespec::default();
    wait_until("the pipe is full", || {
        let mut fds = [PollFd::new(&pipe, PollFlags::OUT)];
        let ready = poll(&mut fds, Some(&now)).unwrap();
        ready == 0
    });
}
