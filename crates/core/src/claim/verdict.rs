//! Judging claims.

use toll_stats::{Decision, Interval, Look, Looks, Region, TestStep, decide};
use toll_stats::{benjamini_hochberg, can_reject, fixed_sequence, holm, tarone_holm};
use toll_stats::{stopped_decision_p, stopped_interval, values_needed};

use super::context::AnalysisContext;
use super::model::{ClaimDirection, EValues, ErrorRate, Estimate, NoVerdict, Outcome, Verdict};
use super::undecided::{self, State};
use super::{ALPHA, CHECK_ALPHA, CONFIDENCE, DecidingBlocks, MARGIN_MIN, Question};
use super::{contrast, derived, e_values, explanatory_metrics};
use crate::format;
use crate::plan::of_claim;
use crate::reason::Reason;
use crate::spec::{Claim, Experiment, Test};

/// Largest half-width of an interval that is narrow enough, as a share of the way from threshold to
/// published value. A quarter leaves three quarters for the error of the estimate.
const WIDTH_SHARE: f64 = 0.25;

/// Target half-width, logarithmic: sampling stops here even if the claim is undecided. A wider
/// interval could not give a verdict if the published value were true.
fn target_width(claim: &Claim, target_ci: f64) -> f64 {
    let margin = margin(claim);
    let from_claim = match (claim.direction(), claim.threshold_high(), claim.published) {
        (ClaimDirection::Equal, ..) if margin > 0.0 => margin / 2.0,
        (ClaimDirection::Within, Some(high), _) => (high / claim.threshold()).ln() / 4.0,
        (ClaimDirection::Less | ClaimDirection::Greater, _, Some(published))
            if published > 0.0 && claim.threshold() > 0.0 && published != claim.threshold() =>
        {
            (published / claim.threshold()).ln().abs() * WIDTH_SHARE
        }
        _ => f64::INFINITY,
    };
    target_ci.min(from_claim)
}

/// Returns the testable claims as questions, each with its verdict so far.
pub(super) fn questions(context: &AnalysisContext) -> Vec<Question> {
    let claims = context.experiment.claim_family().collect();
    let cases = cases(claims, ALPHA, context).into_iter();
    let testable = cases.filter_map(|(claim, case)| Some((claim, case.ok()?)));
    testable
        .map(|(claim, (case, steps))| {
            // The question needs a precise interval, and a decision at the stricter error rate of
            // the two.
            let step = steps.family;
            let (interval, _) = case.judge(&step);
            let (_, decision) = case.judge(steps.deciding());
            let narrowing = match &case.evidence {
                Evidence::Logs(_) => interval,
                // No number of blocks shows where between two levels the quantity lies.
                Evidence::Derived(quantity) => {
                    let at_look = case.confidence_at_look(step.level);
                    case.of_all_looks(quantity.unwidened_interval(at_look))
                }
            };
            let is_enough = narrowing.reaches(case.confidence(step.level));
            Question {
                id: claim.id.clone(),
                half_width: if is_enough {
                    logarithmic(&narrowing).half_width()
                } else {
                    f64::INFINITY
                },
                target: target_width(claim, context.experiment.run.target_ci),
                is_decided: step.rejected,
                must_be_decided: false,
                outcome: Some(outcome(decision)),
                treatments: of_claim(context.experiment, &claim.test(), context.treatments),
            }
        })
        .collect()
}

/// The data that a claim is judged on.
struct Case {
    region: Region,
    /// The look at which the last of the claim's blocks were judged.
    look: Look,
    blocks: usize,
    /// Number of interval ends that must hold simultaneously to decide the claim.
    tails: usize,
    evidence: Evidence,
}

enum Evidence {
    /// Logarithms of a ratio, one per block.
    Logs(Vec<f64>),
    Derived(derived::Quantity),
}

impl Evidence {
    fn blocks(&self) -> usize {
        match self {
            Self::Logs(logs) => logs.len(),
            Self::Derived(quantity) => quantity.blocks(),
        }
    }

    /// Returns the interval to show for a claim that is not judged.
    fn interval(&self) -> Interval {
        match self {
            Self::Logs(logs) => toll_stats::hodges_lehmann(logs, CONFIDENCE).map(f64::exp),
            Self::Derived(quantity) => quantity.interval(CONFIDENCE),
        }
    }
}

