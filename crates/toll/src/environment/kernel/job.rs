//! Running the programs that build, with all they say in a log.
#![expect(
    clippy::disallowed_methods,
    reason = "the environment is one of two places that start processes"
)]

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::BuildError;
use crate::environment::process;

/// Longest wait before an interruption is looked for.
const NAP_MAX: Duration = Duration::from_millis(100);

/// What programs are given to end in when they are told to.
const GRACE: Duration = Duration::from_secs(10);

/// The end of a log that an error shows.
const TAIL_LINES: usize = 15;
const TAIL_BYTES: u64 = 16 << 10;

/// What of the environment would make a different kernel, or none.
const REMOVED: &[&str] = &[
    "ARCH",
    "CC",
    "CROSS_COMPILE",
    "HOSTCC",
    "INSTALL_MOD_PATH",
    "KBUILD_EXTMOD",
    "KBUILD_OUTPUT",
    "KCFLAGS",
    "KCONFIG_ALLCONFIG",
    "KCONFIG_CONFIG",
    "LLVM",
    "LOCALVERSION",
    "M",
    "MAKEFLAGS",
    "MAKELEVEL",
    "MFLAGS",
    "O",
    "V",
];

/// Hears how a build goes on, and says whether it is to end.
pub trait BuildObserver {
    /// A step begins; the text says what is done.
    fn step(&mut self, what: &str);
    /// Objects compiled so far, of about how many.
    fn compiled(&mut self, objects: u64, expected: u64);
    /// Whether the build is to end; asked several times a second.
    fn is_interrupted(&self) -> bool;
}

/// Runs programs one after the other.
pub(super) struct Jobs<'a> {
    log: PathBuf,
    file: File,
    /// How far the log has been read for compiled objects.
    read_bytes: u64,
    objects: u64,
    /// About how many objects there will be; 0 while nothing is compiled.
    pub expected: u64,
    pub observer: &'a mut dyn BuildObserver,
}

impl<'a> Jobs<'a> {
    /// Goes on with a log, or begins one.
    pub fn new(log: &Path, observer: &'a mut dyn BuildObserver) -> Result<Self, BuildError> {
        let file = OpenOptions::new().create(true).append(true).open(log);
        Ok(Self {
            log: log.to_owned(),
            file: file.map_err(|error| BuildError::file(log, &error))?,
            read_bytes: 0,
            objects: 0,
            expected: 0,
            observer,
        })
    }

    pub fn log(&self) -> &Path {
        &self.log
    }

    /// Runs a program in a directory to its end, its output in the log.
    ///
    /// # Errors
    /// If it cannot be started, fails (with its last words), or the observer
    /// ends it.
    pub fn run<S: AsRef<OsStr>>(
        &mut self,
        directory: &Path,
        program: &str,
        arguments: &[S],
        variables: &[(&str, &OsStr)],
    ) -> Result<(), BuildError> {
        let mut words = vec![program.to_owned()];
        words.extend(
            arguments
                .iter()
                .map(|word| word.as_ref().to_string_lossy().into_owned()),
        );
        let cannot = |why: String| BuildError::Failed(format!("cannot run {program}: {why}"));
        writeln!(self.file, "$ {}", words.join(" ")).map_err(|error| cannot(error.to_string()))?;
        let output = || {
            self.file
                .try_clone()
                .map_err(|error| cannot(error.to_string()))
        };
        let mut command = mortal(program);
        command
            .args(arguments)
            .current_dir(directory)
            .envs(variables.iter().copied())
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .stdout(output()?)
            .stderr(output()?)
            // ^C at the terminal reaches this program alone, which ends the
            // others in order.
            .process_group(0);
        for name in REMOVED {
            command.env_remove(name);
        }
        let child = command.spawn().map_err(|error| cannot(error.to_string()))?;
        let status = self.attend(child)?;
        match status.success() {
            true => Ok(()),
            false => Err(BuildError::Failed(format!(
                "{} failed ({status}); see {}, which ends so:\n{}",
                words.join(" "),
                self.log.display(),
                tail(&self.log)
            ))),
        }
    }

    /// Waits for a program, telling what it compiles.
    fn attend(&mut self, mut child: Child) -> Result<ExitStatus, BuildError> {
        let mut nap = Duration::from_millis(2);
        loop {
            let ended = child
                .try_wait()
                .map_err(|error| BuildError::Failed(format!("cannot wait: {error}")))?;
            if self.expected > 0 {
                self.count();
            }
            if let Some(status) = ended {
                return Ok(status);
            }
            if self.observer.is_interrupted() {
                end(&mut child);
                return Err(BuildError::Interrupted);
            }
            std::thread::sleep(nap);
            nap = (nap * 2).min(NAP_MAX);
        }
    }

