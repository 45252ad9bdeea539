//! Running `toll` itself, with a store of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::process::command;

/// The program `toll` and a directory for what it keeps, removed with this
/// value. Its cache, with the kernels of guests, is the user's.
pub struct Toll {
    program: PathBuf,
    kept: PathBuf,
}

impl Toll {
    /// Makes the directory.
    ///
    /// # Errors
    /// If it cannot be made, or the program is not there.
    pub fn new(program: &Path) -> Result<Self, String> {
        let program = program
            .canonicalize()
            .map_err(|error| format!("cannot find {}: {error}", program.display()))?;
        let kept = std::env::temp_dir().join(format!("toll-bench-{}", std::process::id()));
        std::fs::create_dir(&kept)
            .map_err(|error| format!("cannot make {}: {error}", kept.display()))?;
        Ok(Self { program, kept })
    }

    /// Runs an experiment, its progress shown, and gives the run as JSON.
    ///
    /// # Errors
    /// If it fails; what it says of that was shown.
    pub fn run(&self, experiment: &str, options: &[&str]) -> Result<String, String> {
        let file = self.kept.join("experiment.toml");
        std::fs::write(&file, experiment)
            .map_err(|error| format!("cannot write {}: {error}", file.display()))?;
        let mut run = self.command();
        run.arg("run").arg(&file).args(options);
        let status = run
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status()
            .map_err(|error| format!("cannot start {}: {error}", self.program.display()))?;
        if !status.success() {
            return Err(format!("cannot make the run: toll ended with {status}"));
        }
        crate::process::output(self.command().args(["export", "last", "--json", "-"]))
    }

    fn command(&self) -> Command {
        let mut command = command(&self.program);
        command
            .env("TOLL_STORE", self.kept.join("runs.sqlite"))
            .env("XDG_STATE_HOME", &self.kept);
        command
    }
}

impl Drop for Toll {
    fn drop(&mut self) {
        // What is left lies in the directory for temporary files.
        let _ = std::fs::remove_dir_all(&self.kept);
    }
}
