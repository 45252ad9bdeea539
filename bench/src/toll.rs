//! Runs `toll` itself, with a separate directory for its files.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use serde_json::Value;

use crate::process::{command, output};

/// The program `toll` and a directory for the files that it keeps.
pub struct Toll {
    pub program: PathBuf,
    pub kept: PathBuf,
}

impl Toll {
    /// Returns a command that will run `toll`.
    pub fn command(&self, store: &Path) -> Command {
        let mut command = command(&self.program);
        for name in ["XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"] {
            command.env(name, self.kept.join(name));
        }
        // The run that started this program holds the machine's lock for both.
        command.env("TOLL_RUN_LOCK", self.kept.join("run.lock"));
        command.arg("--store").arg(store);
        command
    }

    /// Makes a run of a command or of an experiment in a store. Returns the run's wall time and
    /// the sum of its samples, both in nanoseconds, and the number of samples.
    pub fn run(&self, store: &Path, arguments: &[&str]) -> Result<(f64, f64, usize), String> {
        let begin = Instant::now();
        let run = ["run", "-q", "--no-html"];
        output(self.command(store).args(run).args(arguments))?;
        let wall_ns = begin.elapsed().as_nanos() as f64;
        let exported = output(self.command(store).args(["export", "last", "--json", "-"]))?;
        let document: Value = parse(&exported)?;
        let trials = document["trials"].as_array().map_or(&[][..], Vec::as_slice);
        let samples = trials
            .iter()
            .filter_map(|trial| trial["samples"]["duration_ns"].as_array())
            .flatten()
            .filter_map(Value::as_f64);
        Ok((wall_ns, samples.clone().sum(), samples.count()))
    }
}

/// Parses JSON that a program printed.
pub fn parse(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("cannot read the program's output: {error}"))
}

/// Removes a store and its journals, so that each run starts from the same state.
pub fn remove_store(store: &Path) {
    for ending in ["", "-wal", "-shm"] {
        let mut name = store.as_os_str().to_owned();
        name.push(ending);
        // Not all of these files need exist.
        let _ = std::fs::remove_file(name);
    }
}