    /// Counts the objects that the log tells of. It is read from its begin, so
    /// that those of an interrupted build count, too.
    fn count(&mut self) {
        let Ok(mut file) = File::open(&self.log) else {
            return;
        };
        let mut bytes = Vec::new();
        let is_read = file.seek(SeekFrom::Start(self.read_bytes)).is_ok()
            && file.read_to_end(&mut bytes).is_ok();
        if !is_read {
            return;
        }
        // A line that is not yet whole is read the next time.
        let whole = bytes
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        self.read_bytes += whole as u64;
        self.objects += objects(&bytes[..whole]);
        self.observer.compiled(self.objects, self.expected);
    }
}

/// How many objects the kernel's build says that it compiles.
fn objects(log: &[u8]) -> u64 {
    let is_object = |line: &&[u8]| line.starts_with(b"  CC ") || line.starts_with(b"  AS ");
    log.split(|byte| *byte == b'\n').filter(is_object).count() as u64
}

/// A program that is told to end when this one dies, however that happens;
/// make then ends what it started.
fn mortal(program: &str) -> Command {
    match process::find("setpriv") {
        Some(setpriv) => {
            let mut command = Command::new(setpriv);
            command.args(["--pdeathsig", "TERM", "--", program]);
            command
        }
        None => Command::new(program),
    }
}

/// Ends a program with all that it started.
fn end(child: &mut Child) {
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let signal = |signal: Signal| {
        if let Some(group) = group {
            // That it has ended meanwhile is what is wanted.
            let _ = kill_process_group(group, signal);
        }
    };
    signal(Signal::TERM);
    let begin = Instant::now();
    while begin.elapsed() < GRACE && !matches!(child.try_wait(), Ok(Some(_))) {
        std::thread::sleep(Duration::from_millis(10));
    }
    // The group may outlive its first process.
    signal(Signal::KILL);
    let _ = child.wait();
}

/// The last lines of a log.
fn tail(log: &Path) -> String {
    let mut bytes = Vec::new();
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = File::open(log)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}

/// Runs a program and gives what it prints on standard output.
///
/// # Errors
/// If it cannot be started or fails, with its last words.
pub(super) fn ask<S: AsRef<OsStr>>(program: &str, arguments: &[S]) -> Result<String, String> {
    let output = Command::new(program)
        .args(arguments)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot run {program}: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => {
            let words = String::from_utf8_lossy(&output.stderr);
            let last = words.lines().rev().find(|line| !line.trim().is_empty());
            Err(format!("{program}: {}", last.unwrap_or("failed").trim()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Listener {
        is_over: bool,
        counted: u64,
    }

    impl BuildObserver for Listener {
        fn step(&mut self, _: &str) {}
        fn compiled(&mut self, objects: u64, _: u64) {
            self.counted = objects;
        }
        fn is_interrupted(&self) -> bool {
            self.is_over
        }
    }

    #[test]
    fn compiled_objects_are_counted_over_interrupted_builds() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("build.log");
        std::fs::write(&log, "  CC      a.o\n  LD      b\n  AS      c.o\n").unwrap();
        let mut listener = Listener::default();
        let mut jobs = Jobs::new(&log, &mut listener).unwrap();
        jobs.expected = 5;
        let script = "echo '  CC [M]  d.o'";
        jobs.run(directory.path(), "sh", &["-c", script], &[])
            .unwrap();
        assert_eq!(listener.counted, 3);
    }

    #[test]
    fn a_failure_shows_the_last_lines_of_the_log() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("build.log");
        let mut listener = Listener::default();
        let mut jobs = Jobs::new(&log, &mut listener).unwrap();
        let script = "echo unseen; seq 30; echo no rule >&2; exit 3";
        let error = jobs
            .run(directory.path(), "sh", &["-c", script], &[])
            .unwrap_err();
        let text = error.to_string();
        assert!(
            text.ends_with("30\nno rule") && text.contains("exit status: 3"),
            "{text}"
        );
        assert!(!text.contains("\nunseen"), "{text}");
    }

    #[test]
    fn an_interruption_ends_what_was_started_and_its_children() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("build.log");
        let mut listener = Listener {
            is_over: true,
            ..Listener::default()
        };
        let mut jobs = Jobs::new(&log, &mut listener).unwrap();
        // Neither would end by itself within the test.
        let script = "sleep 1000 & echo $! >child; wait";
        let result = jobs.run(directory.path(), "sh", &["-c", script], &[]);
        assert!(matches!(result, Err(BuildError::Interrupted)), "{result:?}");
        let told = std::fs::read_to_string(directory.path().join("child")).unwrap_or_default();
        // The shell may have been ended before it could tell of the child.
        if let Ok(child) = told.trim().parse::<u32>() {
            let state = || std::fs::read_to_string(format!("/proc/{child}/stat"));
            while state().is_ok_and(|text| !text.contains(") Z ")) {
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    }
}
