//! `toll report`: writes a page about runs, or their plots.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use toll_driver::over_runs::over_runs;
use toll_driver::pages::{page_path, write_plots};
use toll_driver::price_lists;
use toll_driver::stores;
use toll_host::store::Store;
use toll_report::html;
use toll_system::output;

#[derive(Debug, Args)]
pub(super) struct ReportArguments {
    /// Runs to report: numbers, starts of identities, or `last`
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
    let runs = stores::load_runs(&store, &arguments.runs)?;
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
        if let Some(prices) = price_lists::newest_list(&store, &runs[0].stored.run.machine)? {
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
