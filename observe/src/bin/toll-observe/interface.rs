//! The command `toll observe interface`.

use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Args;
use toll_system::output;

use crate::show;
use crate::system::interfaces::interfaces;

const NOTES: &str = "\
Examples:
  toll observe interface                  all interfaces
  toll observe interface eth0 --json

Gateways are those of the default routes. IPv4 routes are those of the main routing table; for a
route over several gateways, the first one is shown. The kernel does not know which DHCP
server granted an address, or for how long; `toll observe dhcp eth0` listens for that.";

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

pub(super) fn run(arguments: &InterfaceArguments) -> anyhow::Result<ExitCode> {
    let mut report = interfaces().context("cannot list network interfaces")?;
    if let Some(name) = &arguments.name {
        let all: Vec<String> = report
            .interfaces
            .iter()
            .map(|one| one.name.clone())
            .collect();
        report.interfaces.retain(|one| one.name == *name);
        if report.interfaces.is_empty() {
            bail!(
                "cannot observe {name}: there is no such network interface; there are: {}",
                all.join(", ")
            );
        }
    }
    if arguments.json {
        output::json(&report)?
    } else {
        output::result(&show::interfaces(&report))?
    }
    Ok(ExitCode::SUCCESS)
}
