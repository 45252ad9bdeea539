//! What to measure on the nodes of a cluster, and the directory of a submission.
//!
//! | path | what |
//! |---|---|
//! | `submission.json` | [`Submission`] |
//! | `measure.sh` | the job's script, which starts `toll fleet work` |
//! | `job.json` | the Kubernetes job |
//! | `bin/` | the programs that measure |
//! | `experiments/` | the user's experiment files |
//! | `nodes/NODE/NAME.sqlite`, `nodes/NODE/NAME.json` | an experiment on a node: the store, and the run as a document |
//! | `logs/NODE.log` | the output of the node's jobs |
//! | `tables/` | the tables that `toll fleet fetch` writes |

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use toll_system::bounded::text_of;
use toll_system::private_directory::check_trusted;

/// Size of the largest `submission.json` that is read, in bytes.
const SUBMISSION_BYTES_MAX: u64 = 16 << 20;

/// Version of `submission.json` that this program reads and writes.
const VERSION: u32 = 1;

/// A submission, as stored in `submission.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Submission {
    version: u32,
    /// Experiments, each measured in its own run.
    pub experiments: Vec<PlannedExperiment>,
    /// Options of `toll run` for all experiments.
    pub run_options: Vec<String>,
    pub scheduler: Scheduler,
}

/// An experiment to measure on each node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedExperiment {
    /// The experiment's name, which also names its files.
    pub name: String,
    /// File below `experiments/`; `None` for a built-in experiment.
    pub file: Option<String>,
}

/// What runs the jobs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Scheduler {
    /// Slurm: options of sbatch, and a job array for the submission and for each retry.
    Slurm {
        options: Vec<String>,
        arrays: Vec<JobArray>,
    },
    /// An indexed job for this number of nodes.
    Kubernetes { nodes: u32 },
    /// The user starts the script on each machine.
    Script,
}

/// A Slurm job array.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobArray {
    pub job: u64,
    /// The node of each task.
    pub nodes: Vec<String>,
}

impl Submission {
    pub fn new(
        experiments: Vec<PlannedExperiment>,
        run_options: Vec<String>,
        scheduler: Scheduler,
    ) -> Self {
        Self {
            version: VERSION,
            experiments,
            run_options,
            scheduler,
        }
    }

    /// All strings that name a file in the directory.
    fn names(&self) -> impl Iterator<Item = &str> {
        let nodes = match &self.scheduler {
            Scheduler::Slurm { arrays, .. } => arrays.as_slice(),
            Scheduler::Kubernetes { .. } | Scheduler::Script => &[],
        };
        let nodes = nodes.iter().flat_map(|array| &array.nodes);
        let files = self.experiments.iter().filter_map(|one| one.file.as_ref());
        let experiments = self.experiments.iter().map(|one| &one.name);
        nodes.chain(files).chain(experiments).map(String::as_str)
    }
}

/// Whether a string is a plain file name: not a path, not hidden, and not an option.
fn is_name(text: &str) -> bool {
    !text.is_empty() && !text.starts_with(['.', '-']) && !text.contains(['/', '\0', '\n'])
}

/// The directory of a submission.
#[derive(Debug, Clone)]
pub struct FleetDirectory(PathBuf);

