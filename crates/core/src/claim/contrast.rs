//! Ratios between treatments, block by block.

use super::context::{AnalysisContext, log_ratio};
use crate::reason::Reason;
use crate::spec::{Contrast, Experiment, Selector};

/// Returns the logarithms of a contrast's ratio, one per block.
pub(super) fn block_logs(
    contrast: Contrast<'_>,
    context: &AnalysisContext,
) -> Result<Vec<f64>, Reason> {
    let (of, to) = (context.pick(contrast.of)?, context.pick(contrast.to)?);
    let Some((per_of, per_to)) = contrast.per else {
        return context.log_ratios(contrast.metric, of, to);
    };
    let all = [of, to, context.pick(per_of)?, context.pick(per_to)?];
    let blocks = context.common_blocks(contrast.metric, &all);
    if blocks.is_empty() {
        return Err(context
            .why_absent(contrast.metric, &all)
            .unwrap_or_else(|| Reason::NoCommonBlock {
                sides: "all sides".into(),
            }));
    }
    blocks
        .iter()
        .map(|block| {
            let [of, to, per_of, per_to] =
                all.map(|treatment| context.column(contrast.metric, treatment)[block]);
            Ok(log_ratio(of, to)? - log_ratio(per_of, per_to)?)
        })
        .collect()
}

/// Describes a contrast: `method=swept / method=page at sink=null`. Levels that both sides share
/// appear once. Levels that do not vary in this run are left out.
pub(super) fn describe(contrast: Contrast<'_>, experiment: &Experiment) -> String {
    let own = side(contrast.of, contrast.to, experiment);
    let mut text = format!("{} / {}", own.0, own.1);
    if let Some((per_of, per_to)) = contrast.per {
        let full = |selector: &Selector| shown(selector.iter(), experiment);
        text = format!(
            "({} / {}) / ({} / {})",
            full(contrast.of),
            full(contrast.to),
            full(per_of),
            full(per_to)
        );
    } else {
        let shared = contrast.of.iter().filter(|(name, level)| {
            contrast
                .to
                .get(*name)
                .is_some_and(|other| other.same(level))
                && varies(experiment, name)
        });
        let shared = shown(shared, experiment);
        if !shared.is_empty() {
            text = format!("{text} at {shared}");
        }
    }
    text
}

/// Describes levels. Levels that do not vary in this run are left out.
pub(super) fn levels(selector: &Selector, experiment: &Experiment) -> String {
    let varying = selector.iter().filter(|(name, _)| varies(experiment, name));
    shown(varying, experiment)
}

fn varies(experiment: &Experiment, name: &str) -> bool {
    experiment
        .factor(name)
        .is_some_and(|factor| factor.levels.len() > 1)
}

fn side(of: &Selector, to: &Selector, experiment: &Experiment) -> (String, String) {
    let differs = |a: &Selector, b: &Selector| {
        let own = a
            .iter()
            .filter(|(name, level)| b.get(*name).is_none_or(|other| !other.same(level)));
        shown(own, experiment)
    };
    (differs(of, to), differs(to, of))
}

fn shown<'a>(
    parts: impl Iterator<Item = (&'a String, &'a crate::spec::Level)>,
    experiment: &Experiment,
) -> String {
    let parts: Vec<String> = parts
        .map(|(name, level)| match experiment.factor(name) {
            Some(factor) => format!("{name}={}", factor.label(level)),
            None => format!("{name}={}", level.text),
        })
        .collect();
    parts.join(" ")
}
