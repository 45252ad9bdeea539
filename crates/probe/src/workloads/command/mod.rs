//! The command workload: runs a program and measures it from outside.
#![expect(
    clippy::disallowed_methods,
    reason = "programs are what this workload measures"
)]

pub mod child;
mod ends;
mod environment;
mod output;
mod search;

use std::fs::File;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use toll_wire::{
    CAPTURED_BYTES_MAX, CommandRequest, Failure, OutputPolicy, Request, Sample, ShellChoice,
    TrialData,
};

use self::child::Ended;
use self::ends::Input;
use self::environment::IterationNumbers;
use self::output::{Outputs, Receiver};
use self::search::absolute;
use crate::counters::{Counters, Inherit};
use crate::failure::{self, OrFail};
use crate::idle::IdleTime;
use crate::meter::{Recorder, put};
use crate::profile::{CommandProfiler, CommandRecording};
use crate::workloads::copy::sink::OpenSink;
use crate::{children, clock, count_mark, trial};

pub fn run(request: &Request, command: &CommandRequest) -> Result<TrialData, Failure> {
    check_capture(request, command)?;
    let runner = Runner::new(command)?;
    let missing = Counters::open(&request.counters, Inherit::OnExec)
        .missing()
        .clone();
    let ends_children = !request.may_leave_processes;
    if ends_children {
        children::adopt_orphans();
    }
    let iterate = |is_check, recorder: &mut Recorder<CommandProfiler>| {
        let sample = runner.iterate(&request.counters, is_check, recorder);
        if ends_children {
            children::end_all();
        }
        sample
    };
    let mut warmups = request.warmup_iterations;
    if command.expected.is_some() {
        iterate(true, &mut Recorder::Nothing)?;
        warmups = warmups.saturating_sub(1);
    }
    let mut numbers = IterationNumbers::new(command.numbering, warmups);
    for _ in 0..warmups {
        numbers.begin();
        iterate(false, &mut Recorder::Nothing)?;
    }
    let mut recorder = Recorder::new(request.recording, || Ok(CommandProfiler::default()))?;
    let data = trial::repeat(0, request.iterations, || {
        numbers.begin();
        iterate(false, &mut recorder)
    })?;
    Ok(TrialData {
        profile: recorder.profiler().and_then(CommandProfiler::finish),
        counters_missing: missing,
        notes: runner.notes(),
        ..data
    })
}

fn check_capture(request: &Request, command: &CommandRequest) -> Result<(), Failure> {
    const OUTPUTS: u64 = 2;
    let bytes = u64::from(request.iterations) * u64::from(command.capture_bytes_max) * OUTPUTS;
    if bytes <= CAPTURED_BYTES_MAX {
        return Ok(());
    }
    Err(failure::instrument(format!(
        "cannot keep {} bytes of each output (iterations: {}): a trial holds at most \
         {CAPTURED_BYTES_MAX} in all; capture less",
        command.capture_bytes_max, request.iterations
    )))
}

/// A command that is ready to be run repeatedly.
struct Runner<'a> {
    request: &'a CommandRequest,
    words: Vec<std::ffi::OsString>,
    /// The file that the first word resolves to. It is looked up once, so that
    /// the length of `PATH` is not measured.
    program: PathBuf,
    input: Option<Input>,
    output: OutputPolicy,
    receiver: Receiver,
}

struct Run {
    process: u32,
    start_ns: u64,
    end_ns: u64,
    /// The idle time, read right after the command's end.
    idle_after: Result<IdleTime, Failure>,
    ended: Ended,
    outputs: Outputs,
}

impl<'a> Runner<'a> {
    fn new(request: &'a CommandRequest) -> Result<Self, Failure> {
        // This comes before anything that looks at `PATH`.
        environment::set_all(request)?;
        let words = words(request)?;
        let input = request.input.as_ref().map(Input::new).transpose()?;
        let output = match &request.output {
            OutputPolicy::File(path) => OutputPolicy::File(absolute(path)?),
            other => other.clone(),
        };
        // Changed once for the probe: not every C library has the fast path of
        // `posix_spawn` for a child in another directory.
        if let Some(directory) = &request.directory {
            std::env::set_current_dir(directory).failed_with("enter", directory)?;
        }
        Ok(Self {
            request,
            program: search::program(&words[0]),
            words,
            receiver: Receiver::start(!is_piped(request))?,
            input,
            output,
        })
    }

