//! Lines that a search prints.

use toll_core::claim::model::{Estimate, Relation};
use toll_core::claim::{CONFIDENCE, MARGIN_MIN};
use toll_core::format;
use toll_report::words::plural;
use toll_stats::Interval;

use crate::repository::Version;
use crate::search::{Bisection, Effect, Ending, Gap, Stage};

pub fn heading(versions: &[Version], metric: &str) -> String {
    let last = versions.len() - 1;
    format!(
        "bisect: {}..{}, {}, by {metric}",
        versions[0].short(),
        versions[last].short(),
        plural(last, "commit")
    )
}

/// Describes the state after a step of the search.
pub fn step(versions: &[Version], bisection: &Bisection, stage: Stage, places: &[usize]) -> String {
    let (before, at) = (places[0], places[1]);
    let compared = |effect: Effect| {
        format!(
            "{} is {} {}: {}; {}",
            versions[at].short(),
            relation(effect.relation),
            versions[before].short(),
            ratio(&effect.ratio),
            plural(effect.blocks, "block")
        )
    };
    match stage {
        Stage::Ends => bisection.ends().map_or_else(String::new, compared),
        Stage::Confirmation(_) => {
            let confirmed = bisection.confirmation(Gap { before, at });
            format!(
                "confirmation: {}",
                confirmed.map_or_else(String::new, compared)
            )
        }
        Stage::Search => {
            let (interval, blocks) = bisection.of_first(at).expect("it was measured");
            let suspects = bisection.suspects();
            format!(
                "{} (commit {at}): {} of {}; {}; {} left",
                versions[at].short(),
                ratio(&interval),
                versions[before].short(),
                plural(blocks, "block"),
                plural(suspects.count(), "suspect")
            )
        }
    }
}

fn relation(relation: Relation) -> &'static str {
    match relation {
        Relation::Better => "better than",
        Relation::Worse => "worse than",
        Relation::Different => "different from",
        Relation::Same => "the same as",
        Relation::Undecided => "not yet distinguishable from",
    }
}

/// Formats a ratio with its interval.
pub fn ratio(ratio: &Estimate) -> String {
    if !Interval::from(*ratio).reaches(CONFIDENCE) {
        // With few blocks the interval does not reach the confidence, so only the estimate is
        // shown.
        return format::ratio(ratio.value);
    }
    format::ratio_interval(ratio)
}

pub fn conclusion(
    versions: &[Version],
    bisection: &Bisection,
    ending: &Ending,
    metric: &str,
) -> Vec<String> {
    let ends = bisection.ends().expect("the ends are compared first");
    let whole = format!("the whole range: {} in {metric}", ratio(&ends.ratio));
    match ending {
        Ending::NoDifference => vec![no_difference(&ends), whole],
        Ending::Confirmed { gap, effect } => {
            let mut lines = culprits(versions, *gap);
            lines.push(format!(
                "its effect: {} in {metric}, {} the commit before it",
                ratio(&effect.ratio),
                relation(effect.relation)
            ));
            lines.push(confirmed(bisection, *effect));
            lines.push(whole);
            lines
        }
        Ending::NotConfirmed { gap, effect } => {
            let mut lines = vec![
                "no single commit is confirmed: the change is gradual, or the noise is too large"
                    .into(),
            ];
            lines.extend(culprits(versions, *gap));
            lines.push(format!(
                "tried last: {} in {metric}, {} the commit before it",
                ratio(&effect.ratio),
                relation(effect.relation)
            ));
            lines.push(whole);
            lines
        }
    }
}

fn confirmed(bisection: &Bisection, effect: Effect) -> String {
    if bisection.ends() == Some(effect) {
        "confirmed by the ends: no commit between them can be measured".into()
    } else {
        format!("confirmed in {} of its own", plural(effect.blocks, "block"))
    }
}

/// Says that there is nothing to search for, and how large a difference can be at most.
fn no_difference(ends: &Effect) -> String {
    let largest = format::percent(ends.ratio.reach().max(MARGIN_MIN));
    match ends.relation {
        Relation::Same => format!("no culprit: the ends differ by less than {largest}"),
        _ => format!(
            "no culprit: {} do not decide whether the ends differ; they differ by at most \
             {largest}",
            plural(ends.blocks, "block")
        ),
    }
}

fn culprits(versions: &[Version], gap: Gap) -> Vec<String> {
    let suspects = || gap.suspects().map(|place| &versions[place]);
    let describe = |one: &Version| {
        let commit = format!("{} {}", one.short(), one.subject);
        [commit, format!("  {}, {}", one.author, one.date)]
    };
    let mut lines: Vec<String> = suspects().flat_map(describe).collect();
    let count = suspects().count();
    if count > 1 {
        let which = plural(count, "commit");
        lines.insert(
            0,
            format!("one of {which}; only the last of them can be measured:"),
        );
    }
    lines
}
