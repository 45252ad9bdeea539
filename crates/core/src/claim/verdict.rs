//! Judging claims.

use toll_stats::{
    Decision, Direction, Interval, Margins, decide, holm, stopped_decision_p, stopped_interval,
};

use super::context::AnalysisContext;
use super::model::{ClaimDirection, Outcome, Verdict};
use super::summary::estimate;
use super::{ALPHA, CONFIDENCE, Width, contrast, derived, emulation, explanatory_metrics};
use crate::format;
use crate::spec::{Claim, Test};

/// Share of the way from threshold to published value that half an interval
/// may take up and still be narrow enough: a quarter leaves three for the
/// estimate to err in.
const WIDTH_SHARE: f64 = 0.25;

/// Half-width, logarithmic, at which a claim's interval is narrow enough. It
/// depends on what was claimed, never on what was measured: a stop that waited
/// for a verdict would find too many.
fn target_width(claim: &Claim, target_ci: f64) -> f64 {
    let distance = match claim.published {
        Some(published) if published > 0.0 && claim.threshold() > 0.0 => {
            (published / claim.threshold()).ln().abs()
        }
        _ => 0.0,
    };
    let band = claim.margin.map_or(0.0, f64::ln_1p);
    let bounds = claim
        .threshold_high()
        .map_or(0.0, |high| (high / claim.threshold()).ln() / 2.0);
    let from_claim = match claim.direction() {
        ClaimDirection::Equal => band / 2.0,
        ClaimDirection::Within => bounds / 2.0,
        _ => distance * WIDTH_SHARE,
    };
    target_ci.max(from_claim)
}

/// How wide the intervals of all testable claims are, each at the confidence of
/// the first, strictest step of Holm's procedure. One that the blocks are too few
/// for is as wide as can be. What is decided at that step is decided at any.
pub(super) fn widths(context: &AnalysisContext, target_ci: f64) -> Vec<Width> {
    let claims = context.experiment.claims.iter();
    let evidence: Vec<(&Claim, Evidence)> = claims
        .filter_map(|claim| Some((claim, evidence(claim, context).ok()?)))
        .collect();
    let confidence = 1.0 - ALPHA / evidence.len().max(1) as f64;
    let widths = evidence.into_iter().filter_map(|(claim, evidence)| {
        let (interval, judged, signs_p) = match &evidence {
            Evidence::Logs(logs) => {
                let interval = stopped_interval(logs, confidence);
                (interval, interval, 0.0)
            }
            Evidence::Derived(bootstrap) => {
                let interval = bootstrap.interval_of_resamples(confidence)?;
                let judged = bootstrap.widened(&interval).map(f64::ln);
                let signs_p = smallest_sign_p(bootstrap.blocks());
                (interval.map(f64::ln), judged, signs_p)
            }
        };
        let is_enough = interval.reaches(confidence);
        let decision = match is_enough && signs_p <= 1.0 - confidence {
            true => LogScale::new(claim, context).decide(&judged),
            false => Decision::Inconclusive,
        };
        let half_width = match is_enough {
            true => interval.half_width(),
            false => f64::INFINITY,
        };
        Some(Width {
            id: claim.id.clone(),
            half_width,
            target: target_width(claim, target_ci),
            outcome: Some(outcome(decision)),
        })
    });
    widths.collect()
}

