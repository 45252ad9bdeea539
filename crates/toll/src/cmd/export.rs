//! `toll export`

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use super::{Failure, output};
use crate::claim::Run;
use crate::report::{benchstat, csv, hyperfine, junit, markdown};
use crate::store::Store;
use crate::store::exchange::RunDocument;

#[derive(Debug, Args)]
pub(super) struct ExportArguments {
    /// Run: its number, the start of its identity, or `last`
    run: String,
    #[command(flatten)]
    files: ExportFiles,
}

/// Files to write; `-` is standard output.
#[derive(Debug, Args, Default)]
#[group(required = true, multiple = true)]
pub(super) struct ExportFiles {
    /// Everything, every sample included, for `toll import` and other programs
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// One line a trial, iteration and metric
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Verdicts and treatments as tables
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// Durations in the JSON of hyperfine, for its scripts
    #[arg(long, value_name = "FILE")]
    pub hyperfine: Option<PathBuf>,
    /// Durations in the text of Go's benchmarks, for benchstat
    #[arg(long, value_name = "FILE")]
    pub benchstat: Option<PathBuf>,
    /// Verdicts as a JUnit report, a test case a claim
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
}

pub(super) fn run(arguments: &ExportArguments, store: &Path) -> anyhow::Result<ExitCode> {
    let store = Store::read(store)?;
    let run = output::load_run(&store, &arguments.run)?;
    write(&run, &arguments.files)?;
    Ok(ExitCode::SUCCESS)
}

impl ExportFiles {
    /// Whether any file is named.
    pub fn any(&self) -> bool {
        self.all().iter().any(Option::is_some)
    }

    pub fn all(&self) -> [Option<&Path>; 6] {
        [
            &self.json,
            &self.csv,
            &self.markdown,
            &self.hyperfine,
            &self.benchstat,
            &self.junit,
        ]
        .map(|file| file.as_deref())
    }
}

/// Makes one format of a run.
type Writer = fn(&Run) -> anyhow::Result<String>;

/// Writes a run to the files that are named. A format that does not apply to
/// it keeps none of the others from being written.
pub(super) fn write(run: &Run, files: &ExportFiles) -> anyhow::Result<()> {
    let writers: [Writer; 6] = [
        |run| {
            let document = RunDocument::new(run.stored.clone(), run.analysis.clone());
            Ok(format!("{}\n", output::json_text(&document)?))
        },
        |run| Ok(csv::csv(&run.stored)),
        |run| Ok(markdown::markdown(run)),
        |run| hyperfine::hyperfine(run).map_err(refused),
        |run| benchstat::benchstat(run).map_err(refused),
        |run| junit::junit(run).map_err(refused),
    ];
    let mut first_failure = Ok(());
    for (path, writer) in files.all().into_iter().zip(writers) {
        let Some(path) = path else {
            continue;
        };
        let written = writer(run).and_then(|text| output::write_file(path, text.as_bytes()));
        first_failure = first_failure.and(written);
    }
    first_failure
}

/// A format that does not apply was asked for by mistake.
fn refused(reason: String) -> anyhow::Error {
    Failure::Usage(reason).into()
}
