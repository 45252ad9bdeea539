//! Runs `kernel/Makefile`.
#![expect(
    clippy::disallowed_methods,
    reason = "the environment is one of two places that start processes"
)]

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use toll_system::{paths, process};

use super::cache::{self, find};
use super::error::BuildError;
use super::record::Kernel;
use super::{inputs, sources};

/// Longest wait before the next check for an interruption.
const NAP: Duration = Duration::from_millis(100);

/// Time between the signal that asks programs to end and the signal that kills them.
const GRACE: Duration = Duration::from_secs(10);

/// Progress of a build.
pub enum BuildEvent<'a> {
    /// A step begins; the text describes it.
    Step(&'a str),
    /// Number of objects compiled so far, and about how many there will be.
    Compiled { objects: u64, expected: u64 },
}

/// A kernel that was built, or was in the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Built {
    pub kernel: Kernel,
    pub is_new: bool,
    /// Why apt could not check whether there is a newer source.
    pub unasked: Option<String>,
}

/// Checks that everything needed to build these kernels is installed. A kernel that is already
/// built needs nothing. Names everything that is missing at once.
pub fn check_requirements(names: &[String]) -> Result<(), BuildError> {
    let missing: Vec<&str> = names
        .iter()
        .map(String::as_str)
        .filter(|name| find(name).is_err())
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let mut settings = String::new();
    for name in &missing {
        settings += &inputs::find(name).map_err(BuildError::failed)?.settings;
    }
    let names = format!("NAMES={}", missing.join(" "));
    // The Makefile comes from standard input, since nothing may be written yet.
    let mut command = make(&["-f", "-", "check", &names])?;
    command.current_dir("/");
    let makefile = sources::makefile();
    // The settings come after the built-in kernels, to which they may refer.
    let text = format!("{makefile}\n{settings}");
    attend(command, &text, None, &mut |_| {}, &|| false).map(drop)
}

/// Builds a kernel with this many threads, unless the cache has it. Waits for another
/// build of this user; continues an interrupted one.
pub fn build(
    name: &str,
    threads: usize,
    on_event: &mut dyn FnMut(BuildEvent<'_>),
    interrupted: &dyn Fn() -> bool,
) -> Result<Built, BuildError> {
    let work = paths::kernel_work().map_err(BuildError::failed)?;
    let makefiles = work.join("makefile").make().map_err(BuildError::failed)?;
    let place = makefiles.path().to_owned();
    check_place(&place)?;
    let kernels = paths::kernels().and_then(|place| place.make());
    let kernels = kernels.map_err(BuildError::failed)?;
    let directory = sources::lay_out(&place).map_err(|error| BuildError::file(&place, &error))?;
    let inputs = inputs::find(name).map_err(BuildError::failed)?;
    let laid_out = inputs.lay_out().map_err(BuildError::failed)?;
    let mut run = |target: &str, progress: Option<Progress>| {
        let cache = kernels.path().parent().unwrap_or(kernels.path());
        let mut command = make(&["-C"])?;
        command.arg(&directory).arg(target).args([
            format!("NAME={name}"),
            format!("JOBS={threads}"),
            format!("CACHE={}", cache.display()),
        ]);
        if let Some(laid_out) = &laid_out {
            command.arg(format!("INPUTS={}", laid_out.display()));
        }
        attend(command, "", progress, on_event, interrupted)
    };
    let found = |kernel, unasked| Built {
        kernel,
        is_new: false,
        unasked,
    };
    let description = match run("describe", None) {
        Err(BuildError::Prerequisite(why)) if find(name).is_ok() => {
            let kernel = find(name).map_err(BuildError::Prerequisite)?;
            return Ok(found(kernel, Some(why)));
        }
        description => description?,
    };
    let fields: BTreeMap<&str, &str> = description
        .iter()
        .filter_map(|line| line.split_once('='))
        .collect();
    let field = |name: &str| fields.get(name).copied().unwrap_or_default();
    let entry = PathBuf::from(field("entry"));
    if let Ok(kernel) = cache::read(&entry) {
        return Ok(found(kernel, None));
    }
    check_requirements(&[name.to_owned()])?;
    let progress = Progress {
        log: field("log").into(),
        expected: field("objects").parse().unwrap_or(0),
        read_bytes: 0,
        objects: 0,
    };
    run("build", Some(progress))?;
    let kernel = cache::read(&entry).map_err(BuildError::failed)?;
    Ok(Built {
        kernel,
        is_new: true,
        unasked: None,
    })
}

/// Refuses a cache whose path make would split or expand.
fn check_place(place: &Path) -> Result<(), BuildError> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._+-@,=~".contains(c);
    if place
        .to_str()
        .is_some_and(|path| path.chars().all(is_plain))
    {
        return Ok(());
    }
    Err(BuildError::Prerequisite(format!(
        "cannot build in {}: the kernel's build takes paths of letters, digits and any of \
         /._+-@,=~; set XDG_CACHE_HOME to another directory",
        place.display()
    )))
}

