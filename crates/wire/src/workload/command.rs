//! Running a program.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::work_request::WorkRequest;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandRequest {
    pub command: String,
    pub shell: ShellChoice,
    /// Command run before every iteration, outside the timed region, always by
    /// `sh`.
    pub prepare: Option<String>,
    /// Command run after every iteration, in the same way as `prepare`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conclude: Option<String>,
    /// Environment variables, in this order, for the command, `prepare` and `conclude`. If absent,
    /// these inherit the probe's own environment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inherited: Option<Vec<Variable>>,
    /// Variables set for the command, `prepare` and `conclude`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// Iteration numbers, for [`ITERATION_VARIABLE`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numbering: Option<Numbering>,
    /// The command's standard input; empty if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<InputFile>,
    pub output: OutputPolicy,
    /// Expected output. An untimed first run checks its content; all other runs only count its
    /// bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<Content>,
    /// How many bytes to keep in the sample from the start of each output (standard output and
    /// standard error). Metrics are parsed from them. 0 keeps nothing.
    pub capture_bytes_max: u32,
    /// Accept a non-zero exit status as a valid measurement.
    pub ignore_failure: bool,
    /// Working directory; the probe's own if absent.
    pub directory: Option<PathBuf>,
}

/// An environment variable with its value in the form of environ(7): any bytes that contain a `=`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Variable {
    Text(String),
    /// Bytes that are not valid UTF-8.
    Bytes(Vec<u8>),
}

impl Variable {
    pub fn new(name: Vec<u8>, value: &[u8]) -> Self {
        let mut bytes = name;
        bytes.push(b'=');
        bytes.extend_from_slice(value);
        String::from_utf8(bytes).map_or_else(|error| Self::Bytes(error.into_bytes()), Self::Text)
    }

    /// Returns the variable's name and value; `None` if no process can have such a variable.
    pub fn parts(&self) -> Option<(&[u8], &[u8])> {
        let bytes = match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
        };
        let equals = bytes.iter().position(|byte| *byte == b'=')?;
        let is_possible = equals > 0 && !bytes.contains(&0);
        is_possible.then_some((&bytes[..equals], &bytes[equals + 1..]))
    }
}

/// Environment variable whose length varies the position of the stack (see METHODOLOGY.md). It is
/// set for the probe, and commands inherit it.
pub const PADDING_VARIABLE: &str = "TOLL_PADDING";

/// Environment variable that holds the iteration number for the command, `prepare` and `conclude`:
/// `0` is the first timed iteration, `warmup-0` the first warm-up. The name is hyperfine's.
pub const ITERATION_VARIABLE: &str = "HYPERFINE_ITERATION";

/// How many iterations of the same command other trials run before this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Numbering {
    /// Number of warm-ups before this trial's warm-ups.
    pub warmups_before: u64,
    /// Number of iterations before this trial's; absent if the whole trial is a warm-up.
    pub iterations_before: Option<u64>,
}

/// How a command line becomes a process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ShellChoice {
    /// The command line is split into words and executed directly, without a shell.
    #[default]
    None,
    /// The command line is passed to this shell with `-c`.
    Program(PathBuf),
}

/// Where a measured command's standard output goes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OutputPolicy {
    /// `/dev/null`. Programs that detect it may skip work.
    #[default]
    Null,
    /// A pipe that is read to its end; the bytes are dropped.
    Pipe,
    /// A pipe whose reader moves the bytes to `/dev/null` by splice(2).
    PipeSpliced,
    /// A TCP connection over loopback that is read to its end.
    Socket,
    /// A new file in this directory; the file is removed after each iteration.
    NewFile(PathBuf),
    /// This file, truncated and rewritten by each iteration.
    File(PathBuf),
}

/// A file that a measured command reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputFile {
    pub path: PathBuf,
    /// Whether a thread of the probe writes the file into a pipe that the command reads.
    pub is_piped: bool,
    /// Bytes of the file to bring into memory before every iteration.
    pub warm_bytes: Option<u64>,
}

/// Length and XXH3-64 hash of the expected content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Content {
    pub size_bytes: u64,
    pub xxh3: u64,
}

impl WorkRequest for CommandRequest {
    const SURROUNDINGS: &'static [&'static str] = &["fs"];
    const STARTS_PROGRAMS: bool = true;

    /// Ignores the levels: they fill placeholders in the command's words and set no parameter.
    fn read(_levels: &[(&str, &str)]) -> Result<Self, String> {
        Ok(Self::default())
    }
}
