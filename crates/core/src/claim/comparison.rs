//! Comparisons of treatments with their reference.

use toll_stats::{Decision, hodges_lehmann, stopped_interval, values_needed};
use toll_wire::guest::PATH_LENGTH;

use super::context::AnalysisContext;
use super::metric::{other_time, resources};
use super::model::{Better, Comparison, Relation};
use super::ratio::JudgedRatio;
use super::{ALPHA, CONFIDENCE, MARGIN_MIN, Question, emulation, functions, overall, twin};
use crate::plan::{self, Treatment};
use crate::reason::EMULATED;
use crate::spec::{Experiment, WorkloadKind};

/// Counts the comparisons of some pairs of treatments: one for each metric that trials of both can
/// have.
fn count(experiment: &Experiment, treatments: &[Treatment], pairs: &[(usize, usize)]) -> usize {
    let of_pair = |(one, to): &(usize, usize)| {
        let can_have = |metric: &&str| {
            [one, to]
                .iter()
                .all(|index| can_have(experiment, &treatments[**index], metric))
        };
        experiment.compared_metrics().filter(can_have).count()
    };
    pairs.iter().map(of_pair).sum()
}

/// Returns whether trials of a treatment can have a metric. The treatment's workload must have the
/// metric. A guest that counts instructions has no times, and only such a guest has path lengths.
fn can_have(experiment: &Experiment, treatment: &Treatment, metric: &str) -> bool {
    let counts_instructions = treatment
        .levels
        .get("accelerator")
        .is_some_and(|level| level.text == "icount");
    let fits_clock = if counts_instructions {
        !emulation::is_time(experiment, metric)
    } else {
        !metric.ends_with(PATH_LENGTH)
    };
    let own = experiment.kind(&treatment.levels);
    let has = |kind: WorkloadKind| kind.metrics().iter().any(|known| known == metric);
    let mut others = experiment.rows.iter().map(|row| row.kind);
    fits_clock && (has(own) || !others.any(has))
}

/// Confidence of each comparison's interval, such that all intervals of an experiment hold
/// simultaneously: 1 - alpha/k for k comparisons (Bonferroni).
pub(super) fn confidence(comparisons: usize) -> f64 {
    1.0 - ALPHA / comparisons.max(1) as f64
}

/// Comparisons by the other time (wall-clock or processor time, whichever was not requested) have a
/// fifth of the error rate of the requested comparisons. At most 6 % of runs have a wrong
/// comparison of either kind.
const OTHER_TIME_FACTOR: usize = 5;

/// Confidence of each comparison by the other time (see [`OTHER_TIME_FACTOR`]), given the number of
/// requested comparisons.
fn confidence_of_other_time(comparisons: usize) -> f64 {
    confidence(comparisons * OTHER_TIME_FACTOR)
}

/// Returns the fewest blocks that can decide the comparisons within a run of this experiment;
/// `None` if the experiment compares nothing.
pub(super) fn blocks_needed(experiment: &Experiment, treatments: &[Treatment]) -> Option<usize> {
    let pairs = plan::pairs(experiment, treatments);
    let comparisons = count(experiment, treatments, &pairs);
    let needed = || values_needed(confidence(comparisons), experiment.run.looks());
    (!pairs.is_empty()).then(needed)
}

/// Compares all treatments with the reference in the main metric, then in the other
/// requested metrics, then in the resources that commands used.
pub(super) fn compare_all(context: &AnalysisContext) -> Vec<Comparison> {
    let pairs = context.pairs();
    let named: Vec<&str> = context.experiment.compared_metrics().collect();
    let all = named.iter().copied().chain(resources(context.experiment));
    let family = count(context.experiment, context.treatments, &pairs);
    let is_list = overall::is_list(context);
    let other_time = other_time(context.experiment);
    let mut comparisons = Vec::new();
    for metric in all {
        let is_judged = named.contains(&metric);
        let comparing = Comparing {
            metric,
            confidence: match metric {
                _ if is_judged => confidence(family),
                _ if other_time == Some(metric) => confidence_of_other_time(family),
                _ => CONFIDENCE,
            },
            is_judged,
            may_stop: is_judged || other_time == Some(metric),
            is_list,
            context,
        };
        let compared = pairs.iter().filter_map(|pair| comparing.compare(*pair));
        comparisons.extend(compared);
    }
    comparisons
}

/// Returns why treatments that ran are not compared by a requested metric.
pub(super) fn obstacles(context: &AnalysisContext) -> Vec<String> {
    let pairs = context.pairs();
    let obstacle = |metric: &str| {
        let ran = pairs.iter().filter(|(treatment, reference)| {
            let columns = [treatment, reference].map(|one| context.column(metric, *one));
            columns.iter().all(|column| !column.is_empty())
        });
        let mut reasons = ran.filter_map(|(treatment, reference)| {
            let logs = context.log_ratios(metric, *treatment, *reference);
            logs.err()
        });
        reasons
            .next()
            .map(|reason| format!("some treatments are not compared by {metric}: {reason}"))
    };
    let metrics = context.experiment.compared_metrics();
    metrics.filter_map(obstacle).collect()
}

/// Settings that all comparisons in one metric share.
struct Comparing<'a> {
    metric: &'a str,
    confidence: f64,
    is_judged: bool,
    /// Whether intervals must hold at whichever look the run stopped.
    may_stop: bool,
    /// Whether the comparisons are shown as a list of differences, not as a table of treatments.
    is_list: bool,
    context: &'a AnalysisContext<'a>,
}