/// Prepares make with only those environment variables that a build may use, so that the same
/// inputs make the same bytes. make ends when this program dies, however that happens.
fn make(arguments: &[&str]) -> Result<Command, BuildError> {
    let program = process::find("make").ok_or_else(|| {
        BuildError::Prerequisite(
            "cannot build: make is missing; install it as root: apt-get install make".into(),
        )
    })?;
    let mut command = match process::find("setpriv") {
        Some(setpriv) => {
            let mut command = Command::new(setpriv);
            command.args(["--pdeathsig", "TERM", "--"]).arg(program);
            command
        }
        None => Command::new(program),
    };
    command.env_clear();
    for name in sources::kept_environment() {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    // The last line is the message of a failed step, so make itself may print nothing after it.
    command.arg("--no-print-directory").args(arguments);
    Ok(command)
}

fn cannot_run(error: std::io::Error) -> BuildError {
    BuildError::failed(format!("cannot run make: {error}"))
}

/// Runs make to its end and returns its output lines.
fn attend(
    mut command: Command,
    input: &str,
    mut progress: Option<Progress>,
    on_event: &mut dyn FnMut(BuildEvent<'_>),
    interrupted: &dyn Fn() -> bool,
) -> Result<Vec<String>, BuildError> {
    let (reader, writer) = std::io::pipe().map_err(cannot_run)?;
    command
        .stdin(Stdio::piped())
        .stdout(writer.try_clone().map_err(cannot_run)?)
        .stderr(writer)
        // ^C at the terminal reaches only this program, which ends the other processes in order.
        .process_group(0);
    let mut child = command.spawn().map_err(cannot_run)?;
    // The command holds the write ends of the pipes.
    drop(command);
    // If make closes its standard input, its own error explains why.
    let _ = child
        .stdin
        .take()
        .map(|mut stdin| stdin.write_all(input.as_bytes()));
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        let mut lines = BufReader::new(reader).lines().map_while(Result::ok);
        lines.all(|line| sender.send(line).is_ok())
    });
    let mut said: Vec<String> = Vec::new();
    let mut is_compiling = false;
    loop {
        match lines.recv_timeout(NAP) {
            Ok(line) => {
                if let Some(step) = line.strip_prefix("==> ") {
                    is_compiling = step.starts_with("compiling");
                    on_event(BuildEvent::Step(step));
                }
                said.push(line);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if let Some(progress) = progress.as_mut().filter(|_| is_compiling) {
            on_event(progress.count());
        }
        if interrupted() {
            end(&mut child);
            return Err(BuildError::Interrupted);
        }
    }
    if child.wait().map_err(cannot_run)?.success() {
        Ok(said)
    } else {
        Err(explain(&said))
    }
}

/// Finds the cause in the output of a failed make.
fn explain(said: &[String]) -> BuildError {
    let said = || said.iter().map(String::as_str);
    let last = |prefix: &str| {
        said()
            .filter_map(|line| line.strip_prefix(prefix))
            .next_back()
    };
    if let Some(why) = last("prerequisite: ") {
        return BuildError::Prerequisite(why.to_owned());
    }
    let log = said().filter_map(|line| line.strip_prefix("  | "));
    BuildError::Failed {
        message: last("failed: ")
            .or(last("make: "))
            .unwrap_or("make failed")
            .to_owned(),
        log: log.map(str::to_owned).collect(),
    }
}

/// Ends make and everything that it started.
fn end(child: &mut Child) {
    let group = Pid::from_child(child);
    // An error means that the group has already ended.
    let _ = kill_process_group(group, Signal::TERM);
    let begin = Instant::now();
    while begin.elapsed() < GRACE && !matches!(child.try_wait(), Ok(Some(_))) {
        std::thread::sleep(Duration::from_millis(10));
    }
    // The group may outlive its first process.
    let _ = kill_process_group(group, Signal::KILL);
    let _ = child.wait();
}

/// Counts the compiled objects in a build's log. The log is read from its beginning, so that
/// objects of an interrupted build count, too.
struct Progress {
    log: PathBuf,
    expected: u64,
    read_bytes: u64,
    objects: u64,
}

impl Progress {
    fn count(&mut self) -> BuildEvent<'static> {
        let mut text = Vec::new();
        // There is no log at first.
        let _ = File::open(&self.log).and_then(|mut file| {
            file.seek(SeekFrom::Start(self.read_bytes))?;
            file.read_to_end(&mut text)
        });
        // An incomplete line is read at the next call.
        let end = text.iter().rposition(|byte| *byte == b'\n');
        let lines = &text[..end.map_or(0, |at| at + 1)];
        self.read_bytes += lines.len() as u64;
        let is_object = |line: &&[u8]| line.starts_with(b"  CC ") || line.starts_with(b"  AS ");
        let objects = lines.split(|byte| *byte == b'\n').filter(is_object);
        self.objects += objects.count() as u64;
        BuildEvent::Compiled {
            objects: self.objects,
            expected: self.expected.max(self.objects),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(
        script: &str,
        progress: Option<Progress>,
    ) -> (Result<Vec<String>, BuildError>, Vec<String>, u64) {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let (mut steps, mut counted) = (Vec::new(), 0);
        let mut on_event = |event: BuildEvent<'_>| match event {
            BuildEvent::Step(what) => steps.push(what.to_owned()),
            BuildEvent::Compiled { objects, .. } => counted = objects,
        };
        let result = attend(command, "", progress, &mut on_event, &|| false);
        (result, steps, counted)
    }

    #[test]
    fn compiled_objects_are_counted_over_interrupted_builds() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("build.log");
        std::fs::write(&log, "  CC      a.o\n  LD      b\n  AS      c.o\n").unwrap();
        let script = format!(
            "echo '  CC [M]  d.o' >>{}; echo '==> compiling'; echo plain",
            log.display()
        );
        let progress = Progress {
            log,
            expected: 5,
            read_bytes: 0,
            objects: 0,
        };
        let (said, steps, counted) = run(&script, Some(progress));
        assert_eq!((steps, counted), (vec!["compiling".to_owned()], 3));
        assert_eq!(said.unwrap(), ["==> compiling", "plain"]);
    }

    #[test]
    fn a_failure_is_reported_with_the_last_lines_of_the_log() {
        let script = "echo unseen; echo 'failed: no hunk' >&2; echo '  | #1' >&2; exit 2";
        let expected = BuildError::Failed {
            message: "no hunk".into(),
            log: vec!["#1".into()],
        };
        assert_eq!(run(script, None).0, Err(expected));
        let script = "echo 'prerequisite: no bc' >&2; exit 2";
        let expected = BuildError::Prerequisite("no bc".into());
        assert_eq!(run(script, None).0, Err(expected));
    }
}
