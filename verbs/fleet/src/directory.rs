//! The directory of a submission: the argument that names it, and the content of its files.

use std::io::BufReader;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use serde::Deserialize;
use toll_host::store::RunStatus;
use toll_host::store::exchange::DOCUMENT_BYTES_MAX;
use toll_system::bounded::open_bounded;

use crate::submission::FleetDirectory;

/// Default directory of a submission.
pub const DIRECTORY: &str = "toll-fleet";

/// The directory of a submission, as an argument.
#[derive(Debug, Args)]
pub struct Submitted {
    /// Directory of the submission
    #[arg(value_name = "DIR", default_value = DIRECTORY)]
    directory: PathBuf,
}

impl Submitted {
    pub fn open(&self) -> anyhow::Result<FleetDirectory> {
        FleetDirectory::at(&self.directory)
    }
}

/// Whether a document exists and describes a complete run.
pub fn is_complete(document: &Path) -> bool {
    #[derive(Deserialize)]
    struct Document {
        run: Run,
    }
    #[derive(Deserialize)]
    struct Run {
        status: RunStatus,
    }
    let Ok(file) = open_bounded(document, DOCUMENT_BYTES_MAX) else {
        return false;
    };
    let read: Result<Document, _> = serde_json::from_reader(BufReader::new(file));
    read.is_ok_and(|document| document.run.status == RunStatus::Complete)
}

pub fn make_directory(path: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(path).with_context(|| format!("cannot make {}", path.display()))
}
