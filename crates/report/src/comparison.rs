//! Compares a run's treatments with the reference, if there is one.

use toll_wire::{Role, metrics_with};

use super::comparison_table::{ComparisonRow, ComparisonTable};
use super::footnotes::Footnotes;
use super::{differences, words};
use crate::claim::model::{Analysis, Better, Comparison, Metric, Relation, TreatmentSummary};
use crate::claim::{CPU_TIME, MARGIN_MIN, Run, metric_words};
use crate::format;
use crate::spec::WorkloadKind;

/// Returns the metrics to show: those that the run compares and, for commands, CPU time
/// and memory.
pub fn metrics(run: &Run) -> Vec<&str> {
    let analysis = &run.analysis;
    let mut metrics: Vec<&str> = run.stored.experiment.compared_metrics().collect();
    metrics[0] = &analysis.primary_metric;
    if run.stored.experiment.workload.kind == WorkloadKind::Command {
        let named = metrics.clone();
        let unnamed = metrics_with(Role::Shown)
            .map(|metric| metric.name)
            .filter(|name| analysis.metrics.contains_key(*name) && !named.contains(name));
        metrics.extend(unnamed);
    }
    metrics
}

/// Builds the table of treatments by a run's metrics, or the list of differences of a run with
/// many comparisons. The first metric decides the relation of a treatment to the reference.
pub fn table(run: &Run) -> ComparisonTable {
    let (analysis, metrics) = (&run.analysis, &metrics(run)[..]);
    let limit = run.stored.experiment.run.regression_limit;
    if !analysis.overall.is_empty() {
        return differences::list(analysis, limit);
    }
    let treatments = || {
        analysis
            .treatments
            .iter()
            .filter(|one| one.twin_of.is_none())
    };
    let notes: Vec<Vec<String>> = treatments()
        .map(|one| {
            let mut notes = notes(one, analysis);
            let compared = comparison(analysis, one.index, metrics[0]);
            notes.extend(compared.and_then(|compared| compared.reason.clone()));
            let functions = compared.and_then(|compared| compared.functions.as_ref());
            notes.extend(functions.map(differences::functions).into_iter().flatten());
            notes
        })
        .collect();
    let footnotes = Footnotes::shared(notes.iter().flatten().map(String::as_str));
    let rows = treatments().zip(notes).map(|(treatment, mut notes)| {
        let marks = notes
            .iter()
            .filter_map(|note| footnotes.mark(note))
            .collect();
        notes.retain(|note| footnotes.mark(note).is_none());
        ComparisonRow {
            label: treatment.label.clone(),
            marks,
            cells: metrics
                .iter()
                .flat_map(|metric| cells(treatment, metric, *metric == metrics[0], analysis))
                .collect(),
            relation: comparison(analysis, treatment.index, metrics[0]).map(|one| one.relation),
            is_skipped: treatment.skipped.is_some(),
            notes,
        }
    });
    let rows = rows.collect();
    let mut columns = vec!["treatment".to_owned()];
    for metric in metrics {
        columns.push(metric_words(metric));
        if is_compared(analysis, metric) {
            columns.push("change".to_owned());
        }
    }
    let mut footnotes = footnotes.lines();
    footnotes.extend(
        limit
            .into_iter()
            .flat_map(|limit| differences::against_limit(analysis, limit)),
    );
    ComparisonTable {
        columns,
        unnamed_columns: metrics.len() - run.stored.experiment.compared_metrics().count(),
        rows,
        footnotes,
        sentence: sentence(analysis),
        is_list: false,
    }
}

/// The comparison of a treatment with the reference.
fn comparison<'a>(analysis: &'a Analysis, index: usize, metric: &str) -> Option<&'a Comparison> {
    let mut all = analysis.comparisons.iter();
    all.find(|one| one.treatment == index && one.metric == metric)
}

fn is_compared(analysis: &Analysis, metric: &str) -> bool {
    // For a metric that the user did not name, the value is enough.
    let mut comparisons = analysis.comparisons.iter();
    comparisons.any(|one| one.metric == metric && one.is_judged)
}

