//! `toll observe interface`

use std::process::ExitCode;

use clap::Args;

use super::{Failure, output};
use crate::environment::interfaces::interfaces;
use crate::report::terminal;

const NOTES: &str = "\
Examples:
  toll observe interface                  all interfaces
  toll observe interface eth0 --json

Gateways are those of the default routes: for IPv4 of the main routing table, and of a route over
several gateways the first. What a DHCP server granted, and which server it was, is not in the
kernel: `toll observe dhcp eth0` listens for it.";

#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub(super) struct InterfaceArguments {
    /// Name of a network interface [default: all]
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &InterfaceArguments) -> Result<ExitCode, Failure> {
    let mut report = interfaces()
        .map_err(|error| Failure::Runtime(format!("cannot list network interfaces: {error}")))?;
    if let Some(name) = &arguments.name {
        let all: Vec<String> = report
            .interfaces
            .iter()
            .map(|one| one.name.clone())
            .collect();
        report.interfaces.retain(|one| one.name == *name);
        if report.interfaces.is_empty() {
            return Err(Failure::Runtime(format!(
                "cannot observe {name}: there is no such network interface; there are: {}",
                all.join(", ")
            )));
        }
    }
    match arguments.json {
        true => output::json(&report)?,
        false => output::result(&terminal::interfaces(&report, output::style()))?,
    }
    Ok(ExitCode::SUCCESS)
}
