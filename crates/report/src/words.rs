//! Wording that all kinds of reports share.

use std::collections::BTreeMap;
pub use toll_document::plural;

use crate::claim::model::{
    Analysis, Better, ClaimDirection, Estimate, ExplanatoryMetrics, GuestSummary, Metric,
    NearestCache, NoVerdict, Outcome, Relation, Replicates, RunComparison, RunRatio, Sessions,
    SideBySide, Staircase, TreatmentSummary, Verdict,
};
use crate::claim::{ALPHA, SESSIONS_MIN, metric_words};
use crate::format;
use crate::run::Machine;
use crate::spec::guest::{PARTNER, PARTNER_GUEST};

/// Outcomes in the order in which counts list them.
pub const OUTCOMES: [Outcome; 4] = [
    Outcome::Supported,
    Outcome::Refuted,
    Outcome::Undecided,
    Outcome::NotTestable,
];

/// Sign that distinguishes outcomes without colour.
pub fn symbol(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Supported => "✔",
        Outcome::Refuted => "✘",
        Outcome::Undecided => "?",
        Outcome::NotTestable => "–",
    }
}

/// The sign of a claim's verdict. The sign is double if the error rate of the whole run bounds the
/// verdict.
pub fn sign(verdict: &Verdict) -> &'static str {
    match (verdict.outcome, verdict.is_family_wise()) {
        (Outcome::Supported, true) => "✔✔",
        (Outcome::Refuted, true) => "✘✘",
        (Outcome::Undecided, _) if verdict.no_verdict == Some(NoVerdict::AtBorder) => "≈",
        (outcome, _) => symbol(outcome),
    }
}

/// A claim's verdict in words, or its state if it has none.
pub fn state(verdict: &Verdict) -> String {
    let Some(state) = &verdict.no_verdict else {
        return outcome(verdict.outcome).to_owned();
    };
    match state {
        NoVerdict::Leans { to, .. } => format!("leans {}", symbol(*to)),
        NoVerdict::Open { .. } => "open".into(),
        NoVerdict::AtBorder => "at the border".into(),
        NoVerdict::TooFewBlocks { .. } => "too few blocks".into(),
        NoVerdict::LeftTo { profile } => format!("left to {profile}"),
        NoVerdict::NotMeasured => "not measured yet".into(),
    }
}

/// Like [`state`], for a check.
pub fn check_state(verdict: &Verdict) -> String {
    match verdict.no_verdict {
        Some(_) => state(verdict),
        None => check_outcome(verdict.outcome).to_owned(),
    }
}

/// States the error rates that the signs promise.
pub fn promise() -> String {
    let share = format::percent(ALPHA);
    format!(
        "✔ ✘: on average at most {share} of a run's verdicts are wrong; ✔✔ ✘✘: besides, the \
         chance that any of these is wrong is at most {share}"
    )
}

/// The outcome in words.
pub fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Supported => "supported",
        Outcome::Refuted => "refuted",
        Outcome::Undecided => "undecided",
        Outcome::NotTestable => "not testable here",
    }
}

/// The outcome of a check of the machine and the instrument.
pub fn check_outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Supported => "passed",
        Outcome::Refuted => "failed",
        Outcome::Undecided => "undecided",
        Outcome::NotTestable => "not testable here",
    }
}

/// A ratio and its meaning: `1.3× slower [1.2, 1.4]`, `same, 1.00 [0.99,
/// 1.01]`.
pub fn change(relation: Relation, ratio: &Estimate, metric: &Metric) -> String {
    let (change, interval) = change_parts(relation, ratio, metric);
    format!("{change} {interval}")
}

/// [`change`] in two parts, the second being the interval in brackets.
pub fn change_parts(relation: Relation, ratio: &Estimate, metric: &Metric) -> (String, String) {
    let word = match relation {
        Relation::Same => "same",
        Relation::Undecided => "undecided",
        Relation::Better | Relation::Worse | Relation::Different => {
            return format::change_parts(ratio, metric);
        }
    };
    let (value, interval) = format::interval_parts(ratio, "");
    (format!("{word}, {value}"), interval)
}

/// The change of a treatment between runs, with its interval if `has_interval`.
pub fn change_between_runs(one: &RunRatio, metric: &Metric, has_interval: bool) -> String {
    let parts = one
        .ratio
        .map(|ratio| change_parts(one.relation, &ratio, metric));
    parts.map_or_else(
        || format::NOTHING.to_owned(),
        |parts| joined(parts, has_interval),
    )
}

fn joined((value, interval): (String, String), has_interval: bool) -> String {
    if has_interval {
        format!("{value} {interval}")
    } else {
        value
    }
}

