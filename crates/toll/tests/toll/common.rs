//! A `toll` of one's own: whatever it reads or writes lies in a temporary
//! directory, so that tests disturb neither each other nor the user.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

pub use crate::processes::{PATIENCE, Running, output_within, processes_marked, wait_until};

/// The program under test.
pub const TOLL: &str = env!("CARGO_BIN_EXE_toll");

/// The size of a test: in full for `make test-all`, which sets `TOLL_TESTS=full`.
pub fn full_or<T>(short: T, full: T) -> T {
    match std::env::var_os("TOLL_TESTS").is_some_and(|tests| tests == "full") {
        true => full,
        false => short,
    }
}

/// Prints why a test does not apply to this machine; `tools/test-summary` counts these lines.
#[expect(clippy::print_stderr, reason = "a skip tells its reason")]
pub fn skip(reason: &str) {
    eprintln!("skipped: {reason}");
}

/// The probe beside the program under test.
pub fn probe() -> PathBuf {
    let probe = Path::new(TOLL).with_file_name("toll-probe");
    assert!(
        probe.is_file(),
        "there is no {}; build the workspace first: cargo build --workspace",
        probe.display()
    );
    probe
}

/// Runs a shell line in a mount namespace of its own; `None` if that cannot be
/// had here.
pub fn in_a_namespace(bench: &Bench, line: &str) -> Option<Ran> {
    if !is_root() || !has_program("unshare") {
        skip("mounting a small file system needs root and unshare(1)");
        return None;
    }
    let line = line.replace('\'', r"'\''");
    let ran = bench.shell(&format!(
        "unshare -m --propagation private bash -ec '{line}'"
    ));
    Some(ran)
}

/// Fails unless a text has some words in it.
#[track_caller]
pub fn has(text: &str, needles: &[&str]) {
    for needle in needles {
        assert!(text.contains(needle), "{needle:?} is missing: {text}");
    }
}

/// Fails if a text has one of some words in it.
#[track_caller]
pub fn lacks(text: &str, needles: &[&str]) {
    for needle in needles {
        assert!(!text.contains(needle), "{needle:?} is there: {text}");
    }
}

/// The root of the source tree.
pub fn source_tree() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize()
        .expect("the source tree is where it was built")
}

/// Whether a program is to be had, where Debian keeps those of root too.
pub fn has_program(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .any(|directory| directory.join(name).is_file())
}

/// Whether the tests run as root.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Arguments of a program: a list, or a line with the quotes of a shell.
pub trait Arguments {
    fn words(&self) -> Vec<OsString>;
}

impl Arguments for str {
    fn words(&self) -> Vec<OsString> {
        let words = shlex::split(self).unwrap_or_else(|| panic!("the quotes fit: {self}"));
        words.into_iter().map(OsString::from).collect()
    }
}

impl Arguments for String {
    fn words(&self) -> Vec<OsString> {
        self.as_str().words()
    }
}

impl<S: AsRef<OsStr>> Arguments for [S] {
    fn words(&self) -> Vec<OsString> {
        self.iter().map(OsString::from).collect()
    }
}

impl<S: AsRef<OsStr>, const N: usize> Arguments for [S; N] {
    fn words(&self) -> Vec<OsString> {
        self.as_slice().words()
    }
}

impl<S: AsRef<OsStr>> Arguments for Vec<S> {
    fn words(&self) -> Vec<OsString> {
        self.as_slice().words()
    }
}

/// Directories for one test, with a store in them.
pub struct Bench {
    directory: TempDir,
    probe: PathBuf,
}

