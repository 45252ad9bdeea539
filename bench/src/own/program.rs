//! Running `toll` to its end, and what that took.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use toll_probe::command::child;

use crate::process::{command, output};

/// The program, with directories of its own for what it keeps.
pub(super) struct Toll {
    program: PathBuf,
    kept: PathBuf,
}

/// What a program took.
pub(super) struct Took {
    pub(super) wall_ns: u64,
    pub(super) max_rss_bytes: u64,
}

impl Toll {
    pub(super) fn new(program: &Path, kept: &Path) -> Self {
        Self {
            program: program.to_owned(),
            kept: kept.to_owned(),
        }
    }

    fn command(&self, store: &Path, arguments: &[&str]) -> Command {
        let mut command = command(&self.program);
        for name in ["XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"] {
            command.env(name, self.kept.join(name));
        }
        command.arg("--store").arg(store).args(arguments);
        command
    }

    /// Runs it, and drops what it says.
    pub(super) fn run(&self, store: &Path, arguments: &[&str]) -> Result<Took, String> {
        run(self
            .command(store, arguments)
            .current_dir(&self.kept)
            .stdin(Stdio::null()))
    }

    /// Runs it, and yields what it says.
    pub(super) fn ask(&self, store: &Path, arguments: &[&str]) -> Result<String, String> {
        output(&mut self.command(store, arguments))
    }

    pub(super) fn version(&self) -> String {
        output(command(&self.program).arg("--version")).unwrap_or_else(|reason| reason)
    }
}

/// Runs a command whose output is dropped to its end.
pub(super) fn run(command: &mut Command) -> Result<Took, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let begin = Instant::now();
    let started = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let ended = started
        .and_then(|child| child::wait(&child))
        .map_err(|error| format!("cannot run {name}: {error}"))?;
    let wall_ns = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
    match ended.exit_status() {
        0 => Ok(Took {
            wall_ns,
            max_rss_bytes: ended.usage.max_rss_bytes,
        }),
        _ => Err(format!("{name} failed: {}", ended.describe())),
    }
}

/// Sum of all samples of a metric in an exported run, and how many there are.
pub(super) fn samples(exported: &str, metric: &str) -> Result<(f64, usize), String> {
    let wrong = |what: &str| format!("cannot read the exported run: {what}");
    let document: serde_json::Value =
        serde_json::from_str(exported).map_err(|error| wrong(&error.to_string()))?;
    let trials = document["trials"].as_array();
    let values: Vec<f64> = trials
        .ok_or_else(|| wrong("it has no trials"))?
        .iter()
        .filter_map(|trial| trial["samples"][metric].as_array())
        .flatten()
        .filter_map(serde_json::Value::as_f64)
        .collect();
    match values.is_empty() {
        true => Err(wrong("its trials have no samples")),
        false => Ok((values.iter().sum(), values.len())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_all_trials_are_summed() {
        let text = r#"{"trials":[{"samples":{"duration_ns":[1.0,2.5]}},{"samples":{}},
            {"samples":{"duration_ns":[4.0]}}]}"#;
        assert_eq!(samples(text, "duration_ns"), Ok((7.5, 3)));
        assert!(samples(text, "other").is_err());
        assert!(samples("{}", "other").is_err());
    }

    #[test]
    fn a_program_that_fails_is_no_measurement() {
        assert!(run(&mut command(Path::new("false"))).is_err());
        assert!(run(&mut command(Path::new("true"))).is_ok_and(|took| took.wall_ns > 0));
    }
}
