//! Experiments on the nodes of a Slurm cluster.

use serde_json::Value;
use toll_testing::{Bench, Ran, has, lacks, list, wait_until};

use crate::cluster::{Cluster, NODES};
use crate::fleet::CLOCKS;

/// A bench whose `toll` uses a cluster.
struct Site {
    bench: Bench,
    cluster: Cluster,
}

impl Site {
    fn toll(&self, arguments: &str) -> Ran {
        let configuration = self.cluster.configuration();
        let line = format!("SLURM_CONF={} toll {arguments}", configuration.display());
        self.bench.shell(&line)
    }

    #[track_caller]
    fn ok(&self, arguments: &str) -> String {
        let ran = self.toll(arguments);
        assert_eq!(ran.code, Some(0), "{arguments}: {ran:#?}");
        ran.stdout
    }

    #[track_caller]
    fn fails(&self, code: i32, arguments: &str) -> String {
        let ran = self.toll(arguments);
        assert_eq!(ran.code, Some(code), "{arguments}: {ran:#?}");
        ran.stderr
    }

    /// The object that `status --json` prints for a node.
    fn node(&self, node: &str) -> Value {
        let output: Value = serde_json::from_str(&self.ok("fleet status --json")).unwrap();
        let mut all = list(&output).iter();
        all.find(|one| one["node"] == node).unwrap().clone()
    }

    fn wait_for(&self, node: &str, state: &str) {
        wait_until(&format!("{node} is {state}"), || {
            self.node(node)["state"] == state
        });
    }

    /// Number of trials that a node has made so far.
    fn trials(&self, node: &str) -> usize {
        let shown = self.bench.shell(&format!(
            "toll --store toll-fleet/nodes/{node}/clocks.sqlite show --json"
        ));
        let document: Value = serde_json::from_str(&shown.stdout).unwrap_or_default();
        list(&document["trials"]).len()
    }
}

#[test]
fn four_nodes_measure_one_dies_and_nothing_is_lost_or_counted_twice() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let bench = Bench::new();
    bench.write("clocks.toml", CLOCKS);
    let mut site = Site { bench, cluster };
    refuses_what_slurm_refuses(&site);
    keeps_a_job_of_which_nobody_hears(&site);

    let submitted = site.toll("fleet submit clocks.toml --slurm -- -r 400");
    assert_eq!(submitted.stderr, "");
    has(&submitted.stdout, &["submitted job", "for 4 nodes"]);
    wait_until("node2 measures", || site.trials("node2") > 20);
    site.cluster.kill_node("node2");
    let before = site.trials("node2");
    for node in ["node1", "node3", "node4"] {
        site.wait_for(node, "complete");
    }
    // Slurm has requeued the job.
    site.wait_for("node2", "waiting");
    has(
        &site.node("node2").to_string(),
        &["the node is down (Not responding)"],
    );
    has(
        &site.ok("fleet status"),
        &["4 nodes: 3 complete, 1 waiting"],
    );
    let fetched = site.toll("fleet fetch");
    has(&fetched.stdout, &["wrote 3 runs"]);
    has(
        &fetched.stderr,
        &["node2 has not written a document of clocks yet"],
    );
    has(&site.ok("fleet retry"), &["no node failed"]);

    let name = crate::cluster::JOB_NAME;
    site.cluster.ok(&format!("scancel --name={name}"));
    site.wait_for("node2", "failed");
    // From then on only the accounting knows the job.
    wait_until("the controller has forgotten the job", || {
        let listed = site
            .cluster
            .ok(&format!("squeue --noheader --states=all --name={name}"));
        listed.stdout.is_empty()
    });
    has(
        &site.node("node2").to_string(),
        &["cancelled", "the node is down"],
    );

    site.cluster.start_node("node2");
    site.cluster.wait_for_nodes("idle", 4);
    has(&site.ok("fleet retry --time-limit 1h"), &["for 1 node"]);
    site.wait_for("node2", "complete");
    let [killed, other] = ["node2", "node1"].map(|node| site.trials(node));
    assert!(
        before < killed && killed == other,
        "{before} {killed} {other}"
    );
    let listed = site
        .bench
        .ok("--store toll-fleet/nodes/node2/clocks.sqlite list");
    has(&listed.stdout, &["  1  "]);
    lacks(&listed.stdout, &["\n     2  "]);

    each_node_is_one_machine_of_the_report(&site);
    damaged_documents_are_told_and_made_anew(&site);
    let at = site.bench.path("toll-fleet");
    assert!(!crate::cluster::is_running(&at), "a job is still running");
}