    /// Runs the command once, with the commands before and after it.
    fn iterate(
        &self,
        counters: &[String],
        is_check: bool,
        recorder: &mut Recorder<CommandProfiler>,
    ) -> Result<Sample, Failure> {
        self.beside("prepare", self.request.prepare.as_ref())?;
        let sample = self.sample(counters, is_check, recorder);
        // Runs after a failure, too, because `conclude` may remove what the command has made.
        let concluded = self.beside("conclude", self.request.conclude.as_ref());
        sample.and_then(|sample| concluded.map(|()| sample))
    }

    /// Runs an untimed command before or after the measured one.
    fn beside(&self, verb: &str, line: Option<&String>) -> Result<(), Failure> {
        let Some(line) = line else {
            return Ok(());
        };
        let mut command = Command::new("sh");
        command
            .arg("-c")
            .arg(line)
            .stdin(open_null()?)
            .stdout(open_null()?);
        let run = self.spawn(command, false, 0, "sh")?;
        if run.ended.exit_status() == 0 {
            return Ok(());
        }
        Err(failure::failed(format!(
            "cannot {verb} by `{line}`: {}{}; run it by hand to see why",
            run.ended.describe(),
            last_words(&run.outputs)
        )))
    }

    /// Builds the command with its input and output. The caller sets an output
    /// that is captured.
    fn command(&self, sink: Option<&OpenSink>) -> Result<Command, Failure> {
        let mut command = Command::new(&self.program);
        command.arg0(&self.words[0]).args(&self.words[1..]);
        command.stdin(match &self.input {
            Some(input) => input.open()?,
            None => open_null()?,
        });
        match (&self.output, sink) {
            (_, Some(sink)) => {
                let writer = sink.writer().try_clone_to_owned();
                command.stdout(writer.failed_with("open", "a sink")?);
            }
            _ if is_piped(self.request) => {}
            (OutputPolicy::File(path), None) => {
                self.refuse_same_file(path)?;
                command.stdout(File::create(path).failed_with("open", path)?);
            }
            _ => {
                command.stdout(open_null()?);
            }
        }
        Ok(command)
    }

    /// Refuses to truncate the file that the command reads.
    fn refuse_same_file(&self, output: &Path) -> Result<(), Failure> {
        if !self
            .input
            .as_ref()
            .is_some_and(|input| input.is_file(output))
        {
            return Ok(());
        }
        Err(failure::failed(format!(
            "cannot write {}: input and output are the same file; name another output",
            output.display()
        )))
    }

    fn sample(
        &self,
        counters: &[String],
        is_check: bool,
        recorder: &mut Recorder<CommandProfiler>,
    ) -> Result<Sample, Failure> {
        let request = self.request;
        let capture = request.capture_bytes_max as usize;
        let mut sink = ends::open_sink(request, is_check)?;
        let command = self.command(sink.as_ref())?;
        let name = self.words[0].display().to_string();
        // Opened for each run, so that processes that `prepare` left running do
        // not count.
        let mut counters = Counters::open(counters, Inherit::OnExec);
        // Read before recording starts, since it may read a file.
        let idle_before = IdleTime::now()?;
        counters.start()?;
        let recording = match recorder {
            Recorder::Profile(_) => Some(CommandRecording::begin()?),
            Recorder::SystemCalls | Recorder::Nothing => None,
        };
        if let Recorder::SystemCalls = recorder {
            count_mark::begin_calls();
        }
        let run = self.spawn(command, is_piped(request), capture, &name);
        if let Recorder::SystemCalls = recorder {
            count_mark::end_calls();
        }
        if let Some(recording) = &recording {
            recording.end();
        }
        let counters = counters.stop()?;
        let mut run = run?;
        if let Some(received_ns) = sink.as_mut().map(ends::finish).transpose()?.flatten() {
            run.end_ns = run.end_ns.max(received_ns);
            run.idle_after = IdleTime::now();
        }
        if let (Recorder::Profile(profiler), Some(recording)) = (recorder, recording) {
            profiler.add(recording, run.process, run.start_ns, run.end_ns);
        }
        self.check_status(&run)?;
        if let (Some(sink), Some(expected)) = (sink, &request.expected) {
            ends::check(sink, expected, is_check)?;
        }
        let mut sample = run.ended.sample(counters);
        let idle_ns = run.idle_after.clone()?.since(idle_before)?;
        let duration_ns = (run.end_ns - run.start_ns).saturating_sub(idle_ns);
        put(&mut sample, "duration_ns", duration_ns as f64);
        put(&mut sample, "exit_status", run.ended.exit_status().into());
        if capture > 0 {
            sample.stderr = Some(run.outputs.stderr.head());
            sample.stdout = Some(match &self.output {
                OutputPolicy::File(path) => head_of(path, capture)?,
                _ => run.outputs.stdout.head(),
            });
        }
        Ok(sample)
    }

