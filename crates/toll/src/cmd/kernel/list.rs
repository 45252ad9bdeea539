//! `toll kernel list`

use std::process::ExitCode;

use clap::Args;
use serde::Serialize;

use super::output;
use crate::environment::kernel::{Kernel, KernelState, ListedKernel, Variant, list};
use crate::format;
use crate::report::sanitize::sanitize;

const NOTES: &str = "\
Example:
  toll kernel list --json

today: guests use it; stale: made from other sources than this toll holds, or there is a newer one;
unusable: not complete (an interrupted build goes on with the next toll kernel build).";

#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub(super) struct ListArguments {
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Listing {
    kernels: Vec<Row>,
    /// Words of the variants that guests cannot use as long as they are not
    /// built.
    not_built: Vec<&'static str>,
}

#[derive(Debug, Serialize)]
struct Row {
    directory: String,
    state: KernelState,
    bytes: u64,
    /// Why it cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(flatten)]
    kernel: Option<Kernel>,
}

pub(super) fn run(arguments: &ListArguments) -> anyhow::Result<ExitCode> {
    let listing = listing(list());
    match arguments.json {
        true => output::json(&listing)?,
        false => output::listing(&text(&listing))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn listing(listed: Vec<ListedKernel>) -> Listing {
    let row = |listed: ListedKernel| {
        let (kernel, reason) = match listed.kernel {
            Ok(kernel) => (Some(kernel), None),
            Err(reason) => (None, Some(reason)),
        };
        Row {
            directory: listed.directory.display().to_string(),
            state: listed.state,
            bytes: listed.bytes,
            reason,
            kernel,
        }
    };
    let kernels: Vec<Row> = listed.into_iter().map(row).collect();
    let is_built = |variant: Variant| {
        kernels.iter().any(|row| {
            let of_variant = row
                .kernel
                .as_ref()
                .is_some_and(|kernel| kernel.variant == variant);
            of_variant && row.state == KernelState::Today
        })
    };
    let not_built = Variant::ALL
        .into_iter()
        .filter(|variant| !is_built(*variant));
    Listing {
        not_built: not_built.map(Variant::word).collect(),
        kernels,
    }
}

fn text(listing: &Listing) -> String {
    let mut text = String::new();
    if !listing.kernels.is_empty() {
        text.push_str(&format!(
            "{:<10}  {:<26}  {:<36}  {:>8}  {:<16}  {}\n",
            "variant", "release", "source", "size", "built (UTC)", "state"
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
                    "{:<10}  {:<26}  {:<36}  {size:>8}  {:<16}  {state}",
                    kernel.variant.word(),
                    kernel.release,
                    kernel.source,
                    built.replace('T', " "),
                )
            }
            None => format!(
                "{:<10}  {:<64}  {size:>8}  {:<16}  {state}: {}",
                "?",
                row.directory,
                "",
                row.reason.as_deref().unwrap_or_default()
            ),
        };
        text.push_str(sanitize(&line).trim_end());
        text.push('\n');
    }
    if !listing.not_built.is_empty() {
        let words = listing.not_built.join(" ");
        text.push_str(&format!("not built: {words} (toll kernel build {words})\n"));
    }
    text
}