impl FleetDirectory {
    /// Returns a directory by its absolute path, since jobs start in another directory.
    ///
    /// # Errors
    ///
    /// If the path has characters that are special in a script or in Slurm's file names.
    pub fn at(path: &Path) -> anyhow::Result<Self> {
        let cannot = |why: &str| anyhow::anyhow!("cannot use {}: {why}", path.display());
        let absolute = std::path::absolute(path).map_err(|error| cannot(&error.to_string()))?;
        let is_plain = |c: char| c.is_alphanumeric() || "/._-+,:@=".contains(c);
        if absolute
            .to_str()
            .is_some_and(|text| text.chars().all(is_plain))
        {
            Ok(Self(absolute))
        } else {
            Err(cannot(
                "its path has characters that are special in job scripts; name a directory whose \
                 path has only letters, digits and / . _ - + , : @ =",
            ))
        }
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn script(&self) -> PathBuf {
        self.0.join("measure.sh")
    }

    pub fn job(&self) -> PathBuf {
        self.0.join("job.json")
    }

    pub fn programs(&self) -> PathBuf {
        self.0.join("bin")
    }

    pub fn experiments(&self) -> PathBuf {
        self.0.join("experiments")
    }

    pub fn nodes(&self) -> PathBuf {
        self.0.join("nodes")
    }

    pub fn logs(&self) -> PathBuf {
        self.0.join("logs")
    }

    pub fn log(&self, node: &str) -> PathBuf {
        self.logs().join(format!("{node}.log"))
    }

    pub fn tables(&self) -> PathBuf {
        self.0.join("tables")
    }

    pub fn store(&self, node: &str, experiment: &str) -> PathBuf {
        self.nodes().join(node).join(format!("{experiment}.sqlite"))
    }

    pub fn document(&self, node: &str, experiment: &str) -> PathBuf {
        self.nodes().join(node).join(format!("{experiment}.json"))
    }

    fn submission_file(&self) -> PathBuf {
        self.0.join("submission.json")
    }

    /// Refuses a directory that another user owns or can change. Does the same for `things`, which
    /// are files and directories in it.
    pub fn check_trusted(&self, setting: &'static str, things: &[PathBuf]) -> Result<(), String> {
        let things = things.iter().filter(|path| path.exists());
        let mut all = [&self.0].into_iter().chain(things);
        all.try_for_each(|path| check_trusted(path, setting))
    }

    /// Whether the directory has a submission.
    pub fn has_submission(&self) -> bool {
        self.submission_file().exists()
    }

    /// Reads the submission.
    ///
    /// # Errors
    ///
    /// If there is no submission, or it is damaged or of another version.
    pub fn submission(&self) -> anyhow::Result<Submission> {
        #[derive(Deserialize)]
        struct Head {
            version: u32,
        }
        let path = self.submission_file();
        let cannot = |why: String| anyhow::anyhow!("cannot read {}: {why}", path.display());
        let text = text_of(&path, SUBMISSION_BYTES_MAX).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                cannot("nothing was submitted from this directory; see toll fleet submit".into())
            }
            _ => cannot(error.to_string()),
        })?;
        let damaged = |error: serde_json::Error| cannot(format!("{error}; submit again"));
        let Head { version } = serde_json::from_str(&text).map_err(damaged)?;
        if version != VERSION {
            return Err(cannot(format!(
                "its version is {version}, and this toll reads {VERSION}; use {}",
                self.programs().join("toll").display()
            )));
        }
        let submission: Submission = serde_json::from_str(&text).map_err(damaged)?;
        if let Some(name) = submission.names().find(|name| !is_name(name)) {
            return Err(cannot(format!(
                "{name:?} in it leads out of the directory, or is not a name; submit again"
            )));
        }
        Ok(submission)
    }

    /// Stores a submission with `put`, which must replace the file atomically.
    pub fn keep<E: From<serde_json::Error>>(
        &self,
        submission: &Submission,
        put: impl FnOnce(&Path, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let text = serde_json::to_vec_pretty(submission)?;
        put(&self.submission_file(), &text)
    }

    /// Lists the nodes that have measured something, in order.
    ///
    /// # Errors
    /// If the directory cannot be read.
    pub fn measured_nodes(&self) -> anyhow::Result<Vec<String>> {
        let directory = self.nodes();
        let cannot =
            |error: io::Error| anyhow::anyhow!("cannot read {}: {error}", directory.display());
        let mut nodes = Vec::new();
        for entry in fs::read_dir(&directory).map_err(cannot)? {
            nodes.extend(entry.map_err(cannot)?.file_name().into_string());
        }
        nodes.sort();
        Ok(nodes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
        Ok(fs::write(path, bytes)?)
    }

    #[test]
    fn a_submission_is_read_as_it_was_kept() {
        let scratch = tempfile::tempdir().unwrap();
        let directory = FleetDirectory::at(scratch.path()).unwrap();
        let error = directory.submission().unwrap_err().to_string();
        assert!(error.contains("nothing was submitted"), "{error}");
        let array = JobArray {
            job: 7,
            nodes: vec!["a".into()],
        };
        let submission = Submission::new(
            vec![PlannedExperiment {
                name: "cat".into(),
                file: None,
            }],
            vec!["--profile=quick".into()],
            Scheduler::Slurm {
                options: vec!["--exclusive".into()],
                arrays: vec![array],
            },
        );
        directory.keep(&submission, put).unwrap();
        assert_eq!(directory.submission().unwrap(), submission);
        let newer = Submission {
            version: 2,
            ..submission
        };
        directory.keep(&newer, put).unwrap();
        let error = directory.submission().unwrap_err().to_string();
        assert!(
            error.contains("its version is 2, and this toll reads 1"),
            "{error}"
        );
    }

    #[test]
    fn a_path_that_a_script_cannot_hold_is_refused() {
        for path in ["/a b", "/a%N", "/a'b", "/a\nb"] {
            assert!(FleetDirectory::at(Path::new(path)).is_err(), "{path}");
        }
    }
}