/// Judges all claims of an experiment together.
pub(super) fn judge_all(context: &AnalysisContext) -> Vec<Verdict> {
    let claims = context.experiment.claim_family().collect();
    judge_family(claims, ALPHA, context)
}

/// Judges each check on its own, so that it does not count in the error rates of the run.
pub(super) fn check_all(context: &AnalysisContext) -> Vec<Verdict> {
    let checks = context.experiment.checks();
    let judged = checks.flat_map(|check| judge_family(vec![check], CHECK_ALPHA, context));
    let alone = judged.map(|verdict| Verdict {
        error_rate: None,
        e_values: None,
        ..verdict
    });
    alone.collect()
}

fn judge_family(claims: Vec<&Claim>, alpha: f64, context: &AnalysisContext) -> Vec<Verdict> {
    let cases = cases(claims, alpha, context).into_iter();
    let judged = cases.map(|(claim, case)| match case {
        Err(reason) => untestable(claim, context, reason),
        Ok((case, steps)) => Verdict {
            explanatory_metrics: explanatory_metrics::find(claim, context),
            ..judge(claim, context, &case, &steps)
        },
    });
    judged.collect()
}

/// Returns the evidence on each claim, to be multiplied with that of other runs.
pub(super) fn e_values_of_all(context: &AnalysisContext) -> Vec<Option<EValues>> {
    let claims = context.experiment.claim_family();
    let of_claim = |claim| case(claim, context).ok()?.e_values();
    claims.map(of_claim).collect()
}

/// Result of a claim in the procedures over all claims of its run.
#[derive(Clone, Copy)]
struct Steps {
    /// Result in the procedure that bounds the chance of any wrong verdict.
    family: TestStep,
    /// Result in the procedure that bounds the share of wrong verdicts.
    discovery: TestStep,
}

impl Steps {
    /// Returns the step whose result counts: that of the family if it decides, else the other.
    fn deciding(&self) -> &TestStep {
        if self.family.rejected {
            &self.family
        } else {
            &self.discovery
        }
    }
}

/// The data of a claim with its steps, or why it cannot be judged.
type CaseAtStep = Result<(Case, Steps), Reason>;

/// Returns every claim with its data and its steps in the procedures. The procedures cover only the
/// claims that can be tested; the others cannot cause errors.
fn cases<'a>(
    claims: Vec<&'a Claim>,
    alpha: f64,
    context: &AnalysisContext<'a>,
) -> Vec<(&'a Claim, CaseAtStep)> {
    let claims = claims.into_iter();
    let cases: Vec<(&Claim, Result<Case, Reason>)> =
        claims.map(|claim| (claim, case(claim, context))).collect();
    let testable = cases.iter().filter_map(|(_, case)| case.as_ref().ok());
    let testable: Vec<&Case> = testable.collect();
    let ps: Vec<f64> = testable.iter().map(|case| case.p()).collect();
    let family = family_steps(&testable, &ps, alpha, context.looks());
    let steps = family.into_iter().zip(benjamini_hochberg(&ps, alpha));
    let mut steps = steps.map(|(family, discovery)| Steps { family, discovery });
    let mut with_step = |case| (case, steps.next().expect("one step a testable claim"));
    cases
        .into_iter()
        .map(|(claim, case)| (claim, case.map(&mut with_step)))
        .collect()
}

/// Tests claims so that the chance of any wrong verdict is at most `alpha`.
///
/// Holm's procedure applies where the data chose the number of blocks. Otherwise the smallest
/// attainable p-values are known in advance, and Tarone–Holm uses them. If none of these is small
/// enough, a fixed sequence tests one claim after another.
fn family_steps(cases: &[&Case], ps: &[f64], alpha: f64, looks: Looks) -> Vec<TestStep> {
    if !looks.is_one() {
        return holm(ps, alpha);
    }
    let least: Vec<f64> = cases.iter().map(|case| case.least_p()).collect();
    if can_reject(&least, alpha) {
        tarone_holm(ps, &least, alpha)
    } else {
        let mut order = sequence(cases);
        order.retain(|place| least[*place] <= alpha);
        fixed_sequence(ps, &order, alpha)
    }
}

