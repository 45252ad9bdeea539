//! `toll fleet retry`: submits failed nodes again.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use clap::Args;
use toll_core::spec::quantity::parse_duration;
use toll_system::{Failure, output};

use super::status::progress;
use super::submit;
use crate::directory::Submitted;
use crate::node_state::NodeState;
use crate::script::time_limit;
use crate::submission::Scheduler;

#[derive(Debug, Args)]
pub struct RetryArguments {
    #[command(flatten)]
    submitted: Submitted,
    /// New time limit for these jobs (2h)
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    time_limit: Option<Duration>,
}

pub fn run(arguments: &RetryArguments) -> anyhow::Result<ExitCode> {
    let directory = arguments.submitted.open()?;
    let mut submission = directory.submission()?;
    // Jobs run the script and the programs beside it.
    directory
        .check_trusted(
            "toll fleet submit --directory",
            &[directory.script(), directory.programs()],
        )
        .map_err(Failure::Usage)?;
    let instead = match submission.scheduler {
        Scheduler::Slurm { .. } => None,
        Scheduler::Kubernetes { .. } => Some(format!(
            "Kubernetes restarts failed pods itself; if the job has given up, kubectl replace \
             --force -f {} continues the runs of all nodes",
            directory.job().display()
        )),
        Scheduler::Script => Some(format!(
            "no scheduler has the jobs; sh {} continues a machine's runs",
            directory.script().display()
        )),
    };
    if let Some(instead) = instead {
        bail!(Failure::Usage(format!("cannot retry: {instead}")));
    }
    let all = progress(&directory, &submission)?;
    let failed = all.into_iter().filter(|one| one.state == NodeState::Failed);
    let nodes: Vec<String> = failed.map(|one| one.node).collect();
    if nodes.is_empty() {
        output::line("no node failed; `toll fleet status` shows the progress of each")?;
        return Ok(ExitCode::SUCCESS);
    }
    let options: Vec<String> = arguments.time_limit.map(time_limit).into_iter().collect();
    let answer = submit::submit_array(&directory, &mut submission, &options, nodes)?;
    output::line(&answer)?;
    Ok(ExitCode::SUCCESS)
}
