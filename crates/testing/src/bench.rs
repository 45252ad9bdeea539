//! Runs a program in separate directories: everything that it reads or writes is in a temporary
//! directory, so tests disturb neither each other nor the user.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::processes::{PATIENCE, Running, output_within};

/// The program `toll`, which Cargo has built if it built the whole workspace.
pub const TOLL: &str = concat!(env!("TOLL_PROGRAMS"), "/toll");

/// Creates a directory for a test's files, on the file system of the build, which is more likely
/// than /tmp to be a disk.
pub fn directory() -> TempDir {
    let place = Path::new(env!("TOLL_TARGET")).join("tmp");
    std::fs::create_dir_all(&place).expect("a directory can be made in the build directory");
    tempfile::tempdir_in(place).expect("a temporary directory can be made in the build directory")
}

/// Chooses the size of a test: `full` for `make test-all`, which sets `TOLL_TESTS=full`.
pub fn full_or<T>(short: T, full: T) -> T {
    if std::env::var_os("TOLL_TESTS").is_some_and(|tests| tests == "full") {
        full
    } else {
        short
    }
}

/// Prints why a test does not apply to this machine; `tools/test-summary` counts these lines.
#[expect(clippy::print_stderr, reason = "prints why a test skips")]
pub fn skip(reason: &str) {
    eprintln!("skipped: {reason}");
}

/// Returns the path of a program in the directory of the program under test.
pub fn beside_toll(name: &str) -> PathBuf {
    let path = Path::new(TOLL).with_file_name(name);
    assert!(
        path.is_file(),
        "{} is missing; build the workspace first: cargo build --workspace",
        path.display()
    );
    path
}

pub fn probe() -> PathBuf {
    beside_toll("toll-probe")
}

/// Runs a shell line in a new mount namespace; `None`, with a skip line, if that is not possible
/// here.
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

/// Fails unless a text contains all of the needles.
#[track_caller]
pub fn has(text: &str, needles: &[&str]) {
    for needle in needles {
        assert!(text.contains(needle), "{needle:?} is missing: {text}");
    }
}

/// Fails if a text contains any of the needles.
#[track_caller]
pub fn lacks(text: &str, needles: &[&str]) {
    for needle in needles {
        assert!(!text.contains(needle), "{needle:?} is present: {text}");
    }
}

/// Returns the root of the source tree.
pub fn source_tree() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize()
        .expect("the source tree has not moved since the build")
}

/// Returns whether a program is installed in PATH, /usr/sbin or /sbin. Debian puts the programs of
/// root into /usr/sbin and /sbin.
pub fn has_program(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .any(|directory| directory.join(name).is_file())
}

/// Returns whether the tests run as root.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Arguments of a program: a list, or a line with shell quoting.
pub trait Arguments {
    fn words(&self) -> Vec<OsString>;
}

