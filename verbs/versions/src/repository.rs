//! Versions of a git repository, checked out and built outside of it. The repository itself
//! is only read.
#![expect(
    clippy::disallowed_methods,
    reason = "the environment is one of two places that start processes"
)]

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use toll_host::environment::work_trees::check_out;
use toll_system::Cannot;
use toll_system::paths::versions;
use toll_system::private_directory::{LockFile, Place};
use toll_system::process;

/// Interval between checks whether a build has ended.
const POLL: Duration = Duration::from_millis(50);

/// Why a commit is missing.
const SHALLOW: &str = "the clone is shallow; run git fetch --unshallow, or fetch all of it at once \
                       (fetch-depth: 0 in GitHub's checkout)";

/// A commit, as shown to the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    pub hash: String,
    pub subject: String,
    pub author: String,
    pub date: String,
}

impl Version {
    /// The abbreviated hash, long enough to be unique in a history.
    pub fn short(&self) -> &str {
        self.hash.get(..12).unwrap_or(&self.hash)
    }
}

/// Why a version cannot be measured.
#[derive(Debug)]
pub enum BuildFailure {
    /// The version does not build; other versions may.
    OfVersion(String),
    /// Another failure, which would also affect other versions.
    Other(String),
}

/// Commits of a git repository.
#[derive(Debug, Clone)]
pub struct Repository {
    directory: PathBuf,
}

impl Repository {
    pub fn open(directory: &Path) -> Result<Self, String> {
        let directory = directory.canonicalize().cannot("open", directory)?;
        let repository = Self { directory };
        repository.git(&["rev-parse", "--git-dir"]).map_err(|why| {
            let shown = repository.directory.display();
            format!("cannot use {shown} as a git repository: {why}")
        })?;
        Ok(repository)
    }

    fn git(&self, arguments: &[&str]) -> Result<String, String> {
        process::git(&self.directory, arguments)
    }

    /// Lists `good` and all commits after it up to `bad`, along first parents.
    pub fn range(&self, good: &str, bad: &str) -> Result<Vec<Version>, String> {
        let (good, bad) = (self.hash(good)?, self.hash(bad)?);
        if good == bad {
            return Err("cannot search between a commit and itself; name two commits".into());
        }
        if self
            .git(&["merge-base", "--is-ancestor", &good, &bad])
            .is_err()
        {
            return Err(format!(
                "cannot search from {} to {}: the first is not an ancestor of the second; swap \
                 them, or start at git merge-base",
                &good[..12],
                &bad[..12]
            ));
        }
        let range = format!("{good}..{bad}");
        let after = self.git(&["rev-list", "--first-parent", "--reverse", &range])?;
        let hashes = std::iter::once(good.as_str()).chain(after.lines());
        hashes.map(|hash| self.version(hash)).collect()
    }

    /// Resolves a name to a commit.
    pub fn find(&self, name: &str) -> Result<Version, String> {
        self.version(&self.hash(name)?)
    }

    fn hash(&self, name: &str) -> Result<String, String> {
        let commit = format!("{name}^{{commit}}");
        let found = self.git(&["rev-parse", "--verify", "--end-of-options", &commit]);
        found.map_err(|_| {
            if self.is_shallow() {
                format!("cannot find the commit {name}: {SHALLOW}")
            } else {
                format!("cannot find the commit {name}; see git log")
            }
        })
    }

    /// Finds where a commit left the default branch.
    pub fn merge_base(&self, commit: &Version) -> Result<Version, String> {
        let branch = self.default_branch().ok_or(
            "cannot find the default branch: there is no origin/HEAD, main or master; name the \
             base with --base",
        )?;
        let found = self.git(&["merge-base", &branch, &commit.hash]);
        let base = found.map_err(|_| {
            let why = if self.is_shallow() {
                SHALLOW
            } else {
                "these two have no commit in common; name the base with --base"
            };
            format!("cannot find where {} left {branch}: {why}", commit.short())
        })?;
        if base == commit.hash {
            Err(format!(
                "cannot compare {} with its base: it is on {branch}; name the base with --base, \
                 such as {0}~1",
                commit.short()
            ))
        } else {
            self.version(&base)
        }
    }

    fn default_branch(&self) -> Option<String> {
        let of_origin = self.git(&["symbolic-ref", "--short", "refs/remotes/origin/HEAD"]);
        let usual = ["origin/main", "origin/master", "main", "master"];
        let usual = usual.into_iter().map(str::to_owned);
        of_origin.into_iter().chain(usual).find(|name| {
            let found = self.git(&["rev-parse", "--verify", "--quiet", name]);
            found.is_ok()
        })
    }

    /// Whether commits are missing because they were not fetched.
    pub fn is_shallow(&self) -> bool {
        let answer = self.git(&["rev-parse", "--is-shallow-repository"]);
        answer.is_ok_and(|answer| answer == "true")
    }

    /// Lists the files of the work tree that differ from the checked-out commit.
    pub fn changed_files(&self) -> Result<Vec<String>, String> {
        // git made this format for programs: no setting changes it.
        let words = [
            "status",
            "--porcelain=v2",
            "-z",
            "--no-renames",
            "--untracked-files=no",
        ];
        let listed = self.git(&words)?;
        let paths = listed.split('\0').filter_map(|entry| {
            // Number of fields for a changed file, and for an unmerged file. The path comes last
            // and may have spaces.
            let fields = match entry.get(..2)? {
                "1 " => 9,
                "u " => 11,
                _ => return None,
            };
            entry.splitn(fields, ' ').nth(fields - 1)
        });
        Ok(paths.map(str::to_owned).collect())
    }

