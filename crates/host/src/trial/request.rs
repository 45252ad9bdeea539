//! Turns a treatment into a request to the probe.

use std::path::Path;
use std::str::FromStr;

use toll_wire::{
    CAPTURED_BYTES_MAX, CommandRequest, Content, HugePages, InputFile, Mapping, OutputPolicy,
    Request, Source, Workload,
};

use super::expansion::{Expansion, sh};
use super::files::{Files, LAID_FOR_GUESTS};
use super::guests::image_bytes;
use crate::environment::{
    SourceSpec, Workspace, WorkspaceRequest, memory_limit_obstacle, memory_obstacle, variables,
};
use crate::plan::{Plan, Treatment, TreatmentParameters};
use crate::spec::adhoc::effective_shell;
use crate::spec::quantity::parse_size;
use crate::spec::{Experiment, PerCommand};

/// Maximum number of bytes that are kept of each output of a command. Metrics are parsed from them.
const CAPTURE_BYTES_MAX: u32 = 1 << 20;

/// Returns why this machine lacks the memory for a treatment; `None` if it has enough. A guest has
/// its own memory, and a trial that needs more memory fails there.
pub fn memory_shortage(parameters: &TreatmentParameters) -> Option<String> {
    if parameters.guest.is_some() {
        return None;
    }
    let huge_pages = match &parameters.workload {
        Workload::Memory(memory) => memory.huge_pages,
        Workload::Chase(chase) => chase.huge_pages,
        _ => HugePages::None,
    };
    match parameters.memory_limit() {
        // All of the limit may be in use at once, and the rest is swapped.
        Some(limit) => memory_limit_obstacle().or_else(|| memory_obstacle(limit, "none")),
        None => {
            let bytes = parameters.workload.memory_bytes()?;
            memory_obstacle(bytes, &toll_wire::word(&huge_pages))
        }
    }
}

/// Builds the request for one trial of a treatment, with random numbers from `seed`.
pub(super) fn request(
    experiment: &Experiment,
    treatment: &Treatment,
    workspace: &Workspace,
    seed: u64,
) -> Result<Request, String> {
    let parameters = TreatmentParameters::new(experiment, treatment)?;
    if let Some(reason) = memory_shortage(&parameters) {
        return Err(reason);
    }
    if let Some(limit_bytes) = parameters.memory_limit() {
        workspace.memory_limit(limit_bytes)?;
    }
    let files = match parameters.guest {
        Some(_) => Files::Guest(workspace),
        None => Files::Host(workspace),
    };
    let workload = filled(experiment, treatment, parameters, files, seed)?;
    Ok(Request {
        iterations: experiment.run.iterations,
        warmup_iterations: experiment.run.warmup_iterations,
        counters: experiment.counters.clone(),
        ..Request::new(workload)
    })
}

/// Completes a treatment's work with the files, commands and seed of one trial.
fn filled(
    experiment: &Experiment,
    treatment: &Treatment,
    parameters: TreatmentParameters,
    files: Files<'_>,
    seed: u64,
) -> Result<Workload, String> {
    let file_system = parameters.file_system();
    let directory = files.directory(&file_system)?;
    if let Some(obstacle) = parameters.contradiction() {
        return Err(obstacle);
    }
    if parameters.workload.begins_cold()
        && let Some(obstacle) = files.cold_obstacle(&file_system)
    {
        return Err(format!("no file on {file_system} can be cold: {obstacle}"));
    }
    let source = source_of(&parameters);
    let needs = parameters.workload.disk_needs();
    let mut workload = parameters.workload;
    workload.place(&directory, seed);
    match &mut workload {
        Workload::Copy(copy) => {
            if let (Source::File { path, xxh3 }, Some(spec)) = (&mut copy.source, source) {
                let file = files.source(&file_system, spec)?;
                (*path, *xxh3) = (file.path, file.xxh3);
            }
        }
        Workload::Command(command) => {
            let expansion = Expansion {
                experiment,
                treatment,
                workdir: directory.display().to_string(),
            };
            *command = expansion.command(files, &file_system, &directory)?;
        }
        Workload::Memory(memory) => {
            if let (Mapping::FilePrivate(path) | Mapping::FileShared(path), Some(bytes)) =
                (&mut memory.mapping, needs.zeros_bytes)
            {
                *path = files.zeros(&file_system, bytes)?;
            }
        }
        Workload::Reclaim(reclaim) => {
            let zeros = needs
                .zeros_bytes
                .map(|bytes| files.zeros(&file_system, bytes));
            reclaim.stream_file = zeros.transpose()?;
        }
        Workload::Transfer(transfer) => {
            if let Some(spec) = source {
                let file = files.source(LAID_FOR_GUESTS, spec)?;
                (transfer.source, transfer.xxh3) = (file.path, file.xxh3);
            }
        }
        Workload::Boot(boot) => {
            if let Some(levels) = treatment.boot() {
                boot.image_bytes = image_bytes(&levels)?;
            }
        }
        Workload::Files(work) => work.below = files.below(&file_system)?,
        _ => {}
    }
    Ok(workload)
}

