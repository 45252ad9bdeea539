//! Running a program.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandRequest {
    pub command: String,
    pub shell: ShellChoice,
    /// Command run before every iteration, outside the timed region, always by
    /// `sh`.
    pub prepare: Option<String>,
    /// Command run after every iteration, as `prepare` is before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conclude: Option<String>,
    /// Variables that the command and what is run around it inherit, in their order, in the
    /// place of the probe's own; those of the probe if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inherited: Option<Vec<Variable>>,
    /// Variables set for the command and what is run around it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// Numbers of the iterations, for [`ITERATION_VARIABLE`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numbering: Option<Numbering>,
    /// The command's standard input; empty if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<InputFile>,
    pub output: OutputPolicy,
    /// What the output must be: checked in an untimed run first, and counted in
    /// all others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<Content>,
    /// Keep the start of both outputs in the sample, for metrics parsed from
    /// them; at most this many bytes of each. 0 keeps nothing.
    pub capture_bytes_max: u32,
    /// Take a non-zero exit status for a measurement all the same.
    pub ignore_failure: bool,
    /// Working directory; the probe's own if absent.
    pub directory: Option<PathBuf>,
}

/// A variable with its value, as environ(7) has it: any bytes with a `=` in them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Variable {
    Text(String),
    /// What is not UTF-8.
    Bytes(Vec<u8>),
}

impl Variable {
    pub fn new(name: Vec<u8>, value: &[u8]) -> Self {
        let mut bytes = name;
        bytes.push(b'=');
        bytes.extend_from_slice(value);
        String::from_utf8(bytes).map_or_else(|error| Self::Bytes(error.into_bytes()), Self::Text)
    }

    /// Its name and value; `None` if no process can have it.
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

/// The variable by whose length the place of the stack is varied (see METHODOLOGY.md). It is the
/// probe's, and commands inherit it.
pub const PADDING_VARIABLE: &str = "TOLL_PADDING";

/// The variable that tells a command, and what is run around it, which iteration it
/// is: `0` is the first that counts, `warmup-0` the first that does not. Named as
/// hyperfine's.
pub const ITERATION_VARIABLE: &str = "HYPERFINE_ITERATION";

/// How many iterations of a command other trials run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Numbering {
    /// Warm-ups before those of this trial.
    pub warmups_before: u64,
    /// Iterations before those of this trial; absent if it is a warm-up as a whole.
    pub iterations_before: Option<u64>,
}

/// How a command line becomes a process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ShellChoice {
    /// Split into words and executed directly.
    #[default]
    None,
    /// Given to this program with `-c`.
    Program(PathBuf),
}

/// Where a measured command's standard output goes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OutputPolicy {
    /// `/dev/null`. Programs that detect it may skip work.
    #[default]
    Null,
    /// A pipe that is read to its end and dropped.
    Pipe,
    /// A pipe whose reader moves the bytes to `/dev/null` by splice(2).
    PipeSpliced,
    /// A TCP connection over loopback that is read to its end.
    Socket,
    /// A new file in this directory, which is removed after each iteration.
    NewFile(PathBuf),
    /// Truncated and written anew by each iteration.
    File(PathBuf),
}

/// A file that a measured command reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputFile {
    pub path: PathBuf,
    /// A thread of the probe writes it into a pipe that the command reads.
    pub is_piped: bool,
    /// Bring this many bytes of it into memory before every iteration.
    pub warm_bytes: Option<u64>,
}

/// Bytes that are known by their hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Content {
    pub size_bytes: u64,
    pub xxh3: u64,
}