/// What a claim is judged on.
struct Case {
    p: f64,
    scale: LogScale,
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
pub(super) fn judge_all(context: &AnalysisContext) -> Vec<Verdict> {
    let cases: Vec<Result<Case, String>> = context
        .experiment
        .claims
        .iter()
        .map(|claim| case(claim, context))
        .collect();
    let ps: Vec<f64> = cases.iter().flatten().map(|case| case.p).collect();
    // Holm over the claims that can be tested; the others make no error.
    let mut steps = holm(&ps, ALPHA).into_iter();
    context
        .experiment
        .claims
        .iter()
        .zip(cases)
        .map(|(claim, case)| match case {
            Err(reason) => untestable(claim, context, reason),
            Ok(case) => {
                let step = steps.next().expect("one step a testable claim");
                Verdict {
                    explanatory_metrics: explanatory_metrics::of(claim, context),
                    ..judge(claim, context, &case, &step)
                }
            }
        })
        .collect()
}

/// Collects what a claim is judged on.
fn evidence(claim: &Claim, context: &AnalysisContext) -> Result<Evidence, String> {
    let unjudged = emulation::obstacle(claim.test(), context);
    match claim.test() {
        Test::Never(reason) => Err(reason.to_owned()),
        Test::Ratio(contrast) => {
            let logs = contrast::block_logs(contrast, context)?;
            match unjudged {
                None => Ok(Evidence::Logs(logs)),
                Some(why) => {
                    let ratio = stopped_interval(&logs, CONFIDENCE).map(f64::exp);
                    let shown = format::ratio_interval(&estimate(&ratio));
                    Err(format!("{why}; the ratio was {shown}"))
                }
            }
        }
        Test::Derived(_) if unjudged.is_some() => Err(unjudged.unwrap_or_default()),
        Test::Derived(id) => {
            let spec = context.derived(id);
            let spec = spec.ok_or("the derived quantity is not there")?;
            derived::Bootstrap::new(spec, context).map(Evidence::Derived)
        }
    }
}

fn case(claim: &Claim, context: &AnalysisContext) -> Result<Case, String> {
    let evidence = evidence(claim, context)?;
    let scale = LogScale::new(claim, context);
    let (p, blocks) = match &evidence {
        Evidence::Logs(logs) => (
            stopped_decision_p(logs, scale.direction, scale.threshold, scale.margins),
            logs.len(),
        ),
        Evidence::Derived(bootstrap) => {
            let decided = |interval: &Interval| {
                scale.decide(&interval.map(f64::ln)) != Decision::Inconclusive
            };
            let blocks = bootstrap.blocks();
            // A few blocks that agree resample to an interval without width. So
            // no quantity is more certain than the signs of as many blocks.
            let p = bootstrap
                .smallest_level(decided)
                .max(smallest_sign_p(blocks));
            (p, blocks)
        }
    };
    Ok(Case {
        p,
        scale,
        blocks,
        evidence,
    })
}

/// The smallest two-sided p-value that a test of signs can have.
fn smallest_sign_p(blocks: usize) -> f64 {
    let exponent = i32::try_from(blocks).unwrap_or(i32::MAX);
    2.0 * 0.5_f64.powi(exponent).min(0.5)
}

/// A claim's direction, threshold and margins as natural logarithms.
#[derive(Clone, Copy)]
struct LogScale {
    direction: Direction,
    threshold: f64,
    margins: Margins,
}

impl LogScale {
    /// Being within two bounds is being equal to their middle with half their
    /// distance as the margin.
    fn new(claim: &Claim, context: &AnalysisContext) -> Self {
        let same = claim.margin.unwrap_or_default();
        let margins = match claim.test() {
            Test::Ratio(contrast) => context.margins(same, contrast.metric),
            _ => same.ln_1p().into(),
        };
        let threshold = claim.threshold().ln();
        let (direction, threshold, margins) = match (claim.direction(), claim.threshold_high()) {
            (ClaimDirection::Less, _) => (Direction::Less, threshold, margins),
            (ClaimDirection::Greater, _) => (Direction::Greater, threshold, margins),
            (ClaimDirection::Within, Some(high)) => {
                let high = high.ln();
                let half = (high - threshold) / 2.0;
                (
                    Direction::Equal,
                    f64::midpoint(threshold, high),
                    half.into(),
                )
            }
            _ => (Direction::Equal, threshold, margins),
        };
        Self {
            direction,
            threshold,
            margins,
        }
    }

