//! The options of `toll bisect`.

use std::path::PathBuf;

use clap::Args;
use toll_system::Failure;

const NOTES: &str = "\
Examples:
  toll bisect v1.0..HEAD --build 'cargo build --release' '{tree}/target/release/prog input'
  toll bisect v1.0..HEAD --build make --metric max_rss_bytes '{tree}/prog'
  toll bisect v6.12..HEAD --tree ~/linux --kernel 'busybox find /'

The search covers the commits from GOOD to BAD along first parents. A commit that is needed is
checked out in the cache and built there; the repository is only read. Commits that do not build or
run are left out. If the ends differ, commits between them are measured together with both, in
random blocks, until one is probably the culprit. It is reported only after a comparison with the
commit before it in fresh blocks.

With --kernel the commits are versions of Linux. A commit that is needed is built as `toll kernel
build` does it. The command must exist in the guest. It runs under that kernel, and its instructions
are counted.

All measurements are kept as runs (see `toll list`). The same command line continues from them.";

/// Placeholder for the directory of a commit in the command.
pub(super) const TREE: &str = "{tree}";

#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub struct BisectArguments {
    /// A commit without the change and a later one with it
    #[arg(value_name = "GOOD..BAD", value_parser = parse_range)]
    pub range: (String, String),
    /// Command to measure, with {tree} for the directory of a commit; with --kernel,
    /// a command of the guest
    pub command: String,
    /// Git repository
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub tree: PathBuf,
    /// Command that builds a commit, run in its directory by sh
    #[arg(long, value_name = "COMMAND")]
    pub build: Option<String>,
    /// Boot each commit as a Linux kernel, and run the command under it
    #[arg(long, conflicts_with = "build")]
    pub kernel: bool,
    /// Metric to compare [default: duration_ns; with --kernel path_length_instructions]
    #[arg(long, value_name = "NAME")]
    pub metric: Option<String>,
    /// Fail if another run is measuring on this machine, instead of waiting for its end
    #[arg(long)]
    pub no_wait: bool,
}

impl BisectArguments {
    /// The metric that the search compares.
    pub(super) fn metric(&self) -> &str {
        let default = if self.kernel {
            "path_length_instructions"
        } else {
            "duration_ns"
        };
        self.metric.as_deref().unwrap_or(default)
    }

    /// Refuses a command that does the same for every commit.
    pub fn check(&self) -> anyhow::Result<()> {
        let names_tree = self.command.contains(TREE);
        let why = match (self.kernel, names_tree) {
            (false, false) => format!(
                "cannot tell the commits' programs apart: the command has no {TREE} in it, which \
                 stands for the directory of a commit; for commits of Linux, add --kernel"
            ),
            (true, true) => format!(
                "cannot run {TREE} in a guest: commits are not checked out there; name a command \
                 of the guest"
            ),
            _ => return Ok(()),
        };
        Err(Failure::Usage(why).into())
    }
}

fn parse_range(text: &str) -> Result<(String, String), String> {
    match text.split_once("..") {
        Some((good, bad)) if !good.is_empty() && !bad.is_empty() && !bad.starts_with('.') => {
            Ok((good.to_owned(), bad.to_owned()))
        }
        _ => Err("expected two commits, such as v1.0..HEAD".into()),
    }
}
