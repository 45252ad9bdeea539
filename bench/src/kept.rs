//! What all benchmarks have in common: a document with all that was measured,
//! from which alone its table is made, and how a program ends.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::publish::publish;
use crate::run::Stop;

/// A document that is kept.
pub trait Kept: Serialize + DeserializeOwned {
    /// Version of the format that this program writes and reads.
    const VERSION: u32;
    /// Name of its files, without what they end in; the program is called
    /// `bench-NAME`.
    const NAME: &'static str;

    /// Version of the format that it has.
    fn version(&self) -> u32;

    /// Its whole table.
    fn table(&self) -> String;

    /// Reads a document.
    ///
    /// # Errors
    /// If the text is no document of this version.
    fn parse(text: &str) -> Result<Self, String> {
        let document: Self = serde_json::from_str(text)
            .map_err(|error| format!("cannot read the document: {error}"))?;
        match document.version() {
            version if version == Self::VERSION => Ok(document),
            other => Err(format!(
                "cannot read the document: it is of version {other}, this program knows {}",
                Self::VERSION
            )),
        }
    }

    /// Reads the document of an earlier run.
    ///
    /// # Errors
    /// As [`Self::parse`], and if the file cannot be read.
    fn read(path: &Path) -> Result<Self, Stop> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        Ok(Self::parse(&text)?)
    }

    /// The document as JSON.
    ///
    /// # Panics
    /// Never: all keys of its maps are strings or names.
    fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a document is plain data")
    }
}

/// What can be asked of every benchmark.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Write the table (.md) and all that was measured (.json) into this directory
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Measure nothing: make the table of an earlier run's .json file anew
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
}

/// Makes a document, or reads that of an earlier run, and ends the program: the
/// table goes to standard output, and with a directory the files into it; or why
/// there is none goes to standard error.
pub fn conclude<D: Kept>(options: &Options, measure: impl FnOnce() -> Result<D, Stop>) -> ExitCode {
    let made = options.from.as_deref().map_or_else(measure, D::read);
    let published = made.and_then(|document| {
        let (table, json) = (document.table(), document.to_json());
        Ok(publish(D::NAME, &table, &json, options.out.as_deref())?)
    });
    match published {
        Ok(()) => ExitCode::SUCCESS,
        Err(Stop::Interrupted) => {
            tell::<D>("interrupted");
            // As the shell has it: 128 and the number of SIGINT.
            ExitCode::from(130)
        }
        Err(Stop::Failed(reason)) => {
            tell::<D>(&reason);
            ExitCode::FAILURE
        }
    }
}

/// Tells of progress.
#[expect(clippy::print_stderr, reason = "progress and errors go there")]
pub fn tell<D: Kept>(what: &str) {
    eprintln!("bench-{}: {what}", D::NAME);
}
