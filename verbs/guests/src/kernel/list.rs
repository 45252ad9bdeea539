//! `toll kernel list`: lists built kernels.

use clap::Args;
use serde::Serialize;
use toll_core::format;
use toll_document::columns;
use toll_host::environment::kernel::{KernelState, ListedKernel, find, list, names};
use toll_system::output;

const NOTES: &str = "\
Example:
  toll kernel list --json

today: guests use the kernel; stale: it was built from other sources than this toll has, or there is
a newer kernel; unusable: it is incomplete (the next toll kernel build continues an interrupted
build).";

#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub struct ListArguments {
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Listing {
    kernels: Vec<ListedKernel>,
    /// Kernels that guests cannot use until they are built.
    not_built: Vec<String>,
}

pub fn run(arguments: &ListArguments) -> anyhow::Result<()> {
    let not_built = names().into_iter().filter(|name| find(name).is_err());
    let listing = Listing {
        not_built: not_built.collect(),
        kernels: list(),
    };
    if arguments.json {
        output::json(&listing)
    } else {
        output::listing(&lines(&listing))
    }
}

fn lines(listing: &Listing) -> Vec<String> {
    let mut lines = Vec::new();
    let kernels = listing.kernels.iter();
    let names = kernels.filter_map(|row| row.kernel.as_ref().map(|kernel| kernel.name.as_str()));
    let width = names.chain(["name"]).map(columns).max().unwrap_or_default();
    if !listing.kernels.is_empty() {
        lines.push(format!(
            "{:<width$}  {:<26}  {:<36}  {:>8}  {:<16}  {}",
            "name", "release", "source", "size", "built (UTC)", "state"
        ));
    }
    for row in &listing.kernels {
        let state = match row.state {
            KernelState::Today => "today",
            KernelState::Stale => "stale",
            KernelState::Unusable => "unusable",
        };
        let size = format::bytes(row.bytes as f64);
        let line = match &row.kernel {
            Some(kernel) => {
                let built = kernel.built_at.get(..16).unwrap_or(&kernel.built_at);
                format!(
                    "{:<width$}  {:<26}  {:<36}  {size:>8}  {:<16}  {state}",
                    kernel.name,
                    kernel.release,
                    kernel.source,
                    built.replace('T', " "),
                )
            }
            None => format!(
                "{:<width$}  {:<64}  {size:>8}  {:<16}  {state}: {}",
                "?",
                row.directory.display(),
                "",
                row.reason.as_deref().unwrap_or_default()
            ),
        };
        lines.push(line.trim_end().to_owned());
    }
    if !listing.not_built.is_empty() {
        let words = listing.not_built.join(" ");
        lines.push(format!("not built: {words} (toll kernel build {words})"));
    }
    lines
}
