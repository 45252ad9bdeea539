//! `toll kernel`

mod build;
mod clean;
mod list;
mod show;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::{Failure, output};

#[derive(Debug, Args)]
pub(super) struct KernelArguments {
    #[command(subcommand)]
    verb: KernelVerb,
}

#[derive(Debug, Subcommand)]
enum KernelVerb {
    /// Build kernels and this project's modules, or take those that are there
    Build(build::BuildArguments),
    /// List what is built
    List(list::ListArguments),
    /// Show what a kernel was made of and where it lies
    Show(show::ShowArguments),
    /// Remove what guests no longer use, and what kernels were built in
    Clean(clean::CleanArguments),
}

pub(super) fn run(arguments: &KernelArguments) -> anyhow::Result<ExitCode> {
    match &arguments.verb {
        KernelVerb::Build(arguments) => build::run(arguments),
        KernelVerb::List(arguments) => list::run(arguments),
        KernelVerb::Show(arguments) => show::run(arguments),
        KernelVerb::Clean(arguments) => clean::run(arguments),
    }
}