fn each_node_is_one_machine_of_the_report(site: &Site) {
    for _ in 0..2 {
        has(&site.ok("fleet fetch"), &["wrote 4 runs"]);
    }
    let report = site.bench.json("fleet report toll-fleet/tables --json");
    let machines = list(&report["machines"]);
    assert_eq!(machines.len(), 4, "{report:#}");
    for (machine, node) in machines.iter().zip(NODES) {
        has(machine["id"].as_str().unwrap(), &[node]);
    }
}

/// A submitted job runs even if the line about it cannot be written.
fn keeps_a_job_of_which_nobody_hears(site: &Site) {
    let submit = "fleet submit clocks.toml --slurm --nodes 1 --directory unheard";
    let said = site.fails(1, &format!("{submit} -- -r 3 >/dev/full"));
    has(&said, &["cannot write the result"]);
    wait_until("its job is done", || {
        let output = site.ok("fleet status unheard");
        output.contains("node1  complete")
    });
}

fn refuses_what_slurm_refuses(site: &Site) {
    for (arguments, why) in [
        (
            "--partition nowhere",
            "Slurm has no partition nowhere with nodes",
        ),
        (
            "--constraint fast",
            "no node can run the job; node1: sbatch failed",
        ),
    ] {
        let said = site.fails(1, &format!("fleet submit clocks.toml --slurm {arguments}"));
        has(&said, &["cannot submit: ", why]);
    }
    site.cluster
        .ok("scontrol update NodeName=node4 State=DRAIN Reason='bad disk'");
    let planned = site.toll("fleet submit clocks.toml --slurm --dry-run");
    has(
        &planned.stderr,
        &[
            "left out: node4: drained (bad disk)",
            "3 nodes: node1 node2 node3",
        ],
    );
    has(
        &planned.stdout,
        &["#!/bin/sh\n#SBATCH --job-name=toll-fleet\n"],
    );
    let few = site.toll("fleet submit clocks.toml --slurm --nodes 2 --dry-run");
    has(&few.stderr, &["2 nodes: node1 node2"]);
    site.cluster
        .ok("scontrol update NodeName=node4 State=RESUME");
    wait_until("Slurm takes the node again", || {
        let planned = site.toll("fleet submit clocks.toml --slurm --dry-run");
        planned.stderr.contains("4 nodes")
    });
    assert!(!site.bench.path("toll-fleet").exists());
}

fn damaged_documents_are_told_and_made_anew(site: &Site) {
    let document = "toll-fleet/nodes/node1/clocks.json";
    let whole = site.bench.read(document);
    site.bench.write(document, &whole[..whole.len() / 2]);
    let said = site.fails(1, "fleet fetch");
    has(
        &said,
        &["cannot use", "node1/clocks.json", "cannot read 1 document"],
    );
    site.bench.write(
        document,
        &whole.replacen("\"version\": 1", "\"version\": 99", 1),
    );
    let said = site.fails(1, "fleet fetch");
    has(&said, &["its version is 99, and this toll reads 1"]);
    std::fs::remove_file(site.bench.path(document)).unwrap();
    site.wait_for("node1", "failed");
    has(&site.ok("fleet retry"), &["for 1 node"]);
    site.wait_for("node1", "complete");
    assert_eq!(site.bench.read(document), whole);
    has(&site.ok("fleet fetch"), &["wrote 4 runs"]);
}
