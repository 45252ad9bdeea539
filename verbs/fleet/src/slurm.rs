//! Queries Slurm, and submits jobs to it, by its own commands.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::Path;
use std::process::Stdio;

use rustix::fs::{MemfdFlags, memfd_create};
use toll_system::process;

/// Name of the jobs, by which squeue finds them.
pub const JOB_NAME: &str = "toll-fleet";

/// States of nodes to which Slurm gives no job, without the marks that follow them (sinfo(1),
/// "NODE STATE CODES").
const UNUSABLE: [&str; 8] = [
    "blocked", "down", "drained", "draining", "error", "fail", "failing", "unknown",
];

/// A node, as sinfo lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    pub name: String,
    pub state: String,
    /// Why the node is down or drained.
    pub reason: Option<String>,
}

impl Node {
    /// Returns why the node gets no job; `None` if it may get one.
    pub fn obstacle(&self) -> Option<String> {
        // A flag such as `*` says that the node does not respond.
        let state = self.state.trim_end_matches(|c: char| !c.is_alphabetic());
        UNUSABLE.contains(&state).then(|| match &self.reason {
            Some(reason) => format!("{state} ({reason})"),
            None => state.to_owned(),
        })
    }
}

/// A task of a job array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// Slurm's name of the state, such as `NODE_FAIL`.
    pub state: String,
    /// Why the task waits, or ended in this state.
    pub reason: Option<String>,
}

/// The commands of Slurm.
#[derive(Debug)]
pub struct Slurm;

impl Slurm {
    /// Finds Slurm's commands.
    ///
    /// # Errors
    ///
    /// If a command is missing.
    pub fn find() -> Result<Self, String> {
        let missing = ["sbatch", "scontrol", "sinfo", "squeue"]
            .into_iter()
            .find(|program| process::find(program).is_none());
        match missing {
            None => Ok(Self),
            Some(program) => Err(format!(
                "cannot use Slurm: {program} is missing; run this where jobs are submitted, or \
                 run measure.sh of the directory on each machine yourself"
            )),
        }
    }

    /// Lists all nodes.
    ///
    /// # Errors
    /// If Slurm does not answer.
    pub fn nodes(&self) -> Result<Vec<Node>, String> {
        let listed = list_nodes(&[])?;
        Ok(listed.into_iter().map(|(node, _)| node).collect())
    }

    /// Lists the nodes of a partition, or of the default partition.
    ///
    /// # Errors
    /// If Slurm does not answer, or there is no such partition.
    pub fn nodes_of(&self, partition: Option<&str>) -> Result<Vec<Node>, String> {
        let nodes: Vec<Node> = match partition {
            Some(name) => list_nodes(&["--partition", name])?
                .into_iter()
                .map(|(node, _)| node)
                .collect(),
            None => list_nodes(&[])?
                .into_iter()
                .filter_map(|(node, of)| of.ends_with('*').then_some(node))
                .collect(),
        };
        match (nodes.is_empty(), partition) {
            (false, _) => Ok(nodes),
            (true, Some(name)) => Err(format!(
                "Slurm has no partition {name} with nodes; see sinfo"
            )),
            (true, None) => {
                Err("Slurm has no default partition with nodes; name one with --partition".into())
            }
        }
    }

    /// Returns why Slurm would never run a job with these options on a node.
    pub fn refusal(&self, options: &[String], node: &str) -> Option<String> {
        let pinned = format!("--nodelist={node}");
        let mut arguments = vec!["--test-only", "--wrap=true", &pinned];
        arguments.extend(options.iter().map(String::as_str));
        run("sbatch", &arguments).err()
    }

    /// Submits a script as a job array with one task for each node, in their order. `note` gets the
    /// job number before any task may begin. If `note` or any other step fails, no task begins.
    /// `options` override the options in the script.
    ///
    /// # Errors What Slurm or `note` reports.
    pub fn submit(
        &self,
        script: &Path,
        options: &[String],
        nodes: &[String],
        note: impl FnOnce(u64) -> Result<(), String>,
    ) -> Result<u64, String> {
        let tasks = format!("--array=0-{}", nodes.len() - 1);
        let script = script.to_string_lossy();
        let mut arguments = vec!["--parsable", "--hold", &tasks];
        arguments.extend(options.iter().map(String::as_str));
        arguments.push(&script);
        let answer = run("sbatch", &arguments)?;
        // In a federation the cluster's name follows the number.
        let number = answer.split(';').next().unwrap_or_default().trim();
        let job: u64 = number
            .parse()
            .map_err(|_| format!("sbatch printed no job number, but: {answer}"))?;
        let released = pin(job, nodes)
            .and_then(|()| note(job))
            .and_then(|()| run("scontrol", &["release", number]));
        match released {
            Ok(_) => Ok(job),
            Err(why) => {
                let _ = run("scancel", &[number]);
                Err(why)
            }
        }
    }

