//! The Kubernetes indexed job that measures on many nodes.

use std::path::Path;

use serde_json::{Value, json};

use crate::slurm::JOB_NAME;

/// Where the directory of the submission is mounted in a pod.
pub const MOUNTED_AT: &str = "/fleet";

/// How often a failed pod is restarted, for each index of the job.
const RETRIES: u32 = 3;

/// The user's options for Kubernetes.
#[derive(Debug)]
pub struct PodRequest<'a> {
    pub nodes: u32,
    pub image: &'a str,
    /// The volume claim whose root is the directory of the submission.
    pub claim: &'a str,
    /// Whole CPUs and bytes of memory of each pod: as much as a node can give.
    pub cpus: u32,
    pub memory_bytes: u64,
    /// Labels that a node must have.
    pub node_labels: &'a [(String, String)],
    pub time_limit_s: Option<u64>,
    /// Directory on the node for work files.
    pub work_dir: &'a Path,
}

/// Builds the manifest (`kubectl apply` reads JSON). Each node gets one pod. A pod's requests equal
/// its limits, so that its quality of service is `Guaranteed`.
pub fn job(request: &PodRequest) -> Value {
    let labels: serde_json::Map<String, Value> = request
        .node_labels
        .iter()
        .map(|(name, value)| (name.clone(), json!(value)))
        .collect();
    let resources = json!({
        "cpu": request.cpus.to_string(),
        "memory": request.memory_bytes.to_string(),
    });
    let pod = json!({
        "restartPolicy": "Never",
        "nodeSelector": labels,
        "affinity": { "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [{
            "labelSelector": { "matchLabels": { "app": JOB_NAME } },
            "topologyKey": "kubernetes.io/hostname",
        }] } },
        "containers": [{
            "name": "measure",
            "image": request.image,
            "command": ["/bin/sh", format!("{MOUNTED_AT}/measure.sh")],
            "env": [{
                "name": "NODE_NAME",
                "valueFrom": { "fieldRef": { "fieldPath": "spec.nodeName" } },
            }],
            "resources": { "requests": resources.clone(), "limits": resources },
            "volumeMounts": [
                { "name": "fleet", "mountPath": MOUNTED_AT },
                { "name": "work", "mountPath": request.work_dir },
            ],
        }],
        "volumes": [
            { "name": "fleet", "persistentVolumeClaim": { "claimName": request.claim } },
            // Work files must not be on the container's root, which is not the node's file system.
            { "name": "work", "hostPath": { "path": request.work_dir, "type": "DirectoryOrCreate" } },
        ],
    });
    let mut spec = json!({
        "completionMode": "Indexed",
        "completions": request.nodes,
        "parallelism": request.nodes,
        "backoffLimitPerIndex": RETRIES,
        "template": { "metadata": { "labels": { "app": JOB_NAME } }, "spec": pod },
    });
    if let Some(limit) = request.time_limit_s {
        spec["activeDeadlineSeconds"] = json!(limit);
    }
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": { "name": JOB_NAME },
        "spec": spec,
    })
}
