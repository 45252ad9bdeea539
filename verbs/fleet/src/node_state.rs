//! The progress of each node of a submission.

use std::collections::BTreeMap;

use serde::Serialize;

use super::submission::JobArray;
use crate::slurm::{Node, Task};

/// States of tasks that will run, then states of tasks that run (squeue(1), "JOB STATE CODES").
const WAITING: [&str; 8] = [
    "CONFIGURING",
    "PENDING",
    "REQUEUED",
    "REQUEUE_FED",
    "REQUEUE_HOLD",
    "RESV_DEL_HOLD",
    "SPECIAL_EXIT",
    "SUSPENDED",
];
const RUNNING: [&str; 5] = [
    "COMPLETING",
    "RESIZING",
    "RUNNING",
    "SIGNALING",
    "STAGE_OUT",
];

/// State of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NodeState {
    /// All runs of the node are complete.
    Complete,
    Running,
    /// The node's job has not begun yet.
    Waiting,
    /// The node's job ended before all runs were complete.
    Failed,
    /// Not all runs are complete, and there is no scheduler to ask about the node's job.
    Unfinished,
}

/// A node and its progress.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NodeProgress {
    pub node: String,
    pub state: NodeState,
    pub runs_complete: usize,
    pub runs: usize,
    /// Why the node waits or failed.
    pub reason: Option<String>,
}

/// Returns the progress of the nodes of job arrays. For a retried node, its last task counts.
/// `runs_complete` returns how many of a node's `runs` are complete.
pub fn of_arrays(
    arrays: &[JobArray],
    tasks: &BTreeMap<(u64, usize), Task>,
    nodes: &[Node],
    runs: usize,
    runs_complete: impl Fn(&str) -> usize,
) -> Vec<NodeProgress> {
    let mut last: BTreeMap<&str, (u64, usize)> = BTreeMap::new();
    for array in arrays {
        let numbered = array.nodes.iter().enumerate();
        last.extend(numbered.map(|(index, node)| (node.as_str(), (array.job, index))));
    }
    let progress = last.into_iter().map(|(name, task)| {
        let runs_complete = runs_complete(name);
        let obstacle = nodes.iter().find(|node| node.name == name);
        let obstacle = obstacle.and_then(Node::obstacle);
        let (state, reason) = if runs_complete == runs {
            (NodeState::Complete, None)
        } else {
            of_task(tasks.get(&task), obstacle)
        };
        NodeProgress {
            node: name.to_owned(),
            state,
            runs_complete,
            runs,
            reason,
        }
    });
    progress.collect()
}

/// The state of a task that has not completed all runs, and the reason.
fn of_task(task: Option<&Task>, obstacle: Option<String>) -> (NodeState, Option<String>) {
    let Some(task) = task else {
        let lost = "Slurm no longer knows its job".to_owned();
        return (NodeState::Failed, Some(lost));
    };
    let node = obstacle.map(|why| format!("the node is {why}"));
    let state = task.state.as_str();
    if RUNNING.contains(&state) {
        return (NodeState::Running, node);
    }
    if WAITING.contains(&state) {
        return (NodeState::Waiting, node.or_else(|| task.reason.clone()));
    }
    let ended = match (state, &task.reason) {
        ("COMPLETED", _) => "its job ended, but not all runs are complete".to_owned(),
        (_, Some(reason)) => format!("{}: {reason}", words(state)),
        (_, None) => words(state),
    };
    let reason = match node {
        Some(node) => format!("{ended}; {node}"),
        None => ended,
    };
    (NodeState::Failed, Some(reason))
}

/// Turns `NODE_FAIL` into `node fail`.
fn words(state: &str) -> String {
    state.to_lowercase().replace('_', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(task: Option<(&str, Option<&str>)>, node: &str, complete: usize) -> NodeProgress {
        let arrays = [JobArray {
            job: 7,
            nodes: vec!["a".into()],
        }];
        let tasks = task.map(|(state, reason)| {
            let task = Task {
                state: state.into(),
                reason: reason.map(str::to_owned),
            };
            ((7, 0), task)
        });
        let nodes = [Node {
            name: "a".into(),
            state: node.into(),
            reason: None,
        }];
        let mut all = of_arrays(&arrays, &tasks.into_iter().collect(), &nodes, 2, |_| {
            complete
        });
        all.remove(0)
    }

    #[test]
    fn a_node_is_as_far_as_its_documents_and_else_as_its_job() {
        use NodeState::{Complete, Failed, Running, Waiting};
        for (task, node, complete, state, reason) in [
            (None, "idle", 2, Complete, None),
            (Some(("RUNNING", None)), "allocated", 1, Running, None),
            (
                Some(("PENDING", Some("Priority"))),
                "idle",
                0,
                Waiting,
                Some("Priority"),
            ),
            (
                Some(("PENDING", Some("Resources"))),
                "drained",
                0,
                Waiting,
                Some("the node is drained"),
            ),
            (Some(("TIMEOUT", None)), "idle", 1, Failed, Some("timeout")),
            (
                Some(("FAILED", Some("NonZeroExitCode"))),
                "down*",
                0,
                Failed,
                Some("failed: NonZeroExitCode; the node is down"),
            ),
            (
                Some(("COMPLETED", None)),
                "idle",
                1,
                Failed,
                Some("its job ended, but not all runs are complete"),
            ),
            (
                None,
                "idle",
                0,
                Failed,
                Some("Slurm no longer knows its job"),
            ),
        ] {
            let found = progress(task, node, complete);
            assert_eq!(
                (found.state, found.reason.as_deref()),
                (state, reason),
                "{task:?}"
            );
        }
    }

    #[test]
    fn of_a_retried_node_the_last_task_counts() {
        let array = |job, nodes: &[&str]| JobArray {
            job,
            nodes: nodes.iter().map(|name| (*name).to_owned()).collect(),
        };
        let arrays = [array(7, &["a", "b"]), array(9, &["b"])];
        let task = |state: &str| Task {
            state: state.into(),
            reason: None,
        };
        let tasks = [
            ((7, 0), task("RUNNING")),
            ((7, 1), task("NODE_FAIL")),
            ((9, 0), task("PENDING")),
        ];
        let states: Vec<NodeState> = of_arrays(&arrays, &tasks.into(), &[], 1, |_| 0)
            .into_iter()
            .map(|one| one.state)
            .collect();
        assert_eq!(states, [NodeState::Running, NodeState::Waiting]);
    }
}