/// What a command did.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// Has programs that tests start hear signals. A shell starts what it puts into
/// the background with SIGINT ignored, nohup(1) with SIGHUP; both are inherited,
/// and a program leaves what is ignored as it is.
fn hear_signals() {
    for signal in [libc::SIGINT, libc::SIGHUP] {
        // SAFETY: the default action is no function of this program's.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

impl Bench {
    pub fn new() -> Self {
        hear_signals();
        // On the file system of the build: more likely than /tmp to be a disk.
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"));
        Self {
            directory: directory.expect("the build directory takes files"),
            probe: probe(),
        }
    }

    /// With a program of the test's in place of the probe.
    pub fn with_probe(script: &str) -> Self {
        let mut bench = Self::new();
        bench.probe = bench.write("fake-probe", script);
        make_executable(&bench.probe);
        bench
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn store(&self) -> PathBuf {
        self.path("data/toll/runs.sqlite")
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).expect("the test's directory takes files");
        path
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).expect("the file is there")
    }

    /// What of the environment makes a difference, for any kind of command.
    pub fn environment(&self) -> Vec<(&'static str, PathBuf)> {
        // In shell lines `toll` is the program under test.
        let own = Path::new(TOLL).parent().expect("it lies in a directory");
        let path = std::env::var("PATH").unwrap_or_default();
        vec![
            ("PATH", format!("{}:{path}", own.display()).into()),
            ("HOME", self.path("home")),
            ("XDG_DATA_HOME", self.path("data")),
            ("XDG_CACHE_HOME", self.path("cache")),
            ("XDG_STATE_HOME", self.path("state")),
            ("TOLL_PROBE", self.probe.clone()),
            // Tests run at the same time, and compare nothing that this disturbs.
            ("TOLL_RUN_LOCK", self.path("run.lock")),
            ("LC_ALL", "C.UTF-8".into()),
            ("TERM", "xterm-256color".into()),
        ]
    }

    const REMOVED: [&str; 6] = [
        // Cargo sets it, and toll warns of it.
        "LD_LIBRARY_PATH",
        "TOLL_STORE",
        "TOLL_WORK_DIR",
        "NO_COLOR",
        "COLUMNS",
        "CLICOLOR_FORCE",
    ];

    /// A program in the test's environment, not started yet.
    fn command<A: Arguments + ?Sized>(&self, program: &str, arguments: &A) -> Command {
        let mut command = Command::new(program);
        command
            .args(arguments.words())
            .envs(self.environment())
            .current_dir(self.directory.path());
        for name in Self::REMOVED {
            command.env_remove(name);
        }
        command
    }

    /// A command line of `toll`, not started yet.
    pub fn toll<A: Arguments + ?Sized>(&self, arguments: &A) -> Command {
        self.command(TOLL, arguments)
    }

    /// The same, to be started and left alone.
    pub fn spawnable<A: Arguments + ?Sized>(&self, arguments: &A) -> Command {
        self.spawnable_program(TOLL, arguments)
    }

    /// Starts `toll`, and leaves it alone.
    pub fn start<A: Arguments + ?Sized>(&self, arguments: &A) -> Running {
        Running(self.spawnable(arguments).spawn().expect("toll starts"))
    }

    /// Starts `toll`, and waits until a trial is kept.
    #[track_caller]
    pub fn start_measuring<A: Arguments + ?Sized>(&self, arguments: &A) -> Running {
        let mut running = self.start(arguments);
        running.until("a trial is kept", || !self.trials().is_empty());
        running
    }

    /// The trials of the last run so far.
    pub fn trials(&self) -> Vec<Value> {
        let shown = self.run("show --json");
        let document: Value = serde_json::from_str(&shown.stdout).unwrap_or_default();
        list(&document["trials"]).to_vec()
    }

    /// Another program in the same environment, to be started and left alone.
    pub fn spawnable_program<A: Arguments + ?Sized>(
        &self,
        program: &str,
        arguments: &A,
    ) -> Command {
        let mut command = self.command(program, arguments);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    /// Runs a shell line in which `toll` is the program under test.
    pub fn shell(&self, line: &str) -> Ran {
        ran(&mut self.command("bash", &["-c", line]))
    }

    pub fn run<A: Arguments + ?Sized>(&self, arguments: &A) -> Ran {
        ran(&mut self.toll(arguments))
    }

    /// Runs what must succeed.
    #[track_caller]
    pub fn ok<A: Arguments + ?Sized>(&self, arguments: &A) -> Ran {
        let ran = self.run(arguments);
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        ran
    }

    /// Runs what must fail with a status, and gives its errors.
    #[track_caller]
    pub fn fails<A: Arguments + ?Sized>(&self, code: i32, arguments: &A) -> String {
        let ran = self.run(arguments);
        assert_eq!(ran.code, Some(code), "{ran:#?}");
        ran.stderr
    }

    /// Runs what must succeed and print one JSON document.
    #[track_caller]
    pub fn json<A: Arguments + ?Sized>(&self, arguments: &A) -> Value {
        self.ok(arguments).json()
    }

    /// Runs experiments or commands without a page, and gives all of the first run.
    #[track_caller]
    pub fn measured<A: Arguments + ?Sized>(&self, arguments: &A) -> Value {
        let mut words = "run -q --no-html --json".words();
        words.extend(arguments.words());
        self.json(&words)["runs"][0].take()
    }

    /// A run of the store, every sample included.
    #[track_caller]
    pub fn document(&self, run: &str) -> Value {
        self.json(&["show", run, "--json"])
    }

    /// Work directories that are left, and journals of what is to be put back.
    pub fn leftovers(&self) -> Vec<PathBuf> {
        self.places_of_leftovers()
            .iter()
            .filter_map(|place| std::fs::read_dir(place).ok())
            .flatten()
            .map(|entry| entry.expect("the directory can be read").path())
            .collect()
    }

    /// Where work directories and journals are.
    pub fn places_of_leftovers(&self) -> [PathBuf; 2] {
        ["cache/toll/work", "state/toll/leftovers"].map(|name| self.path(name))
    }

    /// What all processes of the bench carry in their environment, and no others.
    pub fn marker(&self) -> String {
        format!("HOME={}", self.path("home").display())
    }
}

impl Ran {
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("stdout is one JSON document: {error}\n{self:#?}"))
    }
}