/// The file that a trial reads, if it reads one.
fn source_of(parameters: &TreatmentParameters) -> Option<SourceSpec> {
    Some(SourceSpec {
        size_bytes: parameters.workload.disk_needs().source_bytes?,
        content: parameters.surroundings.content,
    })
}

/// Builds the request for a command around a treatment's trials, such as its set-up.
pub(super) fn hook(
    experiment: &Experiment,
    treatment: &Treatment,
    template: &str,
    workspace: &Workspace,
) -> Result<Request, String> {
    let parameters = TreatmentParameters::new(experiment, treatment)?;
    let directory = workspace.directory(&parameters.file_system());
    let expansion = Expansion {
        experiment,
        treatment,
        workdir: directory.map_or_else(|_| String::new(), |d| d.display().to_string()),
    };
    Ok(Request::new(Workload::Command(CommandRequest {
        command: expansion.command_line(template, &sh())?,
        shell: toll_wire::ShellChoice::Program("sh".into()),
        inherited: Some(variables::inherited()),
        environment: expansion.environment(),
        ..CommandRequest::default()
    })))
}

impl Expansion<'_> {
    fn command(
        &self,
        files: Files<'_>,
        file_system: &str,
        directory: &Path,
    ) -> Result<CommandRequest, String> {
        let spec = &self.experiment.workload;
        let command = self.command_line(self.template(), &spec.shell)?;
        if matches!(files, Files::Host(_))
            && let Some(reason) = self.missing_program(&command)
        {
            return Err(reason);
        }
        let size_bytes = laid_bytes(self.experiment, self.treatment)?;
        let laid = size_bytes.map(|size| files.source(file_system, SourceSpec::random(size)));
        let laid = laid.transpose()?;
        let input = match self.expand(&spec.input).as_str() {
            "null" => None,
            word => Some(InputFile {
                path: laid.as_ref().map_or(word.into(), |laid| laid.path.clone()),
                is_piped: word == "pipe",
                warm_bytes: size_bytes,
            }),
        };
        let name = self.command_name();
        let each = |texts: &PerCommand| texts.get(name).map(|text| self.expand(text));
        let output = each(&spec.output).unwrap_or_else(|| "null".into());
        let output = match output.as_str() {
            "null" => OutputPolicy::Null,
            "pipe" => OutputPolicy::Pipe,
            "pipe-spliced" => OutputPolicy::PipeSpliced,
            "socket" => OutputPolicy::Socket,
            "file" => OutputPolicy::NewFile(directory.to_owned()),
            file => OutputPolicy::File(file.into()),
        };
        if spec.copies && (laid.is_none() || matches!(output, OutputPolicy::File(_))) {
            return Err(
                "cannot check the copy: `copies` needs `input = \"file\"` or \
                 `input = \"pipe\"`, and no output to a named file; use `output = \"file\"`"
                    .into(),
            );
        }
        // Both outputs of all iterations together have to fit into one answer.
        let outputs = 2 * u64::from(self.experiment.run.iterations);
        let share = u32::try_from(CAPTURED_BYTES_MAX / outputs).unwrap_or(u32::MAX);
        Ok(CommandRequest {
            shell: effective_shell(&spec.shell, &command),
            command,
            prepare: self.beside(spec.prepare.as_ref())?,
            conclude: self.beside(spec.conclude.as_ref())?,
            inherited: match files {
                Files::Host(_) => Some(variables::inherited()),
                Files::Guest(_) => None,
            },
            environment: self.environment(),
            numbering: None,
            input,
            output,
            expected: laid
                .zip(size_bytes)
                .filter(|_| spec.copies)
                .map(|(laid, size_bytes)| Content {
                    size_bytes,
                    xxh3: laid.xxh3,
                }),
            capture_bytes_max: if self.experiment.parsed_metrics.is_empty() {
                0
            } else {
                share.min(CAPTURE_BYTES_MAX)
            },
            ignore_failure: spec.ignore_failure,
            directory: None,
        })
    }
}

