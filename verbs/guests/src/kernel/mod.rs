//! `toll kernel`

mod ab;
mod add;
mod build;
mod list;
mod show;

use std::process::ExitCode;

use clap::{Args, Subcommand};

pub use ab::run as compare;

use toll_system::{Failure, output};
use toll_driver::WithStore;
use toll_host::environment::kernel::{clean, remove};
use toll_core::format;
use toll_core::spec::KernelName;

const CLEAN_NOTES: &str = "\
Example:
  toll kernel clean --all

Without --all the kernels that guests use stay, and so does what they were fetched from. The build
trees go: the next change of a module or patch compiles the whole kernel again.";

#[derive(Debug, Args)]
pub struct KernelArguments {
    #[command(subcommand)]
    pub verb: KernelVerb,
}

#[derive(Debug, Subcommand)]
pub enum KernelVerb {
    /// Compare two kernels: what they execute, and what it takes
    #[command(after_help = ab::NOTES)]
    Ab(Box<WithStore<ab::AbArguments>>),
    /// Give a kernel of yours a name: patches, a tree, a configuration, an image, a module
    Add(add::AddArguments),
    /// Forget a kernel of `toll kernel add`; what was built stays until `clean`
    Remove { name: KernelName },
    /// Build kernels and this project's modules, or take those that are there
    Build(build::BuildArguments),
    /// List what is built
    List(list::ListArguments),
    /// Show what a kernel was made of and where it lies
    Show(show::ShowArguments),
    /// Remove what guests no longer use, and what kernels were built in
    #[command(after_help = CLEAN_NOTES)]
    Clean {
        /// Remove all kernels, and the sources and packages too
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
            output::line(&format!("kernel {name} is no more"))?;
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
            output::line(&match removed.is_empty() {
                true => "nothing to remove".to_owned(),
                false => format!("freed {}", format::bytes(bytes as f64)),
            })?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
