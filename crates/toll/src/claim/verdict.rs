//! Judging claims.

use toll_stats::{Decision, Direction, Interval, decide, decision_p, hodges_lehmann, holm};

use super::data::Data;
use super::model::{ClaimDirection, Outcome, Verdict};
use super::summary::estimate;
use super::{ALPHA, contrast, derived, twin};
use crate::format;
use crate::plan::Treatment;
use crate::spec::{Claim, Experiment, Test};

/// Share of the way from threshold to published value that half an interval
/// may take up and still be narrow enough: a quarter leaves three for the
/// estimate to err in.
const WIDTH_SHARE: f64 = 0.25;

/// Half-width, logarithmic, at which a claim's interval is narrow enough. It
/// depends on what was claimed, never on what was measured: a stop that waited
/// for a verdict would find too many.
pub(super) fn target_width(claim: &Claim, target_ci: f64) -> f64 {
    let distance = match claim.published {
        Some(published) if published > 0.0 && claim.threshold > 0.0 => {
            (published / claim.threshold).ln().abs()
        }
        _ => 0.0,
    };
    let band = claim.margin.map_or(0.0, f64::ln_1p);
    let bounds = claim
        .threshold_high
        .map_or(0.0, |high| (high / claim.threshold).ln() / 2.0);
    let from_claim = match claim.direction {
        ClaimDirection::Equal => band / 2.0,
        ClaimDirection::Within => bounds / 2.0,
        _ => distance * WIDTH_SHARE,
    };
    target_ci.max(from_claim)
}

/// What a claim is judged on.
struct Case {
    p: f64,
    margin: f64,
    blocks: usize,
    evidence: Evidence,
}

enum Evidence {
    /// Logarithms of a ratio, one a block.
    Logs(Vec<f64>),
    /// A quantity that is bootstrapped.
    Derived(derived::Bootstrap),
}

/// Judges all claims of an experiment together.
pub(super) fn judge_all(
    experiment: &Experiment,
    treatments: &[Treatment],
    data: &Data,
) -> Vec<Verdict> {
    let cases: Vec<Result<Case, String>> = experiment
        .claims
        .iter()
        .map(|claim| case(claim, experiment, treatments, data))
        .collect();
    let ps: Vec<f64> = cases.iter().flatten().map(|case| case.p).collect();
    // Holm over the claims that can be tested; the others make no error.
    let mut steps = holm(&ps, ALPHA).into_iter();
    experiment
        .claims
        .iter()
        .zip(cases)
        .map(|(claim, case)| match case {
            Err(reason) => untestable(claim, experiment, reason),
            Ok(case) => {
                let step = steps.next().expect("one step a testable claim");
                judge(claim, experiment, &case, &step)
            }
        })
        .collect()
}

fn case(
    claim: &Claim,
    experiment: &Experiment,
    treatments: &[Treatment],
    data: &Data,
) -> Result<Case, String> {
    match &claim.test {
        Test::Never(reason) => Err(reason.clone()),
        Test::Ratio(contrast) => {
            let logs = contrast::block_logs(contrast, experiment, treatments, data)?;
            let noise = twin::margin(&contrast.metric, treatments, data);
            let margin = claim.margin.unwrap_or_default().max(noise);
            let (direction, threshold, log_margin) = on_log_scale(claim, margin);
            Ok(Case {
                p: decision_p(&logs, direction, threshold, log_margin),
                margin,
                blocks: logs.len(),
                evidence: Evidence::Logs(logs),
            })
        }
        Test::Derived(id) => {
            let spec = experiment.derived.iter().find(|derived| derived.id == *id);
            let spec = spec.ok_or("the derived quantity is not there")?;
            let bootstrap = derived::Bootstrap::new(spec, experiment, treatments, data)?;
            let margin = claim.margin.unwrap_or_default();
            let (direction, threshold, log_margin) = on_log_scale(claim, margin);
            let decided = |interval: &Interval| {
                let logs = interval.map(f64::ln);
                decide(&logs, direction, threshold, log_margin) != Decision::Inconclusive
            };
            Ok(Case {
                p: bootstrap.smallest_level(decided),
                margin,
                blocks: bootstrap.blocks(),
                evidence: Evidence::Derived(bootstrap),
            })
        }
    }
}

/// A claim's direction, threshold and margin as natural logarithms. Being
/// within two bounds is being equal to their middle with half their distance
/// as the margin.
fn on_log_scale(claim: &Claim, margin: f64) -> (Direction, f64, f64) {
    let threshold = claim.threshold.ln();
    match (claim.direction, claim.threshold_high) {
        (ClaimDirection::Less, _) => (Direction::Less, threshold, margin.ln_1p()),
        (ClaimDirection::Greater, _) => (Direction::Greater, threshold, margin.ln_1p()),
        (ClaimDirection::Within, Some(high)) => {
            let high = high.ln();
            (
                Direction::Equal,
                f64::midpoint(threshold, high),
                (high - threshold) / 2.0,
            )
        }
        _ => (Direction::Equal, threshold, margin.ln_1p()),
    }
}

