//! Reports of a run: tables for the terminal, a page for the browser, Markdown
//! for an issue, plots for a paper.
//!
//! Architecture invariant: this crate formats, orders and groups; it computes
//! nothing that `claim` or `stats` did not. It does no I/O either: it returns
//! text and bytes, and `cmd` prints and writes them.

pub mod benchmark_formats;
pub mod benchstat;
pub mod compare;
mod comparison;
mod comparison_table;
pub mod csv;
mod differences;
pub mod document;
mod explained;
mod footnotes;
pub mod html;
pub mod hyperfine;
pub mod junit;
mod parts;
pub mod plots;
mod run_differences;
mod series;
pub mod terminal;
mod twins;
pub mod words;

use toll_core::{claim, explain, format, plan, reason, run, spec};

/// Error message for a run that has no document of a format.
fn does_not_apply(format: &str, run: i64, reason: &str) -> String {
    format!("cannot write run {run} as {format}: {reason}; --json and --csv take any run")
}

#[cfg(test)]
mod sample;
#[cfg(test)]
mod tests;
