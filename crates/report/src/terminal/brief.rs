//! A few lines for one run of several: the counts of its verdicts, and its most
//! surprising claim.

use toll_document::{Document, Paint, alternatives, ends, paragraph};

use super::paint::paint;
use super::{is_listed, summary};
use crate::claim::Run;
use crate::claim::model::{Analysis, Outcome, Price, Verdict};
use crate::format;
use crate::words;

/// A run in a few lines. A run with neither claims nor prices is shown by its comparison.
pub fn of_run(run: &Run) -> Document {
    match run.analysis {
        Analysis { ref prices, .. } if !prices.is_empty() => priced(run),
        Analysis { ref verdicts, .. } if !verdicts.is_empty() => judged(run),
        _ => summary::answer(run),
    }
}

/// Legend of the signs in [`of_run`]'s counts.
pub fn legend() -> Document {
    let outcomes =
        words::OUTCOMES.map(|one| format!("{} {}", words::symbol(one), words::outcome(one)));
    paragraph(outcomes.join(" · "), 0, Paint::Dim)
}

/// The title with the counts at the right, and below it the most surprising claim.
fn judged(run: &Run) -> Document {
    let record = &run.stored.run;
    let title = format!(
        "{}: {} (run {})",
        record.experiment, record.title, record.id
    );
    let counts = counts(&run.analysis.verdicts);
    let mut text = ends([title, counts], Paint::Bold);
    if let Some(verdict) = surprise(&run.analysis.verdicts) {
        let sentence = surprised(verdict, &run.analysis);
        text += paragraph(&sentence, 2, paint(verdict.outcome));
    }
    text
}

/// Formats the counts of verdicts: `4 ✔  3 ✘  4 ?  5 –`.
fn counts(verdicts: &[Verdict]) -> String {
    let count = |outcome| {
        let count = verdicts.iter().filter(|one| one.outcome == outcome).count();
        format!("{count:>2}\u{a0}{}", words::symbol(outcome))
    };
    // The spaces do not break: a line too narrow for title and counts gets all counts below.
    words::OUTCOMES.map(count).join("\u{a0}")
}

/// Returns the decided claim whose value is farthest from the published one, by their ratio. If
/// nothing was published, returns the refuted claim that is farthest past its bound.
fn surprise(verdicts: &[Verdict]) -> Option<&Verdict> {
    let decided = |one: &&Verdict| matches!(one.outcome, Outcome::Supported | Outcome::Refuted);
    let farthest = |distance: fn(&Verdict) -> Option<f64>| {
        let all = verdicts.iter().filter(decided);
        let known = all.filter_map(|one| Some((one, distance(one)?)));
        known
            .max_by(|(_, a), (_, b)| a.total_cmp(b))
            .map(|(one, _)| one)
    };
    let from_published = |one: &Verdict| {
        let distance = (one.measured?.value / one.published?).ln().abs();
        distance.is_finite().then_some(distance)
    };
    let past_bound = |one: &Verdict| match one.outcome {
        Outcome::Refuted => one.factor_past_bound(),
        _ => None,
    };
    farthest(from_published).or_else(|| farthest(past_bound))
}

/// Puts the most surprising claim into one line: `claimed: splice is faster than read and write
/// (published 0.57×); here 0.93× [0.88, 0.98]`.
fn surprised(verdict: &Verdict, analysis: &Analysis) -> String {
    let times = if analysis.metrics.contains_key(&verdict.quantity) {
        "×"
    } else {
        ""
    };
    let there = match verdict.published {
        Some(_) => format!("published {}{times}", format::published(verdict)),
        None => words::bound(verdict),
    };
    let (value, interval) = format::measured_parts(verdict);
    let sign = words::sign(verdict);
    let text = &verdict.text;
    format!("{sign} claimed: {text} ({there}); here {value}{times} {interval}")
        .trim_end()
        .to_owned()
}

/// The first prices of each group, without intervals, as many as fit on a line.
fn priced(run: &Run) -> Document {
    let record = &run.stored.run;
    let title = format!(
        "{} (all, with intervals: toll show {})",
        record.title, record.id
    );
    let mut text = paragraph(&title, 0, Paint::Bold);
    let prices = run.analysis.prices.iter();
    let listed: Vec<&Price> = prices.filter(|one| is_listed(one)).collect();
    for group in listed.chunk_by(|one, next| one.group == next.group) {
        let name = group[0].group.as_deref().unwrap_or_default();
        let lines = (1..=group.len())
            .rev()
            .map(|count| paragraph(line(name, group, count), 0, Paint::Plain));
        text += alternatives(lines);
    }
    text
}

/// A group's name with its first prices, and the number of the others.
fn line(name: &str, group: &[&Price], count: usize) -> String {
    let mut parts: Vec<String> = group.iter().take(count).map(|one| price(one)).collect();
    match group.len() - count {
        0 => {}
        more => parts.push(format!("{more} more")),
    }
    format!("{name}: {}", parts.join(" · "))
}

/// `stat 0.64 µs` with a space that does not break, so that name and number stay together.
fn price(price: &Price) -> String {
    let value = price.value.as_ref();
    let value = value.map_or_else(
        || format::NOTHING.to_owned(),
        |value| format::price_parts(value, &price.unit).0,
    );
    format!("{}\u{a0}{value}", price.name)
}
