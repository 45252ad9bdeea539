//! `--store`: the file in which runs are kept.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use toll_system::kept_files;

/// The arguments of a verb that reads or writes runs.
#[derive(Debug, Args)]
pub struct WithStore<T: Args> {
    /// File in which runs are kept [default: $TOLL_STORE, else
    /// $XDG_DATA_HOME/toll/runs.sqlite]
    #[arg(long, global = true, value_name = "FILE")]
    store: Option<PathBuf>,
    #[command(flatten)]
    arguments: T,
}

impl<T: Args> WithStore<T> {
    /// Does the verb's work. `store` is the file that was named before the verb; a file named after
    /// the verb takes precedence.
    pub fn run(
        self,
        store: Option<PathBuf>,
        work: impl FnOnce(&T, &Path) -> anyhow::Result<ExitCode>,
    ) -> anyhow::Result<ExitCode> {
        let store = self.store.or(store);
        let store = store.map_or_else(toll_system::paths::store, Ok);
        let store = store.map_err(anyhow::Error::msg)?;
        kept_files::keep_store(&store);
        work(&self.arguments, &store)
    }
}
