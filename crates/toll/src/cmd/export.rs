//! `toll export`: writes runs in formats for other programs.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use toll_driver::exports::{ExportFiles, Schema};
use toll_driver::over_runs::over_runs;
use toll_driver::stores;
use toll_host::store::Store;
use toll_report::words::plural;
use toll_system::{Failure, kept_files, output};

use crate::format;

#[derive(Debug, Args)]
pub(super) struct ExportArguments {
    /// Run to export: its number, the start of its identity, or `last`; --parquet alone takes
    /// several runs, and exports all runs of the store if none is named
    #[arg(value_name = "RUN")]
    runs: Vec<String>,
    #[command(flatten)]
    files: ExportFiles,
    /// Write all tables as Parquet below DIR, for query engines; other runs and machines may have
    /// tables there, too
    #[arg(long, value_name = "DIR")]
    parquet: Option<PathBuf>,
    /// Schema of hyperfine's JSON: 2 as in hyperfine 2.0, 1 as in earlier versions
    #[arg(
        long,
        value_name = "N",
        value_enum,
        default_value_t,
        requires = "hyperfine"
    )]
    hyperfine_schema: Schema,
}

pub(super) fn run(arguments: &ExportArguments, store: &Path) -> anyhow::Result<ExitCode> {
    let files = arguments.files.files();
    if files.is_empty() && arguments.parquet.is_none() {
        bail!(Failure::Usage(
            "cannot export: no output is named; name a file, as with --json FILE, or a directory \
             for --parquet"
                .into()
        ));
    }
    kept_files::check_distinct(files.iter().copied())?;
    let store = Store::read(store)?;
    if let Some(directory) = &arguments.parquet {
        let names = if arguments.runs.is_empty() {
            store
                .runs()?
                .iter()
                .map(|(run, _)| run.id.to_string())
                .collect()
        } else {
            arguments.runs.clone()
        };
        write_tables(&store, &names, directory)?;
    }
    if files.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    let [name] = arguments.runs.as_slice() else {
        bail!(Failure::Usage(
            "cannot export to one file: name one run; only --parquet takes several".into()
        ));
    };
    let run = stores::load_run(&store, name)?;
    arguments.files.write(&run, arguments.hyperfine_schema)?;
    Ok(ExitCode::SUCCESS)
}

fn write_tables(store: &Store, names: &[String], directory: &Path) -> anyhow::Result<()> {
    let mut bytes_written = 0;
    for name in names {
        let run = stores::load_run(store, name)?;
        let over = over_runs(store, &run.stored)?;
        bytes_written += toll_tables::write(directory, &run, Some(&over), output::write_file)?;
    }
    output::note(&format!(
        "wrote {} as Parquet below {} ({})",
        plural(names.len(), "run"),
        directory.display(),
        format::value(bytes_written as f64, "bytes")
    ));
    Ok(())
}
