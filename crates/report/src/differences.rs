//! List of differences for a run with many comparisons.

use toll_stats::Decision;

use super::comparison_table::{ComparisonRow, ComparisonTable};
use super::words;
use crate::claim::model::{
    Analysis, Comparison, Estimate, FunctionDifference, FunctionDifferences, Overall, Relation,
};
use crate::claim::{CPU_TIME, WALL_TIME, metric_words};
use crate::format;

/// Maximum number of functions shown for each difference.
const FUNCTIONS_SHOWN: usize = 10;

/// Lists the differences, largest first. The footnotes count the comparisons without a difference
/// or, with a limit, the comparisons on each side of the limit.
pub fn list(analysis: &Analysis, limit: Option<f64>) -> ComparisonTable {
    let judged = judged(analysis);
    let mut differing = judged.clone();
    differing.retain(|one| one.relation.differs());
    differing.sort_by(|a, b| size(&b.ratio).total_cmp(&size(&a.ratio)));
    let sentences: Vec<String> = analysis
        .overall
        .iter()
        .map(|one| sentence(one, limit))
        .collect();
    ComparisonTable {
        columns: ["what", "by", "ratio"].map(str::to_owned).into(),
        unnamed_columns: 0,
        rows: differing.iter().map(|one| row(one, analysis)).collect(),
        footnotes: match limit {
            Some(limit) => against_limit(analysis, limit),
            None => no_difference(&judged, analysis),
        },
        sentence: (!sentences.is_empty()).then(|| sentences.join(" ")),
        is_list: true,
    }
}

fn judged(analysis: &Analysis) -> Vec<&Comparison> {
    let all = analysis.comparisons.iter();
    all.filter(|one| one.is_judged).collect()
}

fn size(ratio: &Estimate) -> f64 {
    ratio.value.ln().abs()
}

fn row(one: &Comparison, analysis: &Analysis) -> ComparisonRow {
    let label = match analysis.overall.as_slice() {
        [_, _, ..] => format!(
            "{} ({})",
            one.common, analysis.treatments[one.treatment].label
        ),
        _ => one.common.clone(),
    };
    ComparisonRow {
        label,
        marks: String::new(),
        cells: vec![metric_words(&one.metric), ratio(&one.ratio)],
        relation: Some(one.relation),
        is_skipped: false,
        notes: one.functions.as_ref().map_or_else(Vec::new, functions),
    }
}

/// Returns one line for each function that contributes to a difference, and one line for the rest
/// of the difference.
pub(super) fn functions(one: &FunctionDifferences) -> Vec<String> {
    let whole = one.difference.value;
    let line = |function: &FunctionDifference| {
        let count = instructions(&function.instructions);
        let share = format::percent(function.instructions.value / whole);
        format!("{}: {count} instructions, {share}", function.name)
    };
    let mut lines: Vec<String> = one.listed.iter().take(FUNCTIONS_SHOWN).map(line).collect();
    if let more @ 1.. = one.listed.len().saturating_sub(FUNCTIONS_SHOWN) {
        lines.push(format!(
            "and {}, which --json lists",
            words::plural(more, "more function")
        ));
    }
    let rest = instructions(&one.rest);
    let of = instructions(&one.difference);
    lines.push(match one.listed.len() {
        0 => format!("no function stands out from chance in {of} instructions"),
        _ => {
            let share = format::percent(one.explained);
            format!("these explain {share} of {of} instructions; the rest is {rest}")
        }
    });
    lines
}

/// A difference with all its digits, and its interval.
fn instructions(difference: &Estimate) -> String {
    let ends = [difference.value, difference.low, difference.high];
    let [value, low, high] = ends.map(|count| format::signed(count.round() as i64));
    format!("{value} [{low}, {high}]")
}

/// A ratio to three decimals: path lengths repeat to more digits than anyone reads.
fn ratio(ratio: &Estimate) -> String {
    let [value, low, high] = [ratio.value, ratio.low, ratio.high].map(|end| match end {
        0.1..10.0 => format!("{end:.3}"),
        _ => format::significant(end),
    });
    format!("{value} [{low}, {high}]")
}

/// Sums up the comparisons that show no difference by the largest one that could have
/// gone unnoticed.
fn no_difference(judged: &[&Comparison], analysis: &Analysis) -> Vec<String> {
    let mut lines = Vec::new();
    let same = judged.iter().filter(|one| one.relation == Relation::Same);
    let largest = same
        .clone()
        .map(|one| one.ratio.reach())
        .fold(0.0, f64::max);
    let count = same.count();
    if count > 0 {
        lines.push(format!(
            "{} of {} show no difference: none is larger than {}",
            count,
            words::plural(judged.len(), "comparison"),
            format::percent(largest.max(0.0001))
        ));
    }
    let open = judged
        .iter()
        .filter(|one| one.relation == Relation::Undecided);
    lines.extend(undecided(open.copied().collect(), analysis));
    lines
}

/// Counts the comparisons on each side of a run's limit.
pub(super) fn against_limit(analysis: &Analysis, limit: f64) -> Vec<String> {
    let judged = judged(analysis);
    let of = |decision: Decision| -> Vec<&Comparison> {
        let all = judged.iter().copied();
        all.filter(|one| one.judged(analysis).regression(limit) == decision)
            .collect()
    };
    let count = |decision: Decision| format!("{} of {}", of(decision).len(), judged.len());
    let past = format::percent(limit);
    let mut lines = vec![format!(
        "past the limit of {past}: {}; below it: {}",
        count(Decision::Supported),
        count(Decision::Refuted)
    )];
    lines.extend(undecided(of(Decision::Inconclusive), analysis));
    lines.extend(cpu_time_would_decide(&judged, analysis, limit));
    lines.extend(waiting_got_longer(&judged, analysis, limit));
    lines
}

