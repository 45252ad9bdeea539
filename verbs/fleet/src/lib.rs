//! `toll fleet`: measures on the nodes of a cluster and reports over machines.

mod directory;
mod fetch;
pub mod kubernetes;
pub mod node_state;
mod page;
mod report;
mod report_text;
mod retry;
mod run_options;
pub mod script;
pub mod slurm;
mod status;
pub mod submission;
mod submit;
mod work;

use std::process::ExitCode;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub enum FleetVerb {
    /// Measure experiments on the nodes of a cluster, with one job for each node
    #[command(after_help = submit::NOTES)]
    Submit(Box<submit::SubmitArguments>),
    /// Show the progress of each node, and why nodes wait or failed
    Status(status::StatusArguments),
    /// Submit failed nodes again; each continues after its finished trials
    Retry(retry::RetryArguments),
    /// Write the runs of all nodes into tables
    Fetch(fetch::FetchArguments),
    /// Measure a submission on this machine, as a job does
    Work(work::WorkArguments),
    /// Report on which machines each claim holds, the values over all machines, and which facts
    /// explain differences between machines
    Report(report::ReportArguments),
}

pub fn run(verb: &FleetVerb) -> anyhow::Result<ExitCode> {
    match verb {
        FleetVerb::Submit(arguments) => submit::run(arguments),
        FleetVerb::Status(arguments) => status::run(arguments),
        FleetVerb::Retry(arguments) => retry::run(arguments),
        FleetVerb::Fetch(arguments) => fetch::run(arguments),
        FleetVerb::Work(arguments) => work::run(arguments),
        FleetVerb::Report(arguments) => report::run(arguments),
    }
}