fn judge(
    claim: &Claim,
    experiment: &Experiment,
    case: &Case,
    step: &toll_stats::HolmStep,
) -> Verdict {
    let confidence = 1.0 - step.level;
    let interval = match &case.evidence {
        Evidence::Logs(logs) => Some(hodges_lehmann(logs, confidence).map(f64::exp)),
        Evidence::Derived(bootstrap) => bootstrap.interval(confidence),
    };
    let Some(interval) = interval else {
        return untestable(
            claim,
            experiment,
            "the quantity is not defined on this run".into(),
        );
    };
    let (direction, threshold, margin) = on_log_scale(claim, case.margin);
    let decision = match step.rejected {
        true => decide(&interval.map(f64::ln), direction, threshold, margin),
        false => Decision::Inconclusive,
    };
    let outcome = match decision {
        Decision::Supported => Outcome::Supported,
        Decision::Refuted => Outcome::Refuted,
        Decision::Inconclusive => Outcome::Inconclusive,
    };
    let mut verdict = blank(claim, experiment);
    verdict.outcome = outcome;
    verdict.margin = case.margin;
    verdict.blocks = case.blocks;
    verdict.p_adjusted = Some(step.adjusted_p);
    verdict.reason = reason(claim, &interval, outcome, case.margin);
    // JSON has no infinity, so what lies beyond the levels is kept apart.
    match interval.estimate.is_finite() && interval.high.is_finite() {
        true => verdict.measured = Some(estimate(&interval)),
        false => verdict.beyond = Some(derived::bounded(&interval, confidence)),
    }
    verdict
}

fn untestable(claim: &Claim, experiment: &Experiment, reason: String) -> Verdict {
    Verdict {
        reason,
        ..blank(claim, experiment)
    }
}

fn blank(claim: &Claim, experiment: &Experiment) -> Verdict {
    let (contrast, quantity, unit) = match &claim.test {
        Test::Ratio(spec) => (
            contrast::describe(spec, experiment),
            spec.metric.clone(),
            String::new(),
        ),
        Test::Derived(id) => {
            let spec = experiment.derived.iter().find(|derived| derived.id == *id);
            let text = spec.map_or_else(String::new, |spec| spec.text.clone());
            let unit = spec.map_or_else(String::new, |spec| derived::unit(spec, experiment));
            (text, id.clone(), unit)
        }
        Test::Never(_) => (String::new(), String::new(), String::new()),
    };
    Verdict {
        id: claim.id.clone(),
        text: claim.text.clone(),
        report: claim.report.clone(),
        corrects: claim.corrects.clone(),
        contrast,
        quantity,
        unit,
        direction: claim.direction,
        threshold: claim.threshold,
        threshold_high: claim.threshold_high,
        published: claim.published,
        measured: None,
        beyond: None,
        margin: claim.margin.unwrap_or_default(),
        blocks: 0,
        p_adjusted: None,
        outcome: Outcome::NotTestable,
        reason: String::new(),
    }
}

/// Why the outcome is what it is, in a sentence.
fn reason(claim: &Claim, interval: &Interval, outcome: Outcome, margin: f64) -> String {
    let percent = format::percent(margin);
    let is_directed = matches!(
        claim.direction,
        ClaimDirection::Less | ClaimDirection::Greater
    );
    match outcome {
        Outcome::NotTestable => String::new(),
        Outcome::Inconclusive => "the interval is too wide to say".into(),
        Outcome::Supported => match claim.direction {
            ClaimDirection::Less => "the interval lies below the claim's bound".into(),
            ClaimDirection::Greater => "the interval lies above the claim's bound".into(),
            ClaimDirection::Equal => format!("the interval lies within the margin of {percent}"),
            ClaimDirection::Within => "the interval lies within the claim's bounds".into(),
        },
        Outcome::Refuted if interval.low == f64::INFINITY => {
            "it is not reached within the levels tried".into()
        }
        Outcome::Refuted if is_directed && claim.threshold != 1.0 => {
            let is_less = claim.direction == ClaimDirection::Less;
            let holds = if is_less {
                interval.high < 1.0 / (1.0 + margin)
            } else {
                interval.low > 1.0 + margin
            };
            match holds && matches!(claim.test, Test::Ratio(_)) {
                true => "the direction holds, but not to the extent claimed".into(),
                false => "the interval lies on the other side of the claim's bound".into(),
            }
        }
        Outcome::Refuted => match claim.direction {
            ClaimDirection::Less | ClaimDirection::Greater => {
                let inside = interval.low > 1.0 / (1.0 + margin) && interval.high < 1.0 + margin;
                match inside {
                    true => format!("no difference: the interval lies within ±{percent}"),
                    false => "the interval lies on the other side, or within the margin".into(),
                }
            }
            ClaimDirection::Equal => {
                format!("the interval lies outside the margin of {percent}")
            }
            ClaimDirection::Within => "the interval lies outside the claim's bounds".into(),
        },
    }
}
