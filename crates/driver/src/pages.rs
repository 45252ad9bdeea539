//! Files of pages and plots.

use std::path::{Path, PathBuf};

use toll_core::claim::Run;
use toll_report::plots;
use toll_system::{output, paths};

/// The default path of a page.
pub fn page_path(name: &str) -> anyhow::Result<PathBuf> {
    let directory = paths::reports().and_then(|place| place.make());
    let directory = directory.map_err(anyhow::Error::msg)?;
    Ok(directory.path().join(format!("{name}.html")))
}

/// Writes all plots of some runs as SVG, and returns their paths.
pub fn write_plots(runs: &[Run], directory: &Path) -> anyhow::Result<Vec<String>> {
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
