//! `toll report`

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use super::output;
use super::over_runs::over_runs;
use super::prices::stored;
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
    /// Write each plot as SVG into this directory
    #[arg(long, value_name = "DIR")]
    plots: Option<PathBuf>,
}

pub(super) fn run(arguments: &ReportArguments, store: &Path) -> anyhow::Result<ExitCode> {
    let store = Store::read(store)?;
    let runs = output::load_runs(&store, &arguments.runs)?;
    if let Some(directory) = &arguments.plots {
        for path in write_plots(&runs, directory)? {
            output::line(&path)?;
        }
    }
    if arguments.html.is_some() || arguments.plots.is_none() {
        let ids: Vec<String> = runs
            .iter()
            .map(|one| one.stored.run.id.to_string())
            .collect();
        let default = || page_path(&format!("run-{}", ids.join("-")));
        let path = arguments.html.clone().map_or_else(default, Ok)?;
        let mut page = html::Page::default();
        if let Some(prices) = stored::newest_list(&store, &runs[0].stored.run.machine)? {
            page.add(&prices, None);
        }
        for run in &runs {
            page.add(run, Some(&over_runs(&store, &run.stored)?));
        }
        output::write_file(&path, page.render()?.as_bytes())?;
        if path.as_os_str() != "-" {
            output::line(&path.display().to_string())?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The default path of a page.
pub(super) fn page_path(name: &str) -> anyhow::Result<PathBuf> {
    let directory = paths::reports().and_then(|place| place.make());
    let directory = directory.map_err(anyhow::Error::msg)?;
    Ok(directory.path().join(format!("{name}.html")))
}

/// Writes all plots of some runs as SVG, and gives their paths.
pub(super) fn write_plots(runs: &[Run], directory: &Path) -> anyhow::Result<Vec<String>> {
    output::create_directory(directory)?;
    let mut paths = Vec::new();
    for run in runs {
        for (name, content) in plots::files(run) {
            let path = directory.join(name);
            output::write_file(&path, content.as_bytes())?;
            paths.push(path.display().to_string());
        }
    }
    Ok(paths)
}