    /// Runs a command whose standard output is already set, unless it is captured.
    /// The timed region begins before the start and ends when the wait returns.
    fn spawn(
        &self,
        mut command: Command,
        has_pipe: bool,
        capture: usize,
        name: &str,
    ) -> Result<Run, Failure> {
        let mut pipes = self.receiver.open(has_pipe, capture)?;
        if let Some(stderr) = pipes.stderr.take() {
            command.stderr(stderr);
        }
        if let Some(stdout) = pipes.stdout.take() {
            command.stdout(stdout);
        }
        count_mark::begin();
        let start_ns = clock::now_ns();
        let waited = command
            .spawn()
            .map(|mut child| (child.id(), pipes.wait(&mut child)));
        let end_ns = clock::now_ns();
        count_mark::end();
        let idle_after = IdleTime::now();
        // The command holds the writing end of the sink, and a reader waits until all writing ends
        // are closed.
        drop(command);
        let outputs = pipes.finish()?;
        let (process, waited) = waited.failed_by(
            format_args!("start {name}"),
            "give a program on PATH, or use a shell",
        )?;
        let ended = waited.instrument_to(format_args!("wait for {name}"))?;
        Ok(Run {
            process,
            start_ns,
            end_ns,
            idle_after,
            ended,
            outputs,
        })
    }

    fn check_status(&self, run: &Run) -> Result<(), Failure> {
        if run.ended.exit_status() == 0 || self.request.ignore_failure {
            return Ok(());
        }
        Err(failure::failed(format!(
            "cannot measure {}: {}{}; use --ignore-failure to measure it anyway",
            self.request.command,
            run.ended.describe(),
            last_words(&run.outputs)
        )))
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = vec![
            "peak memory is at least that of toll's probe: the kernel keeps it across exec"
                .to_owned(),
        ];
        if self.request.output == OutputPolicy::Null && self.request.capture_bytes_max > 0 {
            notes.push("standard output is a pipe, since it is captured".to_owned());
        }
        notes.extend(ends::note(&self.request.output));
        notes.extend(self.input.as_ref().and_then(Input::note));
        notes
    }
}

/// Whether standard output is a pipe whose first bytes are kept.
fn is_piped(request: &CommandRequest) -> bool {
    matches!(request.output, OutputPolicy::Null | OutputPolicy::Pipe)
        && request.capture_bytes_max > 0
}

fn words(request: &CommandRequest) -> Result<Vec<std::ffi::OsString>, Failure> {
    let line = &request.command;
    match &request.shell {
        ShellChoice::Program(shell) => {
            let is_path = shell.components().count() > 1;
            let shell = if is_path {
                absolute(shell)?
            } else {
                shell.clone()
            };
            Ok(vec![shell.into(), "-c".into(), line.into()])
        }
        ShellChoice::None => match shlex::split(line) {
            Some(words) if !words.is_empty() => Ok(words.into_iter().map(Into::into).collect()),
            Some(_) => Err(failure::failed(
                "cannot measure an empty command: it has no words; give a program",
            )),
            None => Err(failure::failed(format!(
                "cannot split `{line}` into words: a quote or escape is not closed; \
                 close it or use a shell"
            ))),
        },
    }
}

/// Returns the last line of standard error, which messages append to how the command ended.
fn last_words(outputs: &Outputs) -> String {
    outputs
        .stderr
        .last_line()
        .map_or_else(String::new, |line| format!(": {line}"))
}

fn head_of(path: &Path, bytes_max: usize) -> Result<String, Failure> {
    let mut head = Vec::new();
    File::open(path)
        .and_then(|file| file.take(bytes_max as u64).read_to_end(&mut head))
        .failed_with("open", path)?;
    Ok(String::from_utf8_lossy(&head).into_owned())
}

fn open_null() -> Result<Stdio, Failure> {
    let path = Path::new("/dev/null");
    File::options()
        .read(true)
        .write(true)
        .open(path)
        .map(Stdio::from)
        .failed_with("open", path)
}