/// Returns the order in which claims are tested one after another. Claims with one border
/// come first, in descending order of the distance from the border to the nearest block;
/// then the others as in the file. The distances are absolute, so they do not show on which
/// side of its border a claim is.
fn sequence(cases: &[&Case]) -> Vec<usize> {
    let distances: Vec<Option<f64>> = cases.iter().map(|case| case.least_distance()).collect();
    let mut order: Vec<usize> = (0..cases.len()).collect();
    let rank = |place: &usize| distances[*place].unwrap_or(-1.0);
    order.sort_by(|one, other| rank(other).total_cmp(&rank(one)));
    order
}

/// Collects the data that a claim is judged on.
fn evidence(claim: &Claim, context: &AnalysisContext) -> Result<Evidence, Reason> {
    match claim.test() {
        Test::Never(reason) => Err(reason.into()),
        Test::Ratio(contrast) => contrast::block_logs(contrast, context).map(Evidence::Logs),
        Test::Derived(id) => {
            let spec = context.derived(id);
            let spec = spec.ok_or("the derived quantity is missing")?;
            derived::Quantity::new(spec, context).map(Evidence::Derived)
        }
    }
}

fn case(claim: &Claim, context: &AnalysisContext) -> Result<Case, Reason> {
    let evidence = evidence(claim, context)?;
    if let Some(reason) = context.emulation_obstacle(claim.test()) {
        return Err(reason);
    }
    if let Some(fact) = claim.differ_by.clone() {
        return Err(Reason::OneMachine { fact });
    }
    let blocks = evidence.blocks();
    Ok(Case {
        region: region(claim),
        // No run ends because of a check.
        look: if claim.is_check {
            Look::ONLY
        } else {
            context.look_at(&of_claim(
                context.experiment,
                &claim.test(),
                context.treatments,
            ))
        },
        blocks,
        tails: tails(claim, context.experiment),
        evidence,
    })
}

impl Case {
    /// The smallest attainable p-value, given the number of blocks.
    fn least_p(&self) -> f64 {
        let all_on_one_side = 0.5_f64.powf(self.blocks as f64);
        let joint = match &self.evidence {
            Evidence::Logs(_) => f64::INFINITY,
            Evidence::Derived(quantity) => {
                self.region.sides() as f64 * quantity.least_level() / 2.0
            }
        };
        // The number of intervals may depend on values, but is never smaller than this.
        joint.min(self.tails as f64 * all_on_one_side).min(1.0)
    }

    /// Returns the smallest attainable p-value over all looks of the run.
    fn least_p_at_look(&self) -> f64 {
        let sides = self.region.sides() as f64;
        (sides * self.look.error(self.least_p() / sides)).min(1.0)
    }

    /// Returns the distance from the border to the nearest block, if there is one border and
    /// each block has a value.
    fn least_distance(&self) -> Option<f64> {
        let (Region::Below(border) | Region::Above(border)) = self.region else {
            return None;
        };
        let distance = |log: f64| (log - border).abs();
        let distances: Vec<f64> = match &self.evidence {
            Evidence::Logs(logs) => logs.iter().map(|log| distance(*log)).collect(),
            Evidence::Derived(quantity) => {
                let values = quantity.block_values().iter();
                values.map(|value| distance(value.max(0.0).ln())).collect()
            }
        };
        distances.into_iter().reduce(f64::min)
    }

    /// Returns the evidence that is multiplied with that of other runs, if each block has a
    /// value.
    fn e_values(&self) -> Option<EValues> {
        let values: Vec<f64> = match &self.evidence {
            Evidence::Logs(logs) => logs.clone(),
            Evidence::Derived(quantity) => {
                let values = quantity.evidence_values().iter();
                values.map(|value| value.max(0.0).ln()).collect()
            }
        };
        (!values.is_empty()).then(|| e_values::of_blocks(&values, self.region))
    }

    /// Confidence of the interval that decides at an error level. If the region has one
    /// border, only one end of the interval can err, so each end has the whole level.
    fn confidence(&self, level: f64) -> f64 {
        1.0 - 2.0 * level / self.region.sides() as f64
    }

    /// Confidence of the interval of a single look that decides at an error level.
    fn confidence_at_look(&self, level: f64) -> f64 {
        1.0 - 2.0 * self.look.tail(level / self.region.sides() as f64)
    }

