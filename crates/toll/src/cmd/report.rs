//! `toll report`

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use super::output;
use crate::claim::Run;
use crate::environment::paths;
use crate::report::{html, plots};
use crate::store::Store;

#[derive(Debug, Args)]
pub(super) struct ReportArguments {
    /// Runs: numbers, starts of identities, or `last`
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<String>,
    /// Write the page to this file, `-` for standard output [default: a file
    /// in $XDG_DATA_HOME/toll/reports, unless --plots is given]
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write each plot as SVG and PNG into this directory
    #[arg(long, value_name = "DIR")]
    plots: Option<PathBuf>,
}

pub(super) fn run(arguments: &ReportArguments, store: &Path) -> anyhow::Result<ExitCode> {
    let store = Store::read(store)?;
    let runs = output::load_runs(&store, &arguments.runs)?;
    if let Some(directory) = &arguments.plots {
        output::result(&write_plots(&runs, directory)?)?;
    }
    if arguments.html.is_some() || arguments.plots.is_none() {
        let path = write_page(&runs, arguments.html.as_deref())?;
        if path.as_os_str() != "-" {
            output::result(&format!("{}", path.display()))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes the page of some runs, and says where.
///
/// # Errors
/// If it cannot be made or written.
pub(super) fn write_page(runs: &[Run], path: Option<&Path>) -> anyhow::Result<PathBuf> {
    let path = path.map_or_else(
        || {
            let ids: Vec<String> = runs
                .iter()
                .map(|run| run.stored.run.id.to_string())
                .collect();
            paths::reports().join(format!("run-{}.html", ids.join("-")))
        },
        Path::to_owned,
    );
    output::write_file(&path, html::page(runs)?.as_bytes())?;
    Ok(path)
}

/// Writes all plots of some runs as SVG and PNG, and gives their paths, one a
/// line.
///
/// # Errors
/// If one cannot be drawn or written.
pub(super) fn write_plots(runs: &[Run], directory: &Path) -> anyhow::Result<String> {
    let mut paths = Vec::new();
    for run in runs {
        for (name, content) in plots::files(run)? {
            let path = directory.join(name);
            output::write_file(&path, &content)?;
            paths.push(path.display().to_string());
        }
    }
    Ok(paths.join("\n"))
}