/// Returns the median of a metric, with an interval for the first metric. The change follows if
/// treatments are compared by the metric.
fn cells(
    treatment: &TreatmentSummary,
    metric: &str,
    is_first: bool,
    analysis: &Analysis,
) -> Vec<String> {
    let mut cells = vec![words::median(treatment, metric, analysis, is_first)];
    if !is_compared(analysis, metric) {
        return cells;
    }
    let is_reference = |one: &Comparison| one.reference == treatment.index;
    cells.push(match comparison(analysis, treatment.index, metric) {
        Some(one) => words::change(one.relation, &one.ratio, &analysis.metrics[metric]),
        None if analysis.comparisons.iter().any(is_reference) => "reference".to_owned(),
        None => format::NOTHING.to_owned(),
    });
    cells
}

fn notes(treatment: &TreatmentSummary, analysis: &Analysis) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(reason) = &treatment.skipped {
        notes.push(format!("skipped: {reason}"));
    }
    let is_odd = treatment.trials_failed + treatment.trials_excluded > 0
        || treatment.trials_completed != analysis.blocks && treatment.skipped.is_none();
    if is_odd {
        notes.push(format!("trials: {}", words::trials(treatment)));
    }
    if let Some(failure) = &treatment.first_failure {
        notes.push(format!("first failure: {failure}"));
    }
    notes.extend(treatment.notes.iter().cloned());
    notes
}

/// Puts the comparison of the best treatment by the main metric into a sentence.
fn sentence(analysis: &Analysis) -> Option<String> {
    let name = &analysis.primary_metric;
    let metric = analysis.metrics.get(name)?;
    let compared = analysis
        .comparisons
        .iter()
        .filter(|one| one.metric == *name);
    let by_ratio = |a: &&Comparison, b: &&Comparison| a.ratio.value.total_cmp(&b.ratio.value);
    let best = match metric.better {
        Better::Higher => compared.max_by(by_ratio)?,
        Better::Lower | Better::Neither => compared.min_by(by_ratio)?,
    };
    let sides =
        [best.treatment, best.reference].map(|index| words::treatment_label(analysis, index));
    let describe = |name: &str, metric: &Metric, compared: &Comparison| {
        let sentence = words::sentence(
            sides.each_ref().map(String::as_str),
            (name, metric),
            (compared.relation, &compared.ratio),
            &words::plural(analysis.blocks, "block"),
        );
        match (compared.relation, compared.exceeds_margin) {
            (Relation::Undecided, _) | (_, Some(_)) => sentence,
            (_, None) => {
                let margin = format::percent(MARGIN_MIN);
                format!("{sentence} More blocks can tell whether that is over {margin}.")
            }
        }
    };
    let sentence = describe(name, metric, best);
    let by_cpu_time = analysis.comparisons.iter().find(|one| {
        let is_of_both = (one.treatment, one.reference) == (best.treatment, best.reference);
        one.metric == CPU_TIME && is_of_both && one.relation != Relation::Undecided
    });
    let by_cpu_time = by_cpu_time.filter(|_| best.relation == Relation::Undecided);
    let mut sentences = vec![sentence];
    if let (Some(compared), Some(metric)) = (by_cpu_time, analysis.metrics.get(CPU_TIME)) {
        sentences.push(describe(CPU_TIME, metric, compared));
    }
    if best.relation == Relation::Undecided {
        sentences.extend(why_time_scatters(analysis, best.reference));
    }
    Some(sentences.join(" "))
}

/// Names what kept commands off their CPUs, if that took a good part of the commands' time.
fn why_time_scatters(analysis: &Analysis, treatment: usize) -> Option<String> {
    const GOOD_PART: f64 = 0.1;
    let metric = &analysis.primary_metric;
    if analysis.metrics[metric].unit != "ns" {
        return None;
    }
    let estimates = &analysis.treatments[treatment].estimates;
    let duration_ns = estimates.get(metric)?.median.value;
    let met = |name: &str| analysis.disturbances.iter().find(|one| one.name == name);
    let mut causes = Vec::new();
    if let Some(waits) = met("psi_cpu_some_ns").filter(|one| one.median > GOOD_PART * duration_ns) {
        let share = format::percent((waits.median / duration_ns).min(1.0));
        causes.push(format!("tasks waited for a CPU for {share} of the time"));
    }
    let is_often = |affected: usize, of: usize| affected as f64 > GOOD_PART * of as f64;
    if let Some(stolen) =
        met("steal_ns").filter(|one| is_often(one.trials_affected, one.trials_recorded))
    {
        let (affected, all) = (stolen.trials_affected, stolen.trials_recorded);
        causes.push(format!(
            "the hypervisor took time from {affected} of {all} trials"
        ));
    }
    (!causes.is_empty()).then(|| format!("Meanwhile {}.", causes.join(", and ")))
}