/// Puts the ratio of two sides in a metric into a sentence. `observed` names the data
/// that leave it undecided: `5 blocks`.
pub fn sentence(
    [one, other]: [&str; 2],
    (name, metric): (&str, &Metric),
    (relation, estimate): (Relation, &Estimate),
    observed: &str,
) -> String {
    let (name, ratio) = (metric_words(name), format::ratio_interval(estimate));
    let verb = match metric.better {
        Better::Lower => "takes",
        Better::Higher | Better::Neither => "has",
    };
    let share = estimate.value - 1.0;
    let percent = format::percent(share.abs());
    match relation {
        Relation::Same => {
            format!("{one} and {other} do not differ in {name}: the ratio is {ratio}.")
        }
        Relation::Undecided => {
            format!(
                "{observed} cannot tell {one} and {other} apart by {name}: the ratio is {ratio}."
            )
        }
        _ if share < 0.0 => {
            format!("{one} {verb} {ratio} of the {name} of {other} ({percent} less).")
        }
        _ if share < 1.0 => {
            format!("{one} {verb} {ratio} times the {name} of {other} ({percent} more).")
        }
        _ => format!("{one} {verb} {ratio} times the {name} of {other}."),
    }
}

/// The bound that a claim sets for its quantity: `over 1.05`, `1.00 give or take 5 %`.
pub fn bound(verdict: &Verdict) -> String {
    let threshold = format::value(verdict.threshold, &verdict.unit);
    match (verdict.direction, verdict.threshold_high) {
        (ClaimDirection::Less, _) => format!("under {threshold}"),
        (ClaimDirection::Greater, _) => format!("over {threshold}"),
        (ClaimDirection::Within, Some(high)) => {
            format!("{threshold} to {}", format::value(high, &verdict.unit))
        }
        _ => format!(
            "{threshold} give or take {}",
            format::percent(verdict.margin)
        ),
    }
}

/// Counts verdicts by the outcomes that occur: `7 supported (5 ✔✔), 4 refuted (4 ✘✘)`.
pub fn counts<'a>(verdicts: impl IntoIterator<Item = &'a Verdict>) -> String {
    let counts = counted(verdicts, outcome, |kind, of_kind| {
        let family_wise: Vec<&&Verdict> =
            of_kind.iter().filter(|one| one.is_family_wise()).collect();
        match (kind, family_wise.first()) {
            (Outcome::Supported | Outcome::Refuted, Some(one)) => {
                format!(" ({} {})", family_wise.len(), sign(one))
            }
            _ => String::new(),
        }
    });
    if counts.is_empty() {
        "no claims were judged".to_owned()
    } else {
        counts
    }
}

/// States how many of several experiments have a wrong verdict, since each experiment has its own
/// error rate. `None` for a single experiment, whose report states its error rate itself.
pub fn wrong_verdicts(experiments: usize) -> Option<String> {
    let mean = ALPHA * experiments as f64;
    let share = format::percent(ALPHA);
    (experiments > 1).then(|| {
        format!(
            "at most {share} of experiments have a wrong ✔✔ or ✘✘: on average {mean:.2} of these \
             {experiments}"
        )
    })
}

/// Counts checks by the outcomes that occur: `7 passed, 1 failed`.
pub fn check_counts(checks: &[Verdict]) -> String {
    counted(checks, check_outcome, |_, _| String::new())
}

fn counted<'a>(
    verdicts: impl IntoIterator<Item = &'a Verdict>,
    word: fn(Outcome) -> &'static str,
    of_these: impl Fn(Outcome, &[&Verdict]) -> String,
) -> String {
    let (unmeasured, verdicts): (Vec<&Verdict>, Vec<&Verdict>) = verdicts
        .into_iter()
        .partition(|one| one.outcome == Outcome::NotTestable && one.no_verdict.is_some());
    let counts = OUTCOMES.into_iter().filter_map(|kind| {
        let of_kind = verdicts.iter().filter(|one| one.outcome == kind);
        let of_kind: Vec<&Verdict> = of_kind.copied().collect();
        let count = of_kind.len();
        (count > 0).then(|| format!("{count} {}{}", word(kind), of_these(kind, &of_kind)))
    });
    let mut states: BTreeMap<String, usize> = BTreeMap::new();
    for one in unmeasured {
        *states.entry(state(one)).or_default() += 1;
    }
    let states = states
        .iter()
        .map(|(state, count)| format!("{count} {state}"));
    counts.chain(states).collect::<Vec<_>>().join(", ")
}

/// The unit of a metric; empty for one that the run does not describe.
pub fn unit<'a>(metrics: &'a BTreeMap<String, Metric>, name: &str) -> &'a str {
    metrics.get(name).map_or("", |metric| metric.unit.as_str())
}