#[track_caller]
fn ran(command: &mut Command) -> Ran {
    let output = output_within(command, PATIENCE);
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).expect("stdout is UTF-8"),
        stderr: String::from_utf8(output.stderr).expect("stderr is UTF-8"),
    }
}

pub fn make_executable(path: &Path) {
    let written = path.with_extension("written");
    std::fs::rename(path, &written).expect("the file is the test's own");
    copy_program(&written, path);
    std::fs::remove_file(written).expect("the file is the test's own");
}

/// Copies a program by a process of its own. What this one has open to be
/// written, processes that other tests start just then have open, too, until
/// they execute their own program; and what is open to be written cannot be
/// executed (ETXTBSY of execve(2)).
pub fn copy_program(from: &Path, to: &Path) {
    let copied = Command::new("install")
        .args(["-m", "755"])
        .args([from, to])
        .status();
    assert!(copied.expect("install starts").success(), "{from:?}");
}

/// The numbers of one metric of all trials of a treatment, by its label's
/// start; twins have labels of their own.
pub fn values(document: &Value, label: &str, metric: &str) -> Vec<f64> {
    let treatment = document["treatments"]
        .as_array()
        .expect("a list")
        .iter()
        .position(|treatment| treatment["label"] == label)
        .unwrap_or_else(|| {
            panic!(
                "there is no treatment {label:?}: {:#}",
                document["treatments"]
            )
        });
    list(&document["trials"])
        .iter()
        .filter(|trial| trial["treatment"] == treatment)
        .flat_map(|trial| list(&trial["samples"][metric]).to_vec())
        .map(|value| value.as_f64().expect("a number"))
        .collect()
}

/// A JSON list, empty if it is absent.
pub fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A member of each object of a list, where it is a text.
pub fn texts<'a>(list: &'a [Value], member: &str) -> Vec<&'a str> {
    list.iter().filter_map(|one| one[member].as_str()).collect()
}

/// Fails unless all trials ended in one state.
#[track_caller]
pub fn all_are(state: &str, trials: &[Value]) {
    for trial in trials {
        assert_eq!(trial["state"], state, "{trial:#}");
    }
}

/// What `toll doctor` says of a capability: `Err` with the reason if this
/// machine lacks it.
pub fn capability(bench: &Bench, name: &str) -> Result<(), String> {
    let examination = bench.json(&["doctor", "--json", "--no-noise"]);
    let found = list(&examination["capabilities"])
        .iter()
        .find(|one| one["what"] == name);
    let found = found.unwrap_or_else(|| panic!("doctor knows of {name}: {examination:#}"));
    match found["ok"].as_bool() {
        Some(true) => Ok(()),
        _ => Err(found["detail"].as_str().unwrap_or_default().to_owned()),
    }
}
