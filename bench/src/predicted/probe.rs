//! Copies by the probe, as `toll` has it make them.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use toll_wire::{CacheState, CopyMethod, CopyRequest, Outcome, Request, Sink, Source, Workload};
use xxhash_rust::xxh3::xxh3_64;

use super::Case;
use crate::process::command;

/// Copies that one probe makes. Each takes less than a millisecond, so that
/// also on a busy machine most of them run undisturbed.
const ITERATIONS: u32 = 10;

impl Case {
    /// Bytes of one copy.
    pub(super) fn size_bytes(self) -> usize {
        match self {
            Self::ByteToNull | Self::ByteToFile => 1 << 10,
            Self::PageToNull => 4 << 20,
        }
    }

    /// The way as it is.
    pub(super) fn method(self) -> CopyMethod {
        match self {
            Self::ByteToNull | Self::ByteToFile => CopyMethod::Byte,
            Self::PageToNull => CopyMethod::Page,
        }
    }

    fn sink(self) -> Sink {
        match self {
            Self::ByteToFile => Sink::File,
            Self::ByteToNull | Self::PageToNull => Sink::Null,
        }
    }
}

/// The probe, and a directory with what it copies.
pub(super) struct Probe {
    program: PathBuf,
    directory: PathBuf,
}

impl Probe {
    /// Writes what is to be copied.
    pub(super) fn new(program: &Path, directory: &Path) -> Result<Self, String> {
        let probe = Self {
            program: program.to_owned(),
            directory: directory.to_owned(),
        };
        let largest = super::CASES.map(Case::size_bytes).into_iter().max();
        let source = probe.source();
        std::fs::write(&source, noise(largest.unwrap_or(0)))
            .map_err(|error| format!("cannot write {}: {error}", source.display()))?;
        Ok(probe)
    }

    /// What is copied.
    pub(super) fn source(&self) -> PathBuf {
        self.directory.join("source")
    }

    /// The line that asks for some copies.
    pub(super) fn request(
        &self,
        case: Case,
        method: CopyMethod,
        buffer_bytes: Option<u64>,
    ) -> String {
        let content = noise(case.size_bytes());
        let workload = Workload::Copy(CopyRequest {
            method,
            source: Source::File {
                path: self.source(),
                xxh3: xxh3_64(&content),
            },
            sink: case.sink(),
            cache: CacheState::Warm,
            size_bytes: content.len() as u64,
            buffer_bytes,
            directory: self.directory.clone(),
        });
        let request = Request {
            iterations: ITERATIONS,
            warmup_iterations: 1,
            ..Request::new(workload)
        };
        toll_wire::encode(&request) + "\n"
    }

    /// Has it make some copies, untraced: their durations in nanoseconds.
    pub(super) fn durations_ns(&self, request: &str) -> Result<Vec<f64>, String> {
        let answer = answer(&mut command(&self.program), request)?;
        let answer = toll_wire::decode_response(answer.trim_end())
            .map_err(|error| format!("cannot read what the probe answers: {error}"))?;
        match answer.outcome {
            Outcome::Completed(data) => {
                let samples = data.samples.iter();
                Ok(samples
                    .filter_map(|sample| sample.metrics.get("duration_ns").copied())
                    .collect())
            }
            Outcome::Failed(failure) => Err(format!("the probe failed: {}", failure.message)),
        }
    }

    /// Where it is.
    pub(super) fn program(&self) -> &Path {
        &self.program
    }
}

/// Runs a command that is asked a line by its standard input, and yields what
/// it answers.
pub(super) fn answer(command: &mut Command, line: &str) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let wrong = |error: std::io::Error| format!("cannot run {name}: {error}");
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(wrong)?;
    let input = child.stdin.take();
    // Nobody reads it if the program ended at once, which its status tells.
    let _ = input.map(|mut input| input.write_all(line.as_bytes()));
    let output = child.wait_with_output().map_err(wrong)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    Err(format!(
        "{name} failed ({}): {}",
        output.status,
        complaint.trim()
    ))
}

/// Bytes that no file system makes smaller, always the same.
fn noise(bytes: usize) -> Vec<u8> {
    let mut rng = toll_stats::Rng::new(1);
    (0..bytes).map(|_| rng.below(256) as u8).collect()
}