    /// Decides on an interval of logarithms.
    fn decide(&self, logs: &Interval) -> Decision {
        decide(logs, self.direction, self.threshold, self.margins)
    }
}

fn outcome(decision: Decision) -> Outcome {
    match decision {
        Decision::Supported => Outcome::Supported,
        Decision::Refuted => Outcome::Refuted,
        Decision::Inconclusive => Outcome::Inconclusive,
    }
}

fn judge(
    claim: &Claim,
    context: &AnalysisContext,
    case: &Case,
    step: &toll_stats::HolmStep,
) -> Verdict {
    let confidence = 1.0 - step.level;
    let interval = match &case.evidence {
        Evidence::Logs(logs) => Some(stopped_interval(logs, confidence).map(f64::exp)),
        Evidence::Derived(bootstrap) => bootstrap.interval(confidence),
    };
    let Some(interval) = interval else {
        return untestable(
            claim,
            context,
            "the quantity is not defined on this run".into(),
        );
    };
    let decision = match step.rejected {
        true => case.scale.decide(&interval.map(f64::ln)),
        false => Decision::Inconclusive,
    };
    let mut verdict = blank(claim, context);
    verdict.outcome = outcome(decision);
    if claim.direction() != ClaimDirection::Within {
        verdict.margin = case.scale.margins.same.exp_m1();
        verdict.noise_margin = case.scale.margins.different.exp_m1();
    }
    verdict.blocks = case.blocks;
    verdict.p_adjusted = Some(step.adjusted_p);
    verdict.reason = reason(claim, &interval, &verdict, confidence);
    // JSON has no infinity, so what lies beyond the levels is kept apart.
    match interval.estimate.is_finite() && interval.high.is_finite() {
        true => verdict.measured = Some(estimate(&interval)),
        false => verdict.beyond = Some(derived::bounded(&interval, confidence)),
    }
    verdict
}

fn untestable(claim: &Claim, context: &AnalysisContext, reason: String) -> Verdict {
    Verdict {
        reason,
        ..blank(claim, context)
    }
}

fn blank(claim: &Claim, context: &AnalysisContext) -> Verdict {
    let (contrast, quantity, unit) = match claim.test() {
        Test::Ratio(spec) => (
            contrast::describe(spec, context.experiment),
            spec.metric.to_owned(),
            String::new(),
        ),
        Test::Derived(id) => {
            let spec = context.derived(id);
            let text = spec.map_or_else(String::new, |spec| spec.text.clone());
            let unit =
                spec.map_or_else(String::new, |spec| derived::unit(spec, context.experiment));
            (text, id.to_owned(), unit)
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
        direction: claim.direction(),
        threshold: claim.threshold(),
        threshold_high: claim.threshold_high(),
        published: claim.published,
        measured: None,
        beyond: None,
        margin: claim.margin.unwrap_or_default(),
        noise_margin: claim.margin.unwrap_or_default(),
        blocks: 0,
        p_adjusted: None,
        outcome: Outcome::NotTestable,
        reason: String::new(),
        explanatory_metrics: None,
    }
}

/// Why the outcome is what it is, in a sentence.
fn reason(claim: &Claim, interval: &Interval, verdict: &Verdict, confidence: f64) -> String {
    let margin = format::percent(verdict.margin);
    match (verdict.outcome, claim.direction()) {
        (Outcome::NotTestable, _) => String::new(),
        (Outcome::Inconclusive, _) => inconclusive(claim, interval, verdict, confidence),
        (Outcome::Supported, ClaimDirection::Less) => {
            "the interval lies below the claim's bound".into()
        }
        (Outcome::Supported, ClaimDirection::Greater) => {
            "the interval lies above the claim's bound".into()
        }
        (Outcome::Supported, ClaimDirection::Equal) => {
            format!("the interval lies within the margin of {margin}")
        }
        (Outcome::Supported, ClaimDirection::Within) => {
            "the interval lies within the claim's bounds".into()
        }
        (Outcome::Refuted, _) if interval.low == f64::INFINITY => {
            "it is not reached within the levels tried".into()
        }
        (Outcome::Refuted, ClaimDirection::Equal) => format!(
            "the interval lies outside the margin of {}",
            format::percent(verdict.noise_margin)
        ),
        (Outcome::Refuted, ClaimDirection::Within) => {
            "the interval lies outside the claim's bounds".into()
        }
        (Outcome::Refuted, _) => refuted(claim, interval, verdict),
    }
}

/// An interval that excludes no effect at all, but only one that noise could
/// make, must not read as if it were wide.
fn inconclusive(claim: &Claim, interval: &Interval, verdict: &Verdict, confidence: f64) -> String {
    let is_beyond_signs = smallest_sign_p(verdict.blocks) > 1.0 - confidence;
    if !interval.reaches(confidence) || is_beyond_signs {
        return match verdict.blocks {
            1 => "1 block is too few to say".into(),
            blocks => format!("{blocks} blocks are too few to say"),
        };
    }
    let is_plain = claim.threshold() == 1.0 && matches!(claim.test(), Test::Ratio(_));
    let excludes_one = interval.low > 1.0 || interval.high < 1.0;
    match is_plain && excludes_one && verdict.noise_margin > verdict.margin {
        true => format!(
            "the difference is not past what two runs of the same thing show here ({})",
            format::percent(verdict.noise_margin)
        ),
        false => "the interval crosses the bound, so it does not decide".into(),
    }
}

/// Why a claim that something is less, or greater, is refuted.
fn refuted(claim: &Claim, interval: &Interval, verdict: &Verdict) -> String {
    let is_less = claim.direction() == ClaimDirection::Less;
    if claim.threshold() != 1.0 {
        let beyond = 1.0 + verdict.noise_margin;
        let holds = match is_less {
            true => interval.high < 1.0 / beyond,
            false => interval.low > beyond,
        };
        return match holds && matches!(claim.test(), Test::Ratio(_)) {
            true => "the direction holds, but not to the extent claimed".into(),
            false => "the interval lies on the other side of the claim's bound".into(),
        };
    }
    let bound = 1.0 + verdict.margin;
    match interval.low >= 1.0 / bound && interval.high <= bound {
        true => format!(
            "no difference: the interval lies within ±{}",
            format::percent(verdict.margin)
        ),
        false => "the interval lies on the other side, or within the margin".into(),
    }
}
