//! The report on claims and machines as text.

use toll_core::fleet::model::{FactLevel, FactRole, FleetClaim, FleetReport};
use toll_core::format;
use toll_core::spec::Platform;
use toll_document::{Column, Document, Paint, Row, heading, notes, table};
use toll_report::terminal::paint;
use toll_report::words;

use crate::page;

pub fn of_report(report: &FleetReport) -> Document {
    let title = format!(
        "{} on {}",
        words::plural(report.claims.len(), "claim"),
        words::plural(report.machines.len(), "machine")
    );
    let columns = [
        Column::words("claim"),
        Column::numbers("holds on"),
        Column::numbers("over machines"),
        Column::numbers("a further machine"),
    ];
    let rows: Vec<Row> = report
        .claims
        .iter()
        .map(|claim| row(claim, &report.published_platforms))
        .collect();
    let remark = "over machines: centre and 95 % confidence interval of their true values; a further \
                machine: 95 % prediction interval; both ignore machines far from the others";
    let text = heading(&title) + table(columns, rows);
    Document::sections([text, notes([remark], Paint::Dim)])
}

fn row(claim: &FleetClaim, platforms: &[Platform]) -> Row {
    let unit = &claim.unit;
    let pooled = claim.pooled.as_ref();
    let nothing = || format::NOTHING.to_owned();
    let ends = |low: f64, high: f64| {
        let value = |value| format::value(value, unit);
        format!("[{}, {}]", value(low), value(high))
    };
    let holds = match &claim.difference {
        Some(difference) => words::outcome(difference.outcome).to_owned(),
        None => format!("{} of {}", claim.counts.supported, claim.counts.total()),
    };
    let mut row = Row::new([
        claim.claim.clone(),
        holds,
        pooled.map_or_else(nothing, |one| format::interval(&one.mean, unit)),
        pooled.map_or_else(nothing, |one| ends(one.prediction.low, one.prediction.high)),
    ]);
    row.paint = match &claim.difference {
        Some(difference) => paint(difference.outcome),
        None if claim.counts.supported == claim.counts.total() => Paint::Green,
        None if claim.counts.refuted > 0 => Paint::Red,
        None => Paint::Yellow,
    };
    row.text = Some(claim.sentence.clone());
    let explaining = claim.facts.iter();
    let explaining = explaining.filter(|fact| fact.role == FactRole::Explains);
    row.below = explaining
        .map(|fact| {
            let levels = fact.levels.iter().map(|one| level(one, claim));
            let levels: Vec<String> = levels.collect();
            format!("{}: {}; {}", fact.name, levels.join(", "), page::role(fact))
        })
        .collect();
    row.below.extend(claim.published.iter().cloned());
    let platforms = platforms.iter();
    row.below.extend(platforms.filter_map(|one| {
        let concluded = one.concluded.get(&claim.claim)?;
        Some(format!("published: {}: {concluded}", one.name))
    }));
    row
}

/// Describes a level: on how many of its machines the claim holds. For a claim on how machines
/// differ, describes the centre of its machines.
fn level(level: &FactLevel, claim: &FleetClaim) -> String {
    match (&claim.difference, &level.mean) {
        (None, _) => format!("{} {} of {}", level.level, level.supported, level.machines),
        (Some(_), Some(mean)) => {
            format!("{} {}", level.level, format::value(mean.value, &claim.unit))
        }
        (Some(_), None) => format!("{} on {}", level.level, level.machines),
    }
}