    /// Returns the smallest level at which the claim is supported or refuted.
    fn p(&self) -> f64 {
        let sides = self.region.sides() as f64;
        match &self.evidence {
            Evidence::Logs(logs) => stopped_decision_p(logs, self.region, self.look) * sides / 2.0,
            Evidence::Derived(quantity) => {
                let decided = |interval: &Interval| {
                    decide(&logarithmic(interval), self.region) != Decision::Inconclusive
                };
                let level = quantity.smallest_level(decided);
                (sides * self.look.error(level / 2.0)).min(1.0)
            }
        }
    }

    /// Gives an interval of a single look the confidence over all looks.
    fn of_all_looks(&self, interval: Interval) -> Interval {
        let error = 2.0 * self.look.error((1.0 - interval.confidence) / 2.0);
        Interval {
            confidence: 1.0 - error.min(1.0),
            ..interval
        }
    }

    /// Returns the interval over all looks at a step's level, and its decision.
    fn judge(&self, step: &TestStep) -> (Interval, Decision) {
        match &self.evidence {
            Evidence::Logs(logs) => {
                let interval = stopped_interval(logs, self.confidence(step.level), self.look);
                (interval.map(f64::exp), self.decide(&interval, step))
            }
            Evidence::Derived(quantity) => {
                let at_look = self.confidence_at_look(step.level);
                let interval = self.of_all_looks(quantity.interval(at_look));
                (interval, self.decide(&logarithmic(&interval), step))
            }
        }
    }

    /// Returns the decision of a logarithmic interval at a step's level.
    fn decide(&self, interval: &Interval, step: &TestStep) -> Decision {
        if step.rejected {
            decide(interval, self.region)
        } else {
            Decision::Inconclusive
        }
    }
}

/// Converts an interval to the scale of a claim's region; a share below 0 is below any
/// bound.
fn logarithmic(interval: &Interval) -> Interval {
    interval.map(|value| value.max(0.0).ln())
}

/// Relative difference up to which values count as the same as a claim's threshold. Ratios
/// are not distinguished from 1 more finely than two layouts of one program differ.
fn margin(claim: &Claim) -> f64 {
    let own = claim.margin.unwrap_or_default();
    let is_sameness = claim.direction() == ClaimDirection::Equal || claim.threshold() == 1.0;
    match claim.test() {
        Test::Ratio(_) if is_sameness => own.max(MARGIN_MIN),
        _ => own,
    }
}

/// Returns the region, in logarithms, in which a claim holds.
fn region(claim: &Claim) -> Region {
    let (threshold, margin) = (claim.threshold().ln(), margin(claim).ln_1p());
    match (claim.direction(), claim.threshold_high()) {
        (ClaimDirection::Less, _) => Region::Below(threshold - margin),
        (ClaimDirection::Greater, _) => Region::Above(threshold + margin),
        (ClaimDirection::Within, Some(high)) => Region::Within(threshold, high.ln()),
        _ => Region::Within(threshold - margin, threshold + margin),
    }
}

/// Returns the fewest blocks that can decide every claim of an experiment; `None` if a run
/// tests no claims.
pub(super) fn blocks_needed(experiment: &Experiment) -> Option<usize> {
    let is_tested = |claim: &&Claim| {
        let is_left = experiment.left_to.contains_key(&claim.id);
        !is_left && claim.differ_by.is_none() && !matches!(claim.test(), Test::Never(_))
    };
    let claims = experiment.claim_family().filter(is_tested);
    let sides_and_tails = claims.map(|claim| {
        let sides = region(claim).sides();
        (sides as f64, tails(claim, experiment) as f64)
    });
    let sides_and_tails: Vec<(f64, f64)> = sides_and_tails.collect();
    let looks = experiment.run.looks();
    let decides_all = |blocks: &usize| {
        let side = 0.5_f64.powf(*blocks as f64);
        let look = looks.at(*blocks);
        let least = sides_and_tails.iter();
        let least = least.map(|(sides, tails)| (sides * look.error(tails / sides * side)).min(1.0));
        let least: Vec<f64> = least.collect();
        let steps = if looks.is_one() {
            tarone_holm(&least, &least, ALPHA)
        } else {
            holm(&least, ALPHA)
        };
        steps.iter().all(|step| step.rejected)
    };
    (!sides_and_tails.is_empty()).then(|| (1..).find(decides_all))?
}