    pub fn version(&self, hash: &str) -> Result<Version, String> {
        // Unlike git log, this command ignores the user's settings. Its output begins with a line
        // of its own.
        let format = "--format=%H%n%an <%ae>%n%as%n%s";
        let words = [
            "rev-list",
            "--max-count=1",
            format,
            "--end-of-options",
            hash,
            "--",
        ];
        let answer = self.git(&words)?;
        let mut lines = answer.lines().skip(1).map(str::to_owned);
        let mut next = || lines.next().unwrap_or_default();
        Ok(Version {
            hash: next(),
            author: next(),
            date: next(),
            subject: next(),
        })
    }

    /// Removes all versions that were built with this build command.
    pub fn remove_built(&self, build: Option<&str>) -> Result<(), String> {
        let directory = self.built(build)?.path()?;
        if directory.exists() {
            std::fs::remove_dir_all(&directory).cannot("remove", &directory)
        } else {
            Ok(())
        }
    }

    /// Returns the directory in which a version is built with a command.
    pub fn directory_of(&self, version: &Version, build: Option<&str>) -> Result<PathBuf, String> {
        Ok(self.built(build)?.path()?.join(version.short()))
    }

    /// Locks the versions that are built with a command against other searches.
    pub fn lock_built(&self, build: Option<&str>) -> Result<LockFile, String> {
        let name = format!("{}.lock", self.name_of_built(build));
        versions()?.make()?.lock_file(&name)?.ok_or_else(|| {
            "cannot build versions: another search of this repository is building them; wait for it"
                .into()
        })
    }

    fn built(&self, build: Option<&str>) -> Result<Place, String> {
        Ok(versions()?.join(&self.name_of_built(build)))
    }

    fn name_of_built(&self, build: Option<&str>) -> String {
        let made_of = format!(
            "{}\n{}",
            self.directory.display(),
            build.unwrap_or_default()
        );
        format!("{:016x}", xxhash_rust::xxh3::xxh3_64(made_of.as_bytes()))
    }

    /// Checks a version out and builds it, unless both are already done.
    pub fn prepare(
        &self,
        version: &Version,
        build: Option<&str>,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<(), BuildFailure> {
        let built = self.built(build).and_then(|place| place.make());
        let built = built.map_err(BuildFailure::Other)?;
        let directory = built.path().join(version.short());
        let done = directory.with_extension("built");
        if done.exists() {
            return Ok(());
        }
        // An interrupted build may have left a partial file.
        let removed = if directory.exists() {
            std::fs::remove_dir_all(&directory).cannot("remove", &directory)
        } else {
            Ok(())
        };
        let laid_out = removed.and_then(|()| check_out(&self.directory, &version.hash, &directory));
        laid_out.map_err(BuildFailure::Other)?;
        if let Some(command) = build {
            run_build(command, &directory, is_interrupted)?;
        }
        let marked = File::create(&done).cannot("make", &done);
        marked.map(drop).map_err(BuildFailure::Other)
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }
}

/// Runs the build of one version. The output goes to a file next to the version's directory.
pub fn run_build(
    command: &str,
    directory: &Path,
    is_interrupted: &dyn Fn() -> bool,
) -> Result<(), BuildFailure> {
    let log = directory.with_extension("log");
    let prepare = || -> Result<[Stdio; 2], String> {
        let file = File::create(&log).cannot("make", &log)?;
        let again = file.try_clone().cannot("open", &log)?;
        Ok([file.into(), again.into()])
    };
    let [output, errors] = prepare().map_err(BuildFailure::Other)?;
    let cannot = |error| BuildFailure::Other(format!("cannot run sh: {error}"));
    let mut shell = Command::new("sh");
    process::forget_repository(&mut shell);
    let mut child = shell
        .args(["-c", command])
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors)
        .process_group(0)
        .spawn()
        .map_err(cannot)?;
    let status = loop {
        if let Some(status) = child.try_wait().map_err(cannot)? {
            break status;
        }
        if is_interrupted() {
            let group = Pid::from_child(&child);
            // The build may have ended in the meantime.
            let _ = kill_process_group(group, Signal::TERM);
            child.wait().map_err(cannot)?;
            return Err(BuildFailure::Other("the build was interrupted".into()));
        }
        std::thread::sleep(POLL);
    };
    if status.success() {
        Ok(())
    } else {
        // The log is removed together with the built files.
        let last = last_lines(&log, 1);
        let last = last.first().map_or("no message", |line| line.trim());
        Err(BuildFailure::OfVersion(format!("{status}: {last}")))
    }
}

/// Returns the last non-empty lines that the build of a version printed.
pub fn last_of_build(directory: &Path, count: usize) -> Vec<String> {
    last_lines(&directory.with_extension("log"), count)
}

fn last_lines(log: &Path, count: usize) -> Vec<String> {
    let text = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let mut last: Vec<String> = lines.rev().take(count).map(str::to_owned).collect();
    last.reverse();
    last
}
