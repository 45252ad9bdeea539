//! What people see of a run: tables for the terminal, a page for the browser,
//! Markdown for an issue, plots for a paper.
//!
//! Architecture invariant: nothing here computes what `claim` or `stats` did
//! not; this module formats, orders and groups. It does no I/O either: text and
//! bytes are returned, and `cmd` prints and writes them.

use std::fmt;

use crate::claim::model::Analysis;
use crate::store::RunRecord;

pub mod benchstat;
pub mod compare;
pub mod csv;
pub mod html;
pub mod hyperfine;
pub mod junit;
pub mod markdown;
pub mod plots;
pub mod sanitize;
mod series;
pub mod terminal;
pub(crate) mod words;

/// A stored run with what was concluded from it.
#[derive(Debug, Clone, Copy)]
pub struct ReportedRun<'a> {
    /// The run as the store keeps it.
    pub run: &'a RunRecord,
    /// What the claim stage drew from its samples.
    pub analysis: &'a Analysis,
}

/// Why a report could not be made.
#[derive(Debug)]
pub enum ReportError {
    /// The page's template did not render.
    Template(minijinja::Error),
    /// A document did not become JSON.
    Json(serde_json::Error),
    /// A format has no place for what the run holds.
    DoesNotApply {
        /// The format, as users know it.
        format: &'static str,
        /// Number of the run.
        run: i64,
        /// Why.
        reason: &'static str,
    },
    /// A plot did not become a bitmap.
    Bitmap {
        /// Name of the plot.
        plot: String,
        /// What the drawing library said.
        reason: String,
    },
}

impl fmt::Display for ReportError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Template(error) => {
                write!(
                    formatter,
                    "cannot build the report page: {error}; this is a fault in toll, please report it"
                )
            }
            Self::Json(error) => write!(formatter, "cannot write JSON: {error}"),
            Self::DoesNotApply {
                format,
                run,
                reason,
            } => {
                write!(
                    formatter,
                    "cannot write run {run} as {format}: {reason}; --json and --csv take any run"
                )
            }
            Self::Bitmap { plot, reason } => {
                write!(
                    formatter,
                    "cannot draw {plot} as PNG: {reason}; take the SVG instead"
                )
            }
        }
    }
}

impl std::error::Error for ReportError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Template(error) => Some(error),
            Self::Json(error) => Some(error),
            Self::Bitmap { .. } | Self::DoesNotApply { .. } => None,
        }
    }
}

impl From<minijinja::Error> for ReportError {
    fn from(error: minijinja::Error) -> Self {
        Self::Template(error)
    }
}

#[cfg(test)]
pub(crate) mod sample;
#[cfg(test)]
mod tests;