/// Returns the fewest blocks that can decide the claims that are testable here, judging by the
/// trials so far; `None` if no claim is.
pub(super) fn deciding_blocks(context: &AnalysisContext) -> Option<DecidingBlocks> {
    let experiment = context.experiment;
    let claims = experiment.claim_family();
    let testable = claims.filter(|claim| case(claim, context).is_ok());
    let tails: Vec<usize> = testable.map(|claim| tails(claim, experiment)).collect();
    let fewest = *tails.iter().min()?;
    let looks = experiment.run.looks();
    let can_decide = |blocks: &usize| {
        let side = 0.5_f64.powf(*blocks as f64);
        let least = tails.iter().map(|tails| (*tails as f64 * side).min(1.0));
        can_reject(&least.collect::<Vec<_>>(), ALPHA)
    };
    let in_sequence = values_needed(1.0 - 2.0 * ALPHA / fewest as f64, Looks::once(1));
    let before_looks = if looks.is_one() {
        usize::MAX
    } else {
        looks.first
    };
    let together = (in_sequence..before_looks).find(can_decide);
    Some(DecidingBlocks {
        in_sequence,
        // From the first look on, Holm's procedure counts every claim.
        together: together
            .unwrap_or_else(|| blocks_for(tails.len(), fewest, experiment).max(looks.first)),
    })
}

/// Returns how many ends of intervals must hold simultaneously to decide a claim.
fn tails(claim: &Claim, experiment: &Experiment) -> usize {
    let spec = match claim.test() {
        Test::Derived(id) => experiment.derived.iter().find(|one| one.id == id),
        _ => None,
    };
    region(claim).sides() * spec.map_or(1, |spec| derived::joint_intervals(spec, experiment))
}

/// Minimum number of blocks that decide the first of `claims` claims whose intervals have `tails`
/// ends.
fn blocks_for(claims: usize, tails: usize, experiment: &Experiment) -> usize {
    let level = ALPHA / claims as f64 / tails as f64;
    values_needed(1.0 - 2.0 * level, experiment.run.looks())
}

fn outcome(decision: Decision) -> Outcome {
    match decision {
        Decision::Supported => Outcome::Supported,
        Decision::Refuted => Outcome::Refuted,
        Decision::Inconclusive => Outcome::Undecided,
    }
}

fn judge(claim: &Claim, context: &AnalysisContext, case: &Case, steps: &Steps) -> Verdict {
    let step = steps.deciding();
    let (interval, decision) = case.judge(step);
    let mut verdict = blank(claim, context);
    verdict.outcome = outcome(decision);
    verdict.blocks = case.blocks;
    verdict.error_rate = step.rejected.then_some(if steps.family.rejected {
        ErrorRate::FamilyWise
    } else {
        ErrorRate::FalseDiscovery
    });
    verdict.p_adjusted = Some(steps.family.adjusted_p);
    verdict.p_adjusted_fdr = Some(steps.discovery.adjusted_p);
    verdict.e_values = case.e_values();
    if verdict.outcome == Outcome::Undecided {
        let state = undecided(claim, &logarithmic_of(case, &interval), case, step, context);
        verdict.reason = undecided::detail(&state);
        verdict.no_verdict = Some(state);
    } else {
        verdict.reason = reason(claim, &interval, &verdict);
    }
    show(&mut verdict, &interval);
    verdict
}

/// Stores the interval in the verdict. JSON has no infinity, so an interval beyond the levels is
/// stored separately.
fn show(verdict: &mut Verdict, interval: &Interval) {
    if interval.estimate.is_finite() && interval.high.is_finite() {
        verdict.measured = Some(Estimate::from(interval))
    } else {
        verdict.beyond = Some(derived::bounded(interval))
    }
}

