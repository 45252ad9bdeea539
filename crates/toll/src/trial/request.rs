//! From a treatment to what the probe is asked.

mod crossing;
mod files;
mod primes;
mod reclaim;
mod transfer;

use std::path::Path;
use std::str::FromStr;

use serde::de::DeserializeOwned;
use toll_wire::{
    CAPTURED_BYTES_MAX, CacheState, ChaseRequest, CommandRequest, CopyRequest, LINE_BYTES, Mapping,
    MemoryRequest, OutputPolicy, Request, Sink, Source, Workload, WriteRequest,
};

use super::files::{Files, LAID_FOR_GUESTS};
use super::guests::has_partner;
use crate::environment::{
    SourceSpec, Workspace, WorkspaceRequest, memory_limit_obstacle, memory_obstacle,
};
use crate::plan::{Plan, Treatment};
use crate::spec::adhoc::effective_shell;
use crate::spec::quantity::parse_size;
use crate::spec::{Experiment, Level, SERVED_FILE_SYSTEMS, WorkloadKind};

/// Most bytes of each of a command's outputs that are kept for metrics parsed
/// from them.
const CAPTURE_BYTES_MAX: u32 = 1 << 20;

/// File system of a workload that names none.
const DEFAULT_FILE_SYSTEM: &str = "work";
/// Size of a copy that names none, in bytes.
const DEFAULT_COPY_BYTES: u64 = 16 << 20;
/// Input of a write that names none, in bytes: as published by timewrite.
const DEFAULT_INPUT_BYTES: u64 = 128 << 10;
/// Buffer of a write that names none, in bytes.
const DEFAULT_WRITE_BUFFER_BYTES: u64 = 4096;
/// Buffer of a work on memory that names none, in bytes.
const DEFAULT_MEMORY_BYTES: u64 = 256 << 20;
/// Steps of a work on memory that names none.
const DEFAULT_STEPS: u64 = 1 << 16;
/// Size of a chase that names none, in bytes.
const DEFAULT_CHASE_BYTES: u64 = 16 << 20;
/// Accesses of a chase that names none.
const DEFAULT_ACCESSES: u64 = 1 << 20;

/// Least default of a limit on memory, in bytes.
const LIMIT_BYTES_MIN: u64 = 64 << 20;

/// A treatment's parameters, looked up by name.
pub struct TrialRequest<'a> {
    experiment: &'a Experiment,
    treatment: &'a Treatment,
}

impl<'a> TrialRequest<'a> {
    /// The parameters of a treatment.
    pub fn new(experiment: &'a Experiment, treatment: &'a Treatment) -> Self {
        Self {
            experiment,
            treatment,
        }
    }

    fn level(&self, name: &str) -> Option<&Level> {
        let varied = self.treatment.levels.get(name);
        varied.or_else(|| self.experiment.fixed(name))
    }

    fn bytes(&self, name: &str, default: u64) -> Result<u64, String> {
        self.level(name)
            .map_or(Ok(default), |level| parse_size(&level.text))
    }

    /// A size in whole cache lines, rounded down.
    fn line_bytes(&self, name: &str, default: u64) -> Result<u64, String> {
        Ok(self.bytes(name, default)? / LINE_BYTES * LINE_BYTES)
    }

    fn count(&self, name: &str, default: u64) -> Result<u64, String> {
        let Some(level) = self.level(name) else {
            return Ok(default);
        };
        match level.number {
            // Counts are checked to be whole and far below 2^53.
            Some(number) if number >= 0.0 => Ok(number as u64),
            _ => Err(format!(
                "cannot set {name} to {:?}: it is no number",
                level.text
            )),
        }
    }

    /// A wire word; experiment files use the words of the wire.
    fn word<T: DeserializeOwned>(&self, name: &str, default: &str) -> Result<T, String> {
        let text = self.level(name).map_or(default, |level| &level.text);
        serde_json::from_value(serde_json::Value::String(text.to_owned()))
            .map_err(|error| format!("cannot set {name} to {text:?}: {error}"))
    }

    /// The file system that the treatment works on, as a workspace knows it.
    pub fn file_system(&self) -> String {
        let level = self.level("fs");
        let name = level.map_or(DEFAULT_FILE_SYSTEM, |level| &level.text);
        if !SERVED_FILE_SYSTEMS.contains(&name) {
            return name.to_owned();
        }
        let cache = self.level("mount_cache").map(|cache| cache.text.clone());
        let round_trip = self.level("round_trip_ms").filter(|ms| ms.text != "0");
        let round_trip = round_trip.map(|ms| format!("{}ms", ms.text));
        let parts = [Some(name.to_owned()), cache, round_trip];
        parts.into_iter().flatten().collect::<Vec<_>>().join(":")
    }