/// Finds the comparison of the same sides by a time metric that is not judged.
fn by_other_time<'a>(
    judged: &Comparison,
    metric: &str,
    analysis: &'a Analysis,
) -> Option<&'a Comparison> {
    let mut all = analysis.comparisons.iter().filter(|one| !one.is_judged);
    let sides = (judged.treatment, judged.reference);
    all.find(|one| one.metric == metric && (one.treatment, one.reference) == sides)
}

/// Says that CPU time would decide comparisons for which wall time scatters too much.
fn cpu_time_would_decide(
    judged: &[&Comparison],
    analysis: &Analysis,
    limit: f64,
) -> Option<String> {
    let side = |one: &Comparison| one.judged(analysis).regression(limit);
    let open = judged
        .iter()
        .filter(|one| one.metric == WALL_TIME && side(one) == Decision::Inconclusive);
    let sides: Vec<Option<Decision>> = open
        .map(|one| by_other_time(one, CPU_TIME, analysis).map(side))
        .collect();
    let count = |which| sides.iter().filter(|one| **one == Some(which)).count();
    let [past, below] = [Decision::Supported, Decision::Refuted].map(count);
    (past + below > 0).then(|| {
        format!(
            "CPU time would decide {} of {} undecided: {past} past the limit, {below} below it; \
             judge by CPU time (--metric cpu_ns) if these programs compute, not if they wait",
            past + below,
            sides.len()
        )
    })
}

/// Says that commands take longer though not on a CPU, if the limit applies to CPU time only.
fn waiting_got_longer(judged: &[&Comparison], analysis: &Analysis, limit: f64) -> Option<String> {
    let side = |one: &Comparison| one.judged(analysis).regression(limit);
    let longer: Vec<String> = judged
        .iter()
        .filter(|one| one.metric == CPU_TIME && side(one) == Decision::Refuted)
        .filter_map(|one| by_other_time(one, WALL_TIME, analysis))
        .filter(|one| side(one) == Decision::Supported)
        .map(|one| named(one, analysis))
        .collect();
    (!longer.is_empty()).then(|| {
        format!(
            "waiting, which CPU time leaves out, got longer: {} past the limit; --metric \
             duration_ns,cpu_ns judges by both times",
            longer.join("; ")
        )
    })
}

/// Names a comparison by its metric and sides, with its ratio.
fn named(one: &Comparison, analysis: &Analysis) -> String {
    let (metric, ratio) = (
        metric_words(&one.metric),
        format::ratio_interval(&one.ratio),
    );
    let what = match one.common.as_str() {
        "" => &analysis.treatments[one.treatment].label,
        common => common,
    };
    format!("{metric} of {what}, {ratio}")
}

/// Names the undecided comparisons, the widest interval first.
fn undecided(mut open: Vec<&Comparison>, analysis: &Analysis) -> Vec<String> {
    const LISTED: usize = 8;
    let mut lines = Vec::new();
    open.sort_by(|a, b| b.ratio.reach().total_cmp(&a.ratio.reach()));
    let (open, few): (Vec<_>, Vec<_>) = open.into_iter().partition(|one| one.may_decide);
    if let Some(reason) = few.iter().find_map(|one| one.reason.as_ref()) {
        lines.push(format!("{} undecided: {reason}", few.len()));
    }
    let reasons: Vec<String> = open
        .iter()
        .take(LISTED)
        .map(|one| named(one, analysis))
        .collect();
    let more = match open.len().saturating_sub(LISTED) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    if !reasons.is_empty() {
        lines.push(format!(
            "{} undecided, the widest first: {}{more}",
            open.len(),
            reasons.join("; ")
        ));
    }
    lines
}

/// Sums up all comparisons by the main metric. With a limit, it leaves out the counts, because then
/// only the side of the limit matters.
fn sentence(overall: &Overall, limit: Option<f64>) -> String {
    let Overall { new, base, .. } = overall;
    let (what, longer) = match overall.metric.as_str() {
        "path_length_instructions" => ("the instructions".to_owned(), ["longer", "shorter"]),
        other => (format!("the {}", metric_words(other)), ["worse", "better"]),
    };
    let ratio = ratio(&overall.ratio);
    let Overall {
        worse,
        better,
        different,
        same,
        compared,
        ..
    } = overall;
    let open = compared - worse - better - different - same;
    let mut counts = vec![
        format!("{worse} {}", longer[0]),
        format!("{better} {}", longer[1]),
        format!("{same} the same"),
    ];
    counts.extend((*different > 0).then(|| format!("{different} different")));
    counts.extend((open > 0).then(|| format!("{open} undecided")));
    let verb = match overall.metric.as_str() {
        "path_length_instructions" => "executes",
        _ => "takes",
    };
    let counts = match limit {
        Some(_) => String::new(),
        None => format!(": {}", counts.join(", ")),
    };
    format!(
        "{new} {verb} {ratio} times {what} of {base} over {}{counts}.",
        words::plural(*compared, "row")
    )
}
