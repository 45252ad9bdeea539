//! `toll kernel`: builds, lists and compares the kernels of guests.

mod ab;
mod add;
mod build;
mod list;
mod show;

use std::process::ExitCode;

use clap::{Args, Subcommand};

pub use ab::run as compare;

use toll_core::format;
use toll_core::spec::KernelName;
use toll_driver::WithStore;
use toll_host::environment::kernel::{clean, remove};
use toll_system::{Failure, output};

const CLEAN_NOTES: &str = "\
Example:
  toll kernel clean --all

Without --all, the kernels that guests use stay, and so do fetched sources and packages. Build trees
are removed, so the next change of a module or patch compiles the whole kernel again.";

#[derive(Debug, Args)]
pub struct KernelArguments {
    #[command(subcommand)]
    pub verb: KernelVerb,
}

#[derive(Debug, Subcommand)]
pub enum KernelVerb {
    /// Compare two kernels: what they execute, and what that costs
    #[command(after_help = ab::NOTES)]
    Ab(Box<WithStore<ab::AbArguments>>),
    /// Give a name to your own kernel: patches, a tree, a configuration, an image, a module
    Add(add::AddArguments),
    /// Remove the name of an added kernel; built files stay until `clean`
    Remove { name: KernelName },
    /// Build kernels and this project's modules, unless they are built already
    Build(build::BuildArguments),
    /// List built kernels
    List(list::ListArguments),
    /// Show the sources and the files of a kernel
    Show(show::ShowArguments),
    /// Remove kernels that guests no longer use, and build trees
    #[command(after_help = CLEAN_NOTES)]
    Clean {
        /// Remove all kernels, with sources and packages
        #[arg(long)]
        all: bool,
    },
}

pub fn run(arguments: &KernelArguments) -> anyhow::Result<ExitCode> {
    match &arguments.verb {
        KernelVerb::Ab(_) => unreachable!("it has a store"),
        KernelVerb::Build(arguments) => return build::run(arguments),
        KernelVerb::Add(arguments) => add::run(arguments)?,
        KernelVerb::Remove { name } => {
            remove(name).map_err(Failure::Usage)?;
            output::line(&format!("removed kernel {name}"))?;
        }
        KernelVerb::List(arguments) => list::run(arguments)?,
        KernelVerb::Show(arguments) => show::run(arguments)?,
        KernelVerb::Clean { all } => {
            let removed = clean(*all)?;
            for (path, bytes) in &removed {
                let size = format::bytes(*bytes as f64);
                output::line(&format!("removed {} ({size})", path.display()))?;
            }
            let bytes: u64 = removed.iter().map(|(_, bytes)| bytes).sum();
            output::line(&if removed.is_empty() {
                "nothing to remove".to_owned()
            } else {
                format!("freed {}", format::bytes(bytes as f64))
            })?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