    /// Why this machine has not the memory for the treatment, if it has not. A
    /// guest has its own, and what is too much for it is a failed trial.
    pub fn memory_obstacle(&self) -> Option<String> {
        if self.is_in_guest() {
            return None;
        }
        let bytes = match self.experiment.workload.kind {
            WorkloadKind::Reclaim if !self.is_published_set() => return self.reclaim_obstacle(),
            WorkloadKind::Reclaim => self.line_bytes("buffer", DEFAULT_MEMORY_BYTES).ok()?,
            WorkloadKind::Memory => self.line_bytes("buffer", DEFAULT_MEMORY_BYTES).ok()?,
            // The order of the cycle is kept beside it, 4 bytes a line.
            WorkloadKind::Chase => {
                let size = self.line_bytes("size", DEFAULT_CHASE_BYTES).ok()?;
                size + size / 16
            }
            _ => return None,
        };
        if let Some(limit_bytes) = self.memory_limit() {
            // All of it may be in use at once, and what is beyond is swapped.
            return memory_limit_obstacle().or_else(|| memory_obstacle(limit_bytes, "none"));
        }
        // A shared file's pages can always go back to the file.
        let needed = match self.mapping() {
            "file-shared" => 0,
            _ => bytes,
        };
        let huge_pages = self.level("huge_pages").map_or("none", |level| &level.text);
        memory_obstacle(needed, huge_pages)
    }

    /// The limit on memory of a trial on this machine that is under pressure, in
    /// bytes.
    pub fn memory_limit(&self) -> Option<u64> {
        let is_pressed = match self.experiment.workload.kind {
            WorkloadKind::Reclaim if !self.is_published_set() => self.level("limit").is_some(),
            WorkloadKind::Memory | WorkloadKind::Reclaim => self.is_competing(),
            _ => false,
        };
        // The limit of a guest is its memory.
        if !is_pressed || self.is_in_guest() {
            return None;
        }
        let buffer = self.line_bytes("buffer", DEFAULT_MEMORY_BYTES).ok()?;
        // As published: a machine with twice the buffer.
        let default = (2 * buffer).max(LIMIT_BYTES_MIN);
        self.bytes("limit", default).ok()
    }

    fn mapping(&self) -> &str {
        self.level("mapping")
            .map_or("anonymous", |level| &level.text)
    }

    /// The request for one trial, which draws from `seed`.
    ///
    /// # Errors
    /// If the file system or the memory cannot be had here, with the reason.
    pub(super) fn build(
        &self,
        files: Files<'_>,
        workspace: &Workspace,
        seed: u64,
    ) -> Result<Request, String> {
        if let Some(reason) = self.memory_obstacle() {
            return Err(reason);
        }
        if let Some(limit_bytes) = self.memory_limit() {
            workspace.memory_limit(limit_bytes)?;
        }
        let directory = files.directory(&self.file_system())?;
        let workload = match self.experiment.workload.kind {
            WorkloadKind::Copy => self.copy(files, &directory)?,
            WorkloadKind::Write => Workload::Write(WriteRequest {
                directory,
                buffer_bytes: self.bytes("buffer", DEFAULT_WRITE_BUFFER_BYTES)?,
                input_bytes: self.bytes("input", DEFAULT_INPUT_BYTES)?,
                durability: self.word("durability", "none")?,
                placement: self.word("placement", "overwrite")?,
            }),
            WorkloadKind::Command => self.command(files),
            WorkloadKind::Memory => self.memory(files, seed)?,
            WorkloadKind::Reclaim if self.is_published_set() => self.memory(files, seed)?,
            WorkloadKind::Reclaim => self.reclaim(files, &directory, seed)?,
            WorkloadKind::Chase => Workload::Chase(ChaseRequest {
                size_bytes: self.line_bytes("size", DEFAULT_CHASE_BYTES)?,
                huge_pages: self.word("huge_pages", "none")?,
                accesses: self.count("accesses", DEFAULT_ACCESSES)?,
                seed,
            }),
            WorkloadKind::Primes => self.primes(seed)?,
            WorkloadKind::Crossing => self.crossing()?,
            WorkloadKind::Transfer => self.transfer(files, &directory)?,
            WorkloadKind::Files => self.files(files, &directory, seed)?,
        };
        Ok(Request {
            iterations: self.experiment.run.iterations,
            warmup_iterations: self.experiment.run.warmup_iterations,
            counters: self.experiment.counters.clone(),
            ..Request::new(workload)
        })
    }