impl Comparing<'_> {
    fn compare(&self, (treatment, reference): (usize, usize)) -> Option<Comparison> {
        let (metric, context) = (self.metric, self.context);
        let logs = context.log_ratios(metric, treatment, reference).ok()?;
        let interval = if self.may_stop {
            stopped_interval(
                &logs,
                self.confidence,
                context.look_at(&[treatment, reference]),
            )
        } else {
            hodges_lehmann(&logs, self.confidence)
        };
        let may_judge = context.is_comparable(metric, &[treatment, reference]);
        let better = context.metric(metric).better;
        let mut judged = JudgedRatio::of_logs(&interval, self.confidence, better);
        judged.may_decide &= may_judge;
        let (relation, exceeds_margin) = match (judged.relation(0.0), judged.relation(MARGIN_MIN)) {
            (_, Relation::Same) => (Relation::Same, Some(false)),
            (relation, Relation::Undecided) => (relation, None),
            (relation, _) => (relation, Some(true)),
        };
        let reason = match relation {
            Relation::Undecided if !may_judge => Some(EMULATED.to_owned()),
            Relation::Undecided if !judged.may_decide => {
                let needed = values_needed(self.confidence, context.looks());
                Some(too_few_blocks(logs.len(), needed))
            }
            Relation::Undecided => Some(TOO_WIDE.to_owned()),
            _ => None,
        };
        let is_explained = relation.differs() && self.is_judged && metric == PATH_LENGTH;
        let functions = is_explained
            .then(|| functions::explain(context, (treatment, reference), self.confidence));
        Some(Comparison {
            treatment,
            reference,
            common: if self.is_list {
                overall::common_label(context, treatment)
            } else {
                String::new()
            },
            metric: metric.to_owned(),
            ratio: judged.ratio,
            relation,
            exceeds_margin,
            reason,
            may_decide: judged.may_decide,
            is_judged: self.is_judged,
            functions: functions.flatten(),
        })
    }
}

/// Says that a run of `blocks` blocks cannot decide a comparison.
pub fn too_few_blocks(blocks: usize, needed: usize) -> String {
    match blocks {
        1 => format!("1 block cannot decide; at least {needed} can"),
        _ => format!("{blocks} blocks cannot decide; at least {needed} can"),
    }
}

/// Why an interval that reaches its confidence decides nothing.
const TOO_WIDE: &str = "the interval is too wide; more blocks narrow it";

/// Returns the comparisons as questions, each at the confidence at which it is judged.
pub(super) fn questions(context: &AnalysisContext) -> Vec<Question> {
    let mut pairs = context.pairs();
    if pairs.is_empty() && context.experiment.reference.is_some() {
        // A single treatment is compared only with its twin. The run continues until the noise
        // between the two is known well enough.
        let twins = context.treatments.iter();
        pairs.extend(twins.filter_map(|twin| Some((twin.index, twin.twin_of?))));
    }
    let compared: Vec<&str> = context.experiment.compared_metrics().collect();
    let comparisons = count(context.experiment, context.treatments, &pairs);
    let each = |metric| {
        let pairs = pairs.iter();
        pairs.filter_map(move |pair| question(metric, *pair, comparisons, context))
    };
    compared.into_iter().flat_map(each).collect()
}

fn question(
    metric: &str,
    (treatment, reference): (usize, usize),
    comparisons: usize,
    context: &AnalysisContext,
) -> Option<Question> {
    let confidence = confidence(comparisons);
    if !context.is_comparable(metric, &[treatment, reference]) {
        return None;
    }
    let logs = context.log_ratios(metric, treatment, reference).ok()?;
    let interval = stopped_interval(&logs, confidence, context.look_at(&[treatment, reference]));
    let run = &context.experiment.run;
    let better = context.metric(metric).better;
    let limit = run.regression_limit.filter(|_| better != Better::Neither);
    let beside_twin = limit.and_then(|_| twin::compare(metric, reference, context));
    let noise = beside_twin.map_or(0.0, |twin| twin.ratio.reach());
    // Twins whose noise is within the limit need no more blocks.
    let is_twin_needed = limit.is_some_and(|limit| noise > limit);
    let twin = context
        .treatments
        .iter()
        .filter(|one| is_twin_needed && one.twin_of == Some(reference) && one.index != treatment);
    let judged = JudgedRatio {
        noise,
        ..JudgedRatio::of_logs(&interval, confidence, better)
    };
    let (is_decided, target) = match limit {
        Some(limit) => {
            let bound = match better {
                Better::Higher => -limit.ln_1p(),
                Better::Lower | Better::Neither => limit.ln_1p(),
            };
            let distance = (interval.estimate - bound).abs();
            let is_decided = judged.regression(limit) != Decision::Inconclusive;
            (is_decided, distance)
        }
        None => {
            let is_decided = judged.relation(MARGIN_MIN) != Relation::Undecided;
            (is_decided, run.target_ci)
        }
    };
    let own = [treatment, reference].into_iter();
    Some(Question {
        id: context.treatments[treatment].label.clone(),
        half_width: if judged.may_decide {
            interval.half_width()
        } else {
            f64::INFINITY
        },
        target,
        is_decided,
        must_be_decided: limit.is_some(),
        outcome: None,
        treatments: own.chain(twin.map(|twin| twin.index)).collect(),
    })
}
