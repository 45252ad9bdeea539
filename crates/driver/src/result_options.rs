//! The options of `toll run` about its results.

use std::path::PathBuf;

use anyhow::bail;
use clap::Args;
use toll_core::spec::Experiment;
use toll_system::{Failure, kept_files, output};

use crate::baseline::parse_name;
use crate::exports::{RunExports, Schema};
use crate::gate::why_no_ratio;
use crate::progress::Purpose;

/// How to show and keep results.
#[derive(Debug, Clone, Default, Args)]
pub struct ResultOptions {
    #[command(flatten)]
    pub exports: RunExports,
    /// Schema of hyperfine's JSON: 2 for hyperfine 2.0, 1 for earlier versions
    #[arg(
        long,
        value_name = "N",
        value_enum,
        default_value_t,
        requires = "export-hyperfine"
    )]
    pub hyperfine_schema: Schema,
    /// Write the report to this file [default: a file in
    /// $XDG_DATA_HOME/toll/reports]
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write no report
    #[arg(long, conflicts_with = "html")]
    pub no_html: bool,
    /// Write each plot as SVG into this directory
    #[arg(long, value_name = "DIR")]
    pub plots: Option<PathBuf>,
    /// Save the runs under this name, for comparison with later runs of their experiments; only
    /// complete runs that pass --fail-on are saved
    #[arg(long, value_name = "NAME", value_parser = parse_name, conflicts_with = "dry_run")]
    pub save_baseline: Option<String>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Show no progress
    #[arg(short = 'q', long)]
    pub quiet: bool,
}

impl ResultOptions {
    /// Refuses files of a single run for several experiments, and files that cannot be written.
    /// Also refuses a JUnit report without claims or comparisons.
    pub fn check_files(&self, runs: usize, experiment: &Experiment) -> anyhow::Result<()> {
        if self.exports.junit.is_some()
            && experiment.claim_family().next().is_none()
            && let Some(reason) = why_no_ratio(experiment)
        {
            bail!(Failure::Usage(format!(
                "cannot write JUnit's XML of {}: it has no claims, and {reason}",
                experiment.name
            )));
        }
        output::check_standard_output()?;
        let files = self.exports.files();
        let named = || files.iter().copied().chain(self.html.as_deref());
        kept_files::check_distinct(named())?;
        for path in named() {
            output::check_file(path)?;
        }
        self.plots
            .as_deref()
            .map_or(Ok(()), output::check_directory)?;
        if runs > 1 && !files.is_empty() {
            bail!(Failure::Usage(
                "cannot export several experiments to one file: name one experiment, or use `toll \
                 export` afterwards"
                    .into(),
            ));
        }
        Ok(())
    }

    /// Decides how to show the progress of run `number` of `of`.
    pub fn purpose(&self, number: usize, of: usize) -> Purpose {
        if self.quiet {
            Purpose::Quiet
        } else {
            Purpose::Shown { number, of }
        }
    }
}