fn untestable(claim: &Claim, context: &AnalysisContext, reason: Reason) -> Verdict {
    let mut verdict = blank(claim, context);
    verdict.no_verdict = context.why_unmeasured(claim, &reason);
    verdict.reason = match &verdict.no_verdict {
        Some(state) => undecided::detail(state),
        None => reason.to_string(),
    };
    if let Ok(evidence) = evidence(claim, context) {
        match reason {
            // The ratio of emulated times is shown, but never judged.
            Reason::Emulated if matches!(evidence, Evidence::Logs(_)) => {
                let ratio = Estimate::from(&evidence.interval());
                let words = format::ratio_interval(&ratio);
                verdict.reason = format!("{reason}; the ratio was {words}");
                verdict.unjudged_ratio = Some(ratio);
            }
            // The value is only measured here. A report on many machines judges it.
            Reason::OneMachine { .. } => {
                verdict.blocks = evidence.blocks();
                show(&mut verdict, &evidence.interval());
            }
            _ => {}
        }
    }
    verdict.cause = Some(reason).filter(|_| verdict.no_verdict.is_none());
    verdict
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
        contradicted: claim.contradicted.clone(),
        measured: None,
        beyond: None,
        margin: margin(claim),
        blocks: 0,
        p_adjusted: None,
        p_adjusted_fdr: None,
        e_values: None,
        error_rate: None,
        no_verdict: None,
        outcome: Outcome::NotTestable,
        cause: None,
        unjudged_ratio: None,
        reason: String::new(),
        explanatory_metrics: None,
    }
}

/// Returns the reason for the outcome, in a sentence.
fn reason(claim: &Claim, interval: &Interval, verdict: &Verdict) -> String {
    let margin = format::percent(verdict.margin);
    match (verdict.outcome, claim.direction()) {
        (Outcome::NotTestable | Outcome::Undecided, _) => String::new(),
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
            "no level that was tried reaches the value".into()
        }
        (Outcome::Refuted, ClaimDirection::Equal) => {
            format!("the interval lies outside the margin of {margin}")
        }
        (Outcome::Refuted, ClaimDirection::Within) => {
            "the interval lies outside the claim's bounds".into()
        }
        (Outcome::Refuted, _) => refuted(claim, interval, verdict),
    }
}

/// Describes how far a claim is from a verdict.
fn undecided(
    claim: &Claim,
    interval: &Interval,
    case: &Case,
    step: &TestStep,
    context: &AnalysisContext,
) -> NoVerdict {
    let level = step.level.max(f64::MIN_POSITIVE);
    let logs: Vec<f64> = match &case.evidence {
        Evidence::Logs(logs) => logs.clone(),
        Evidence::Derived(quantity) => {
            let values = quantity.block_values().iter();
            values.map(|value| value.max(0.0).ln()).collect()
        }
    };
    let confidence = (1.0 - 2.0 * level / case.tails as f64).max(f64::EPSILON);
    let looks = if claim.is_check {
        Looks::once(case.blocks)
    } else {
        context.looks()
    };
    let state = State {
        region: case.region,
        logs: &logs,
        blocks: case.blocks,
        interval: *interval,
        level,
        p: case.p(),
        least_p: case.least_p_at_look(),
        fewest: values_needed(confidence, looks),
        target: target_width(claim, context.experiment.run.target_ci),
        block_s: context.block_s(),
    };
    state.describe()
}

/// Converts a shown interval to the scale of the claim's region.
fn logarithmic_of(case: &Case, interval: &Interval) -> Interval {
    match &case.evidence {
        Evidence::Logs(_) => interval.map(f64::ln),
        Evidence::Derived(_) => logarithmic(interval),
    }
}

/// Returns why a claim with the direction `less` or `greater` is refuted.
fn refuted(claim: &Claim, interval: &Interval, verdict: &Verdict) -> String {
    let is_less = claim.direction() == ClaimDirection::Less;
    if claim.threshold() != 1.0 {
        let beyond = 1.0 + MARGIN_MIN;
        let holds = if is_less {
            interval.high < 1.0 / beyond
        } else {
            interval.low > beyond
        };
        return if holds && matches!(claim.test(), Test::Ratio(_)) {
            "the direction holds, but not to the extent claimed".into()
        } else {
            "the interval lies on the other side of the claim's bound".into()
        };
    }
    let bound = 1.0 + verdict.margin;
    let margin = format::percent(verdict.margin);
    let goes_other_way = if is_less {
        interval.low > 1.0
    } else {
        interval.high < 1.0
    };
    if interval.low >= 1.0 / bound && interval.high <= bound {
        format!("no difference: the interval lies within ±{margin}")
    } else if goes_other_way {
        "the difference goes the other way".into()
    } else {
        format!("a difference in this direction is below {margin}")
    }
}