/// The ratio of the two sides of a claim in one metric, with its interval: `0.16 [0.15, 0.17]`. If
/// there is no ratio, the two values.
fn side_by_side(sides: &SideBySide, metrics: &BTreeMap<String, Metric>) -> String {
    let value = |value| format::value(value, unit(metrics, &sides.metric));
    let both = || format!("{} over {}", value(sides.of), value(sides.to));
    sides
        .ratio
        .as_ref()
        .map_or_else(both, format::ratio_interval)
}

const NONE_DIFFERS: &str = "nothing else that was measured differs";

/// Lists in one line the metrics that differ along with time, and the metrics that do not differ.
pub fn explanatory_metrics(found: &ExplanatoryMetrics, analysis: &Analysis) -> String {
    let differing = found.differing.iter().map(|sides| {
        let compared = side_by_side(sides, &analysis.metrics);
        format!("{} {compared}", metric_words(&sides.metric))
    });
    let mut parts: Vec<String> = differing.collect();
    if parts.is_empty() {
        parts.push(NONE_DIFFERS.to_owned());
    }
    if !found.same.is_empty() {
        let names: Vec<String> = found.same.iter().map(|name| metric_words(name)).collect();
        parts.push(format!("the same: {}", names.join(", ")));
    }
    parts.join("; ")
}

/// Short form of [`explanatory_metrics`]: the ratios of the first differing
/// metrics, and the number of the others.
pub fn explanatory_metrics_brief(
    found: &ExplanatoryMetrics,
    metrics: &BTreeMap<String, Metric>,
) -> String {
    let first = found.differing.iter().take(BRIEF_METRICS);
    let mut parts: Vec<String> = first
        .map(|sides| {
            let ratio = sides.ratio.map(|ratio| format::ratio(ratio.value));
            let ratio = ratio.unwrap_or_else(|| side_by_side(sides, metrics));
            format!("{} {ratio}", metric_words(&sides.metric))
        })
        .collect();
    match found.differing.len().saturating_sub(BRIEF_METRICS) {
        0 => {}
        more => parts.push(format!("{more} more")),
    }
    if parts.is_empty() {
        NONE_DIFFERS.to_owned()
    } else {
        parts.join(", ")
    }
}

const BRIEF_METRICS: usize = 3;

/// Title of a staircase: `latency_ns by size, huge_pages=none`.
pub fn staircase(staircase: &Staircase) -> String {
    let curve = format!(
        "{} by {}",
        metric_words(&staircase.metric),
        staircase.factor
    );
    if staircase.at.is_empty() {
        curve
    } else {
        format!("{curve}, {}", staircase.at)
    }
}

/// Names the cache nearest to a step: `L2 (2 MiB), at 0.61 of its size`.
pub fn nearest_cache(cache: Option<&NearestCache>) -> String {
    let Some(cache) = cache else {
        return "none within a factor of two".to_owned();
    };
    let size = format::bytes(cache.bytes as f64);
    let share = format::ratio(cache.share);
    format!("{} ({size}), at {share} of its size", cache.name)
}

/// The machine in one line.
pub fn machine_line(machine: &Machine) -> String {
    let cpus = if machine.cpus_online == 1 {
        "1 CPU".to_owned()
    } else {
        format!("{} CPUs", machine.cpus_online)
    };
    let place = match machine.virtualization.as_str() {
        "none" | "" => "bare metal".to_owned(),
        hypervisor => format!("virtual ({hypervisor})"),
    };
    [
        machine.hostname.clone(),
        format!("{}, {cpus}, {place}", machine.cpu_model),
        format!("Linux {}", machine.kernel_release),
        format!("{} memory", format::bytes(machine.memory_bytes as f64)),
        machine.work_file_system.kind.clone(),
    ]
    .into_iter()
    .filter(|part| !part.trim().is_empty())
    .collect::<Vec<_>>()
    .join(" · ")
}

/// A guest in one line.
pub fn guest_line(guest: &GuestSummary) -> String {
    let level = |name: &str| guest.levels.get(name).map_or("", String::as_str);
    let release = guest.facts.get("kernel release");
    let kernel = match release {
        Some(release) => format!("Linux {release} ({})", level("kernel")),
        None => format!("kernel {}", level("kernel")),
    };
    let accelerator = match guest.accelerator.as_deref() {
        Some("kvm") => "KVM".to_owned(),
        Some("tcg") => "TCG: emulated".to_owned(),
        Some("icount") => "TCG: instructions counted".to_owned(),
        Some(other) => other.to_owned(),
        None => "never came up".to_owned(),
    };
    let online = guest.facts.get("CPUs online").map(String::as_str);
    let cpus = online.unwrap_or(level("vcpus")).parse().unwrap_or(1);
    let mut parts = vec![
        format!("guest: {kernel}"),
        accelerator,
        // A guest that counts instructions has fewer vCPUs than requested.
        plural(cpus, "vCPU"),
        format!("{} memory", level("memory")),
    ];
    if !["", "0"].contains(&level("swap")) {
        parts.push(format!("{} swap", level("swap")));
    }
    if level(PARTNER) == PARTNER_GUEST {
        parts.push("with a partner".to_owned());
    }
    if !level("command_line").is_empty() {
        parts.push(format!("with {}", level("command_line")));
    }
    parts.push(match guest.failed {
        0 => plural(guest.boots, "boot"),
        failed => format!("{}, {failed} failed", plural(guest.boots, "boot")),
    });
    parts.join(" · ")
}

