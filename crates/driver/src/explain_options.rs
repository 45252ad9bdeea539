//! `--why`, and which experiments it can explain.

use anyhow::bail;
use clap::Args;
use toll_core::plan::{Plan, Treatment, pairs};
use toll_core::spec::Experiment;
use toll_system::Failure;

/// The option of verbs whose runs can be explained.
#[derive(Debug, Clone, Default, Args)]
pub struct ExplainOptions {
    /// After the run, explain the largest difference between two treatments: profile both in
    /// separate trials, and split the difference into functions and waits
    #[arg(long)]
    pub why: bool,
}

impl ExplainOptions {
    /// Refuses experiments whose runs nothing could explain, before any time is spent.
    pub fn check(&self, experiments: &[&Experiment]) -> anyhow::Result<()> {
        let reasons = experiments.iter().filter(|_| self.why);
        let mut reasons = reasons.filter_map(|one| Some((&one.name, why_never(one)?)));
        match reasons.next() {
            None => Ok(()),
            Some((name, why)) => bail!(Failure::Usage(format!(
                "cannot use --why with {name}: {why}"
            ))),
        }
    }
}

/// Returns why no run of an experiment can be explained; `None` if one can be.
fn why_never(experiment: &Experiment) -> Option<String> {
    let metric = &experiment.metric;
    if !is_explained(metric) {
        return Some(format!(
            "it compares {metric} first, and only times are explained; name duration_ns first with \
             --metric"
        ));
    }
    // An experiment without a plan is refused elsewhere.
    let treatments = Plan::new(experiment, 0).ok()?.treatments;
    let pairs = pairs(experiment, &treatments);
    if pairs.is_empty() {
        Some("it compares nothing; compare two commands".into())
    } else if pairs
        .iter()
        .all(|(one, other)| is_in_guest(&treatments, &[*one, *other]))
    {
        Some(
            "it runs in guests, which cannot be profiled; `toll count` counts the instructions of \
             commands by function"
                .into(),
        )
    } else {
        None
    }
}

/// Whether differences in a metric are explained.
pub(crate) fn is_explained(metric: &str) -> bool {
    metric.contains("duration")
}

/// Whether one of two treatments runs in a guest.
pub(crate) fn is_in_guest(treatments: &[Treatment], pair: &[usize; 2]) -> bool {
    pair.iter().any(|index| treatments[*index].boot().is_some())
}
