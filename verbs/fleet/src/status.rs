//! `toll fleet status`: shows the progress of each node.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use toll_report::words::plural;
use toll_system::bounded::open_bounded;
use toll_system::{Failure, output};

use crate::directory::{Submitted, is_complete};
use crate::node_state::{NodeProgress, NodeState, of_arrays};
use crate::slurm::Slurm;
use crate::submission::{FleetDirectory, Scheduler, Submission};

/// How many bytes at the end of a log are read for its last line.
const LOG_END_BYTES: u64 = 4096;

#[derive(Debug, Args)]
pub struct StatusArguments {
    #[command(flatten)]
    submitted: Submitted,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &StatusArguments) -> anyhow::Result<ExitCode> {
    let directory = arguments.submitted.open()?;
    let submission = directory.submission()?;
    let all = progress(&directory, &submission)?;
    if arguments.json {
        output::json(&all)?
    } else {
        output::listing(&lines(&all, &submission.scheduler))?
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the progress of each node.
pub fn progress(
    directory: &FleetDirectory,
    submission: &Submission,
) -> anyhow::Result<Vec<NodeProgress>> {
    let runs = submission.experiments.len();
    let runs_complete = |node: &str| {
        let documents = submission.experiments.iter();
        let documents = documents.map(|planned| directory.document(node, &planned.name));
        documents.filter(|path| is_complete(path)).count()
    };
    match &submission.scheduler {
        Scheduler::Slurm { arrays, .. } => {
            let slurm = Slurm::find().map_err(Failure::Prerequisite)?;
            let jobs: Vec<u64> = arrays.iter().map(|array| array.job).collect();
            let cannot = |why| anyhow::anyhow!("cannot find out the progress of the nodes: {why}");
            let tasks = slurm.tasks(&jobs).map_err(cannot)?;
            // The nodes only explain why a task waits or failed, so an error does not matter.
            let nodes = slurm.nodes().unwrap_or_default();
            let mut all = of_arrays(arrays, &tasks, &nodes, runs, runs_complete);
            for one in &mut all {
                if one.state == NodeState::Failed
                    && let Some(line) = last_line(&directory.log(&one.node))
                    && let Some(reason) = &mut one.reason
                {
                    reason.push_str(&format!("; its log ends: {line}"));
                }
            }
            Ok(all)
        }
        Scheduler::Kubernetes { .. } | Scheduler::Script => {
            let nodes = directory.measured_nodes()?.into_iter();
            let progress = nodes.map(|node| {
                let runs_complete = runs_complete(&node);
                NodeProgress {
                    node,
                    state: if runs_complete == runs {
                        NodeState::Complete
                    } else {
                        NodeState::Unfinished
                    },
                    runs_complete,
                    runs,
                    reason: None,
                }
            });
            Ok(progress.collect())
        }
    }
}

/// Returns the last line of a log that is not empty.
fn last_line(log: &Path) -> Option<String> {
    let mut file = open_bounded(log, u64::MAX).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LOG_END_BYTES)))
        .ok()?;
    let mut end = Vec::new();
    file.take(LOG_END_BYTES).read_to_end(&mut end).ok()?;
    let end = String::from_utf8_lossy(&end);
    let last = end
        .lines()
        .rev()
        .map(str::trim)
        .find(|line| !line.is_empty());
    last.map(str::to_owned)
}

fn lines(all: &[NodeProgress], scheduler: &Scheduler) -> Vec<String> {
    let width = all
        .iter()
        .map(|one| one.node.len())
        .max()
        .unwrap_or(0)
        .max(4);
    let mut lines = vec![format!("{:width$}  {:<10}  {:>7}", "node", "state", "runs")];
    lines.extend(all.iter().map(|one| {
        let runs = format!("{} of {}", one.runs_complete, one.runs);
        let reason = one.reason.as_deref().unwrap_or_default();
        let line = format!(
            "{:width$}  {:<10}  {runs:>7}  {reason}",
            one.node,
            word(one.state)
        );
        line.trim_end().to_owned()
    }));
    let states = [
        NodeState::Complete,
        NodeState::Running,
        NodeState::Waiting,
        NodeState::Failed,
        NodeState::Unfinished,
    ];
    let counts = states.map(|state| (state, all.iter().filter(|one| one.state == state).count()));
    let counts = counts.into_iter().filter(|(_, count)| *count > 0);
    let counts = counts.map(|(state, count)| format!("{count} {}", word(state)));
    let counts: Vec<String> = counts.collect();
    lines.push(format!(
        "{}: {}",
        plural(all.len(), "node"),
        counts.join(", ")
    ));
    let has_failed = all.iter().any(|one| one.state == NodeState::Failed);
    lines.extend(match scheduler {
        Scheduler::Slurm { .. } if has_failed => Some(
            "`toll fleet retry` submits the failed nodes again; their logs are in logs/".to_owned(),
        ),
        Scheduler::Slurm { .. } | Scheduler::Script => None,
        Scheduler::Kubernetes { nodes } => Some(format!(
            "requested nodes: {nodes}; `kubectl describe job` shows pods that wait or failed"
        )),
    });
    lines
}

fn word(state: NodeState) -> &'static str {
    match state {
        NodeState::Complete => "complete",
        NodeState::Running => "running",
        NodeState::Waiting => "waiting",
        NodeState::Failed => "failed",
        NodeState::Unfinished => "unfinished",
    }
}