/// A time as stored (RFC 3339, UTC), to the minute: `2025-03-14 09:26 UTC`.
pub fn minute(time: &str) -> String {
    match (time.get(..10), time.get(11..16)) {
        (Some(day), Some(minute)) => format!("{day} {minute} UTC"),
        _ => time.to_owned(),
    }
}

/// How the trials of a treatment ended: `24`, `22, 2 failed`.
pub fn trials(treatment: &TreatmentSummary) -> String {
    let mut text = treatment.trials_completed.to_string();
    if treatment.trials_failed > 0 {
        text.push_str(&format!(", {} failed", treatment.trials_failed));
    }
    if treatment.trials_excluded > 0 {
        text.push_str(&format!(", {} excluded", treatment.trials_excluded));
    }
    text
}

/// The median of a treatment's trials in a metric, with its interval if `has_interval`.
pub fn median(
    treatment: &TreatmentSummary,
    metric: &str,
    analysis: &Analysis,
    has_interval: bool,
) -> String {
    let Some(estimate) = treatment.estimates.get(metric) else {
        return format::NOTHING.to_owned();
    };
    let parts = format::interval_parts(&estimate.median, unit(&analysis.metrics, metric));
    joined(parts, has_interval)
}

/// The label of the treatment with this index in the plan.
pub fn treatment_label(analysis: &Analysis, index: usize) -> String {
    let mut treatments = analysis.treatments.iter();
    let treatment = treatments.find(|treatment| treatment.index == index);
    treatment.map_or_else(|| format!("treatment {index}"), |one| one.label.clone())
}

/// The unit in a disturbance's name.
pub fn disturbance_unit(name: &str) -> &'static str {
    match name {
        _ if name.ends_with("_ns") => "ns",
        _ if name.contains("_bytes") => "bytes",
        _ if name.ends_with("_khz") => "kHz",
        _ => "count",
    }
}

/// Runs by their numbers: `run 7`, `runs 3, 5`, `runs 4-6`.
pub fn runs(ids: &[i64]) -> String {
    let runs = if ids.len() == 1 { "run" } else { "runs" };
    format!("{runs} {}", run_numbers(ids))
}

/// Numbers of runs in the notation of `toll compare`, with spaces added.
pub fn run_numbers(ids: &[i64]) -> String {
    let is_range = ids.len() > 2 && ids.windows(2).all(|pair| pair[1] == pair[0] + 1);
    let numbers: Vec<String> = ids.iter().map(i64::to_string).collect();
    if is_range {
        format!("{}-{}", ids[0], ids[ids.len() - 1])
    } else {
        numbers.join(", ")
    }
}

/// States the smallest difference between two sides that counts, and its basis.
pub(super) fn margin_between_runs(comparison: &RunComparison) -> String {
    let margin = format::percent(comparison.margin);
    let sessions = comparison.sessions;
    match (comparison.replicates, sessions.shift) {
        (Replicates::Sessions, _) => format!(
            "compared by run, so the intervals include what changes between runs; differences \
             under {margin} do not count"
        ),
        (Replicates::Trials, Some(_)) => format!(
            "differences under {margin} do not count; {}",
            unexcluded_shift(sessions)
        ),
        (Replicates::Trials, None) => format!(
            "differences under {margin} do not count, as A/A twins may differ by that much; {}",
            unexcluded_shift(sessions)
        ),
    }
}

/// States the shift between sessions that a comparison of few runs cannot exclude.
pub fn unexcluded_shift(Sessions { runs, shift }: Sessions) -> String {
    match shift {
        Some(shift) => format!(
            "with fewer than {SESSIONS_MIN} runs per side, a shift between sessions of up to {} \
             cannot be excluded ({runs} runs like the older one differ by that much)",
            format::percent(shift)
        ),
        None => format!(
            "with fewer than {SESSIONS_MIN} runs per side, no shift between sessions can be \
             excluded (estimating its size takes {SESSIONS_MIN} runs like the older one; there \
             {})",
            match runs {
                1 => "is 1".to_owned(),
                more => format!("are {more}"),
            }
        ),
    }
}
