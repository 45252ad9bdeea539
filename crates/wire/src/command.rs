//! Running a program.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Parameters of [`crate::Workload::Command`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandRequest {
    /// The command line to measure.
    pub command: String,
    pub shell: ShellChoice,
    /// Command run before every iteration, outside the timed region, always by
    /// `sh`.
    pub prepare: Option<String>,
    /// Where the command's standard output goes.
    pub output: OutputPolicy,
    /// Keep the start of both outputs in the sample, for metrics parsed from
    /// them; at most this many bytes of each. 0 keeps nothing.
    pub capture_bytes_max: u32,
    /// Take a non-zero exit status for a measurement all the same.
    pub ignore_failure: bool,
    /// Working directory; the probe's own if absent.
    pub directory: Option<PathBuf>,
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
    /// Truncated and written anew by each iteration.
    File(PathBuf),
}