    fn copy(&self, files: Files<'_>, directory: &Path) -> Result<Workload, String> {
        let size_bytes = self.bytes("size", DEFAULT_COPY_BYTES)?;
        let source = match self.source() {
            "zero" => Source::Zero,
            _ => {
                let file = files.source(&self.file_system(), SourceSpec::random(size_bytes))?;
                Source::File {
                    path: file.path,
                    xxh3: file.xxh3,
                }
            }
        };
        Ok(Workload::Copy(CopyRequest {
            method: self.word("method", "swept")?,
            source,
            sink: self.word::<Sink>("sink", "null")?,
            cache: self.word::<CacheState>("cache", "warm")?,
            size_bytes,
            buffer_bytes: self
                .level("buffer")
                .map(|l| parse_size(&l.text))
                .transpose()?,
            directory: directory.to_owned(),
        }))
    }

    fn memory(&self, files: Files<'_>, seed: u64) -> Result<Workload, String> {
        let buffer_bytes = self.line_bytes("buffer", DEFAULT_MEMORY_BYTES)?;
        let file = || files.zeros(&self.file_system(), buffer_bytes);
        Ok(Workload::Memory(MemoryRequest {
            addressing: self.word("addressing", "published")?,
            order: self.word("order", "sequential")?,
            mapping: match self.mapping() {
                "file-private" => Mapping::FilePrivate(file()?),
                "file-shared" => Mapping::FileShared(file()?),
                _ => Mapping::Anonymous,
            },
            initialisation: self.word("initialisation", "none")?,
            huge_pages: self.word("huge_pages", "none")?,
            advice: self.word("advice", "none")?,
            cache: match self.experiment.workload.kind {
                // The initialisation brings the pages in. All of them warm before
                // is more than a kernel short of memory can promise.
                WorkloadKind::Reclaim => CacheState::Cold,
                _ => self.word("cache", "warm")?,
            },
            buffer_bytes,
            steps: self.count("steps", DEFAULT_STEPS)?,
            competitor: self.competitor(),
            seed,
        }))
    }

    fn source(&self) -> &str {
        self.level("source").map_or("file", |level| &level.text)
    }

    fn command(&self, files: Files<'_>) -> Workload {
        let spec = &self.experiment.workload;
        let command = self.expand(self.template(), files);
        let needs_output = !self.experiment.parsed_metrics.is_empty();
        Workload::Command(CommandRequest {
            shell: effective_shell(&spec.shell, &command),
            command,
            prepare: spec.prepare.as_deref().map(|text| self.expand(text, files)),
            output: match spec.output.as_str() {
                "null" => OutputPolicy::Null,
                "pipe" => OutputPolicy::Pipe,
                file => OutputPolicy::File(self.expand(file, files).into()),
            },
            capture_bytes_max: if needs_output {
                self.capture_bytes()
            } else {
                0
            },
            ignore_failure: spec.ignore_failure,
            directory: None,
        })
    }

    /// Both outputs of all iterations together have to fit.
    fn capture_bytes(&self) -> u32 {
        let outputs = 2 * u64::from(self.experiment.run.iterations);
        let share = CAPTURED_BYTES_MAX / outputs;
        u32::try_from(share)
            .unwrap_or(u32::MAX)
            .min(CAPTURE_BYTES_MAX)
    }

    fn template(&self) -> &str {
        let commands = &self.experiment.workload.commands;
        let name = self.treatment.levels.get("command");
        let chosen = name.and_then(|level| commands.get(&level.text));
        chosen
            .or_else(|| commands.values().next())
            .map_or("", String::as_str)
    }