/// Returns the size of the file that is made as a command's input, if there is one.
fn laid_bytes(experiment: &Experiment, treatment: &Treatment) -> Result<Option<u64>, String> {
    const DEFAULT_BYTES: u64 = 16 << 20;
    let expansion = Expansion {
        experiment,
        treatment,
        workdir: String::new(),
    };
    let input = expansion.expand(&experiment.workload.input);
    if !["file", "pipe"].contains(&input.as_str()) {
        return Ok(None);
    }
    let size = treatment.levels.get("size");
    size.map_or(Ok(DEFAULT_BYTES), |size| parse_size(&size.text))
        .map(Some)
}

/// Returns what the trials of a plan need from a work directory.
pub fn workspace_request(experiment: &Experiment, plan: &Plan) -> Result<WorkspaceRequest, String> {
    let mut request = WorkspaceRequest::default();
    for treatment in &plan.treatments {
        let parameters = TreatmentParameters::new(experiment, treatment)?;
        // The treatment will be skipped, so no file has to be laid out for it.
        if memory_shortage(&parameters).is_some() {
            continue;
        }
        request.memory_limits.extend(parameters.memory_limit());
        let mut file_system = parameters.file_system();
        if let Some(guest) = &parameters.guest {
            file_system = LAID_FOR_GUESTS.to_owned();
            request.has_two_guests |= guest.has_partner() || guest.counts_instructions();
            request.guest_swap_bytes = request.guest_swap_bytes.max(Some(guest.swap_bytes));
        }
        request.add_file_system(&file_system);
        if let Some(source) = source_of(&parameters) {
            // A transfer's source is on the work directory's own file system, wherever the
            // transfer goes.
            if matches!(parameters.workload, Workload::Transfer(_)) {
                file_system = LAID_FOR_GUESTS.to_owned();
                request.add_file_system(&file_system);
            }
            request.add_source(&file_system, source);
        }
        if let Some(size) = laid_bytes(experiment, treatment)? {
            request.add_source(&file_system, SourceSpec::random(size));
            request.scratch_bytes = request.scratch_bytes.max(size);
        }
        let needs = parameters.workload.disk_needs();
        request.scratch_bytes = request.scratch_bytes.max(needs.scratch_bytes);
        let new = needs
            .zeros_bytes
            .filter(|bytes| !request.zeros_sizes.contains(bytes));
        request.zeros_sizes.extend(new);
    }
    Ok(request)
}

/// Finds a parsed metric's number in an output.
pub(super) fn parse_metric(name: &str, pattern: &str, output: &str) -> Result<f64, String> {
    let wrong = |why: &str| format!("cannot parse {name} from the command's output: {why}");
    let pattern = regex::Regex::new(pattern).map_err(|error| wrong(&error.to_string()))?;
    let found = pattern
        .captures(output)
        .and_then(|captures| captures.get(1))
        .ok_or_else(|| wrong("the pattern does not match"))?;
    let number = f64::from_str(found.as_str().trim())
        .map_err(|_| wrong(&format!("{:?} is not a number", found.as_str())))?;
    if number.is_finite() {
        Ok(number)
    } else {
        Err(wrong("it is not finite"))
    }
}