impl Arguments for str {
    fn words(&self) -> Vec<OsString> {
        let words = shlex::split(self).unwrap_or_else(|| panic!("the quotes are balanced: {self}"));
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

/// Directories for one test, including one for its store.
pub struct Bench {
    directory: TempDir,
    /// The program under test.
    program: PathBuf,
    /// The probe that measures for `toll`; `None` for another program.
    probe: Option<PathBuf>,
}

/// Result of a command.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// Makes the programs that tests start react to signals. A shell starts background jobs with SIGINT
/// ignored, and nohup(1) ignores SIGHUP. Child processes inherit that, and a program leaves an
/// ignored signal ignored.
fn hear_signals() {
    for signal in [libc::SIGINT, libc::SIGHUP] {
        // SAFETY: the default action runs no function of this program.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

impl Default for Bench {
    fn default() -> Self {
        Self::new()
    }
}

impl Bench {
    /// Prepares a bench for `toll`.
    pub fn new() -> Self {
        Self {
            probe: Some(probe()),
            ..Self::for_program(TOLL)
        }
    }

    /// Prepares a bench for another program.
    pub fn for_program(program: impl Into<PathBuf>) -> Self {
        hear_signals();
        Self {
            directory: directory(),
            program: program.into(),
            probe: None,
        }
    }

    /// Prepares a bench for `toll` with a test's script in place of the probe.
    pub fn with_probe(script: &str) -> Self {
        let mut bench = Self::new();
        let probe = bench.write("fake-probe", script);
        make_executable(&probe);
        bench.probe = Some(probe);
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
        std::fs::write(&path, text).expect("the test's directory is writable");
        path
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).expect("the file can be read")
    }

    /// Returns the environment variables that affect any command of the test.
    pub fn environment(&self) -> Vec<(&'static str, PathBuf)> {
        // In shell lines, `toll` is the program under test.
        let own = self.program.parent().expect("it is in a directory");
        let path = std::env::var("PATH").unwrap_or_default();
        let probe = self.probe.clone().map(|probe| ("TOLL_PROBE", probe));
        let fixed = [
            ("PATH", format!("{}:{path}", own.display()).into()),
            ("HOME", self.path("home")),
            ("XDG_DATA_HOME", self.path("data")),
            ("XDG_CACHE_HOME", self.path("cache")),
            ("XDG_STATE_HOME", self.path("state")),
            // Tests run at the same time. They compare nothing that this disturbs.
            ("TOLL_RUN_LOCK", self.path("run.lock")),
            ("LC_ALL", "C.UTF-8".into()),
            ("TERM", "xterm-256color".into()),
        ];
        fixed.into_iter().chain(probe).collect()
    }

    const REMOVED: [&str; 6] = [
        // Cargo sets it, and toll warns about it.
        "LD_LIBRARY_PATH",
        "TOLL_STORE",
        "TOLL_WORK_DIR",
        "NO_COLOR",
        "COLUMNS",
        "CLICOLOR_FORCE",
    ];

    /// Builds a command in the test's environment without starting it.
    fn command<A: Arguments + ?Sized>(&self, program: impl AsRef<OsStr>, arguments: &A) -> Command {
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

    /// Builds a command line of the program under test without starting it.
    pub fn toll<A: Arguments + ?Sized>(&self, arguments: &A) -> Command {
        self.command(&self.program, arguments)
    }

    /// Builds the same command as [`Self::toll`] for the background, with its standard streams on
    /// `/dev/null`.
    pub fn spawnable<A: Arguments + ?Sized>(&self, arguments: &A) -> Command {
        self.spawnable_program(&self.program, arguments)
    }

    /// Starts `toll` in the background.
    pub fn start<A: Arguments + ?Sized>(&self, arguments: &A) -> Running {
        Running(self.spawnable(arguments).spawn().expect("toll starts"))
    }

    /// Starts `toll` in the background, and waits until the store has a trial.
    #[track_caller]
    pub fn start_measuring<A: Arguments + ?Sized>(&self, arguments: &A) -> Running {
        let mut running = self.start(arguments);
        running.until("the store has a trial", || !self.trials().is_empty());
        running
    }

    /// Returns the trials of the last run so far.
    pub fn trials(&self) -> Vec<Value> {
        let shown = self.run("show --json");
        let document: Value = serde_json::from_str(&shown.stdout).unwrap_or_default();
        list(&document["trials"]).to_vec()
    }

    /// Builds a background command of another program in the same environment.
    pub fn spawnable_program<A: Arguments + ?Sized>(
        &self,
        program: impl AsRef<OsStr>,
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

    /// Runs a command that must succeed.
    #[track_caller]
    pub fn ok<A: Arguments + ?Sized>(&self, arguments: &A) -> Ran {
        let ran = self.run(arguments);
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        ran
    }

    /// Runs a command that must fail with the given status, and returns its standard error.
    #[track_caller]
    pub fn fails<A: Arguments + ?Sized>(&self, code: i32, arguments: &A) -> String {
        let ran = self.run(arguments);
        assert_eq!(ran.code, Some(code), "{ran:#?}");
        ran.stderr
    }

    /// Runs a command that must succeed and print one JSON document.
    #[track_caller]
    pub fn json<A: Arguments + ?Sized>(&self, arguments: &A) -> Value {
        self.ok(arguments).json()
    }

    /// Runs experiments or commands without a page, and returns the document of the first run.
    #[track_caller]
    pub fn measured<A: Arguments + ?Sized>(&self, arguments: &A) -> Value {
        let mut words = "run -q --no-html --json".words();
        words.extend(arguments.words());
        self.json(&words)["runs"][0].take()
    }

    /// Returns the document of a stored run, with every sample.
    #[track_caller]
    pub fn document(&self, run: &str) -> Value {
        self.json(&["show", run, "--json"])
    }

    /// Returns the work directories that are left, and the journals of changes to undo.
    pub fn leftovers(&self) -> Vec<PathBuf> {
        self.places_of_leftovers()
            .iter()
            .filter_map(|place| std::fs::read_dir(place).ok())
            .flatten()
            .map(|entry| entry.expect("the directory is readable").path())
            .collect()
    }

    /// Returns the directories of work directories and of journals.
    pub fn places_of_leftovers(&self) -> [PathBuf; 2] {
        ["cache/toll/work", "state/toll/leftovers"].map(|name| self.path(name))
    }

    /// Returns the environment entry that all processes of this bench carry, and no others.
    pub fn marker(&self) -> String {
        format!("HOME={}", self.path("home").display())
    }
}

impl Ran {
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("stdout is not one JSON document: {error}\n{self:#?}"))
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
    std::fs::rename(path, &written).expect("the test's own file can be renamed");
    copy_program(&written, path);
    std::fs::remove_file(written).expect("the test's own file can be removed");
}

/// Copies a program with a separate process. If this process wrote the file, children that other
/// tests fork at that moment would inherit the open descriptor until they execute their own
/// program. A file that is open for writing cannot be executed (ETXTBSY of execve(2)).
pub fn copy_program(from: &Path, to: &Path) {
    let copied = Command::new("install")
        .args(["-m", "755"])
        .args([from, to])
        .status();
    assert!(copied.expect("install starts").success(), "{from:?}");
}

/// Returns all values of one metric over the trials of the treatment with this label. Twins have
/// separate labels.
pub fn values(document: &Value, label: &str, metric: &str) -> Vec<f64> {
    let treatment = document["treatments"]
        .as_array()
        .expect("treatments is a list")
        .iter()
        .position(|treatment| treatment["label"] == label)
        .unwrap_or_else(|| {
            panic!(
                "treatment {label:?} is missing: {:#}",
                document["treatments"]
            )
        });
    list(&document["trials"])
        .iter()
        .filter(|trial| trial["treatment"] == treatment)
        .flat_map(|trial| list(&trial["samples"][metric]).to_vec())
        .map(|value| value.as_f64().expect("a sample is a number"))
        .collect()
}

/// Returns the items of a JSON list; no items if the list is absent.
pub fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Returns the strings that the objects of a list have in a member; skips objects without such a
/// string.
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

/// Returns what `toll doctor` reports about a capability: `Err` with the reason if this machine
/// lacks it.
pub fn capability(bench: &Bench, name: &str) -> Result<(), String> {
    let examination = bench.json(&["doctor", "--json", "--no-noise"]);
    let found = list(&examination["capabilities"])
        .iter()
        .find(|one| one["what"] == name);
    let found = found.unwrap_or_else(|| panic!("doctor does not list {name}: {examination:#}"));
    match found["ok"].as_bool() {
        Some(true) => Ok(()),
        _ => Err(found["detail"].as_str().unwrap_or_default().to_owned()),
    }
}

/// Returns the Python interpreter that has the packages for the tests of fleets, installing them if
/// they are missing.
pub fn python_with_packages() -> String {
    let installed = Command::new(source_tree().join("tools/install-python-packages"))
        .output()
        .unwrap();
    assert!(installed.status.success(), "{installed:?}");
    let python = String::from_utf8(installed.stdout).unwrap();
    python.trim().to_owned()
}

/// Returns whether tracing works here, and prints why not.
pub fn can_trace(bench: &Bench) -> bool {
    let ran = bench.run("trace --no-prices true");
    match ran.code {
        Some(5) => {
            skip(ran.stderr.trim());
            false
        }
        _ => true,
    }
}