    /// Fills in `{factor}` and `{workdir}`; other braces stay, since shells
    /// and awk have uses of their own for them. A level's text is not itself
    /// expanded.
    fn expand(&self, template: &str, files: Files<'_>) -> String {
        let mut expanded = String::new();
        let mut rest = template;
        while let Some(open) = rest.find('{') {
            expanded.push_str(&rest[..open]);
            let after = &rest[open + 1..];
            let value = after.find('}').and_then(|close| {
                let name = &after[..close];
                let value = match name {
                    "workdir" => {
                        let directory = files.directory(&self.file_system());
                        directory.map_or_else(|_| String::new(), |d| d.display().to_string())
                    }
                    _ => self.level(name)?.text.clone(),
                };
                Some((value, close))
            });
            match value {
                Some((value, close)) => {
                    expanded.push_str(&value);
                    rest = &after[close + 1..];
                }
                None => {
                    expanded.push('{');
                    rest = after;
                }
            }
        }
        expanded.push_str(rest);
        expanded
    }

    /// A command to be run around the treatment's trials, such as its set-up.
    pub fn side_command(&self, template: &str, workspace: &Workspace) -> Request {
        Request::new(Workload::Command(CommandRequest {
            command: self.expand(template, Files::Host(workspace)),
            shell: toll_wire::ShellChoice::Program("sh".into()),
            prepare: None,
            output: OutputPolicy::Null,
            capture_bytes_max: 0,
            ignore_failure: false,
            directory: None,
        }))
    }
}

/// What the trials of a plan need of a work directory.
///
/// # Errors
/// If a size of the plan cannot be read.
pub fn workspace_request(experiment: &Experiment, plan: &Plan) -> Result<WorkspaceRequest, String> {
    let mut request = WorkspaceRequest::default();
    for treatment in &plan.treatments {
        let trial = TrialRequest::new(experiment, treatment);
        request.memory_limits.extend(trial.memory_limit());
        let mut file_system = trial.file_system();
        if let Some(boot) = treatment.boot() {
            file_system = LAID_FOR_GUESTS.to_owned();
            request.has_guest_pairs |= has_partner(&boot);
            let swap = Some(trial.bytes("swap", 0)?);
            request.guest_swap_bytes = request.guest_swap_bytes.max(swap);
        }
        if !request.file_systems.contains(&file_system) {
            request.file_systems.push(file_system.clone());
        }
        match experiment.workload.kind {
            WorkloadKind::Copy if trial.source() == "file" => {
                let size = trial.bytes("size", DEFAULT_COPY_BYTES)?;
                request.add_source(&file_system, SourceSpec::random(size));
                request.scratch_bytes = request.scratch_bytes.max(size);
            }
            WorkloadKind::Copy => {
                let size = trial.bytes("size", DEFAULT_COPY_BYTES)?;
                request.scratch_bytes = request.scratch_bytes.max(size);
            }
            WorkloadKind::Write => {
                let input = trial.bytes("input", DEFAULT_INPUT_BYTES)?;
                request.scratch_bytes = request.scratch_bytes.max(input);
            }
            WorkloadKind::Transfer => trial.add_transfer_files(&mut request)?,
            WorkloadKind::Files => {
                request.scratch_bytes = request.scratch_bytes.max(trial.files_bytes()?);
            }
            WorkloadKind::Reclaim if !trial.is_published_set() => {
                trial.add_reclaim_files(&mut request)?;
            }
            WorkloadKind::Memory | WorkloadKind::Reclaim if trial.mapping() != "anonymous" => {
                let buffer = trial.line_bytes("buffer", DEFAULT_MEMORY_BYTES)?;
                if !request.zeros_sizes.contains(&buffer) {
                    request.zeros_sizes.push(buffer);
                }
            }
            WorkloadKind::Command
            | WorkloadKind::Memory
            | WorkloadKind::Reclaim
            | WorkloadKind::Chase
            | WorkloadKind::Primes
            | WorkloadKind::Crossing => {}
        }
    }
    Ok(request)
}

/// Finds a parsed metric's number in an output.
///
/// # Errors
/// If the pattern is not there, or its group is no number.
pub(super) fn parse_metric(name: &str, pattern: &str, output: &str) -> Result<f64, String> {
    let wrong = |why: &str| format!("cannot parse {name} from the command's output: {why}");
    let pattern = regex::Regex::new(pattern).map_err(|error| wrong(&error.to_string()))?;
    let found = pattern
        .captures(output)
        .and_then(|captures| captures.get(1))
        .ok_or_else(|| wrong("the pattern does not match"))?;
    let number = f64::from_str(found.as_str().trim())
        .map_err(|_| wrong(&format!("{:?} is no number", found.as_str())))?;
    match number.is_finite() {
        true => Ok(number),
        false => Err(wrong("it is not finite")),
    }
}