    /// Returns what is known about the tasks of job arrays, by array and index. The controller
    /// knows live and recently ended tasks; the accounting knows all other tasks.
    ///
    /// # Errors If the controller does not answer.
    pub fn tasks(&self, jobs: &[u64]) -> Result<BTreeMap<(u64, usize), Task>, String> {
        let mut tasks = BTreeMap::new();
        let numbers: Vec<String> = jobs.iter().map(u64::to_string).collect();
        let listed = format!("--jobs={}", numbers.join(","));
        // Sites may have no accounting, so errors of the accounting are ignored.
        let accounted = run(
            "sacct",
            &[
                "--allocations",
                "--parsable2",
                "--noheader",
                "--format=JobID,State,Reason",
                &listed,
            ],
        );
        for line in accounted.unwrap_or_default().lines() {
            let Some([id, state, reason]) = fields(line) else {
                continue;
            };
            // A row such as `7_[0-3]` describes tasks that the controller knows.
            let task = id.split_once('_');
            let task = task.and_then(|(job, index)| Some((job.parse().ok()?, index.parse().ok()?)));
            if let Some(task) = task {
                tasks.insert(task, task_of(state, reason));
            }
        }
        let named = format!("--name={JOB_NAME}");
        let format = "--format=%F|%K|%T|%r";
        let live = ["--noheader", "--array", "--states=all", &named, format];
        for line in run("squeue", &live)?.lines() {
            if let Some([job, index, state, reason]) = fields(line)
                && let (Ok(job), Ok(index)) = (job.parse(), index.parse())
                && jobs.contains(&job)
            {
                tasks.insert((job, index), task_of(state, reason));
            }
        }
        Ok(tasks)
    }
}

/// Lists nodes, each with a partition; the default partition is marked with `*`.
fn list_nodes(arguments: &[&str]) -> Result<Vec<(Node, String)>, String> {
    let mut all = vec!["--noheader", "--Node", "--format=%N|%T|%P|%E"];
    all.extend(arguments);
    let listed = run("sinfo", &all)?;
    let lines = listed.lines().filter_map(fields);
    let nodes = lines.map(|[name, state, partition, reason]| {
        check_node(name)?;
        let node = Node {
            name: name.to_owned(),
            state: state.to_owned(),
            reason: known(reason),
        };
        Ok((node, partition.to_owned()))
    });
    nodes.collect()
}

/// Refuses a name that scontrol would read as several words or as several nodes.
fn check_node(name: &str) -> Result<(), String> {
    let is_plain = |c: char| c.is_alphanumeric() || "._-".contains(c);
    if name.chars().all(is_plain) && !name.is_empty() && !name.starts_with(['-', '.']) {
        Ok(())
    } else {
        Err(format!(
            "{name:?} is not the name of a node: it has characters other than letters, digits and \
             any of ._-"
        ))
    }
}

/// Assigns each task of a held array to its node.
fn pin(job: u64, nodes: &[String]) -> Result<(), String> {
    let mut requests = String::new();
    for (index, node) in nodes.iter().enumerate() {
        check_node(node)?;
        let _ = writeln!(requests, "update JobId={job}_{index} ReqNodeList={node}");
    }
    let cannot = |error: io::Error| format!("cannot assign nodes by scontrol: {error}");
    let mut input = File::from(
        memfd_create("nodes", MemfdFlags::CLOEXEC)
            .map_err(io::Error::from)
            .map_err(cannot)?,
    );
    input.write_all(requests.as_bytes()).map_err(cannot)?;
    input.rewind().map_err(cannot)?;
    // A single process handles all nodes, since a fleet may have thousands.
    process::run_on(Stdio::from(input), "scontrol", &[]).map(|_| ())
}

fn run(program: &str, arguments: &[&str]) -> Result<String, String> {
    let arguments: Vec<&OsStr> = arguments.iter().map(OsStr::new).collect();
    process::run(program, &arguments)
}

/// Splits a line into fields. Only the last field may contain the separator.
fn fields<const N: usize>(line: &str) -> Option<[&str; N]> {
    let fields: Vec<&str> = line.trim().splitn(N, '|').collect();
    fields.try_into().ok()
}

/// Returns a field's value; `None` for an empty field, and for Slurm's placeholders for an empty
/// field.
fn known(field: &str) -> Option<String> {
    let is_nothing = field.is_empty() || ["none", "None", "(null)"].contains(&field);
    (!is_nothing).then(|| field.to_owned())
}

fn task_of(state: &str, reason: &str) -> Task {
    // Only the first word counts, as in `CANCELLED by 1000`.
    let state = state.split_whitespace().next().unwrap_or_default();
    Task {
        state: state.to_owned(),
        reason: known(reason),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_that_get_no_job_say_why() {
        for (state, reason, obstacle) in [
            ("idle", None, None),
            ("mixed-", None, None),
            (
                "down*",
                Some("Not responding"),
                Some("down (Not responding)"),
            ),
            ("drained", None, Some("drained")),
        ] {
            let node = Node {
                name: "a".into(),
                state: state.into(),
                reason: reason.map(str::to_owned),
            };
            assert_eq!(node.obstacle().as_deref(), obstacle, "{state}");
        }
    }

    #[test]
    fn a_name_of_a_node_is_one_word_in_a_request() {
        assert!(check_node("node-1.rack_2").is_ok());
        for name in ["", "a b", "a\tExcNodeList=b", "a,b", "n[1-9]", "-a", "../a"] {
            assert!(check_node(name).is_err(), "{name:?}");
            assert!(pin(7, &[name.to_owned()]).is_err(), "{name:?}");
        }
    }

    #[test]
    fn lines_of_slurm_are_read() {
        assert_eq!(fields("a|b|c|d|e"), Some(["a", "b", "c|d|e"]));
        assert_eq!(fields::<3>("a|b"), None);
        let task = task_of("CANCELLED by 1000", "None");
        assert_eq!((task.state.as_str(), task.reason), ("CANCELLED", None));
    }
}
