//! Which claims hold on which machines.

use super::Style;
use super::text::{Column, Paint, Row, Text, heading, paragraph, table};
use crate::format;
use crate::report::{fleet, words};
use toll_core::fleet::model::{FactRole, FleetClaim, FleetReport};

pub fn of_report(report: &FleetReport, style: Style) -> Text {
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
    let rows: Vec<Row> = report.claims.iter().map(row).collect();
    let mut text = heading(&title, style) + table(&columns, &rows, style);
    let note = "over machines: centre and 95 % confidence interval of their true values; a further \
                machine: 95 % prediction interval; both of machines that are not far from the others";
    text.gap();
    text += paragraph(&format!("· {note}"), 0, Paint::Dim, style);
    text
}

fn row(claim: &FleetClaim) -> Row {
    let unit = &claim.unit;
    let pooled = claim.pooled.as_ref();
    let nothing = || format::NOTHING.to_owned();
    let ends = |low: f64, high: f64| {
        let value = |value| format::value(value, unit);
        format!("[{}, {}]", value(low), value(high))
    };
    let holds = format!("{} of {}", claim.counts.supported, claim.counts.total());
    let mut row = Row::new(vec![
        claim.claim.clone(),
        holds,
        pooled.map_or_else(nothing, |one| format::interval(&one.mean, unit)),
        pooled.map_or_else(nothing, |one| ends(one.prediction.low, one.prediction.high)),
    ]);
    row.paint = match claim.counts.supported == claim.counts.total() {
        true => Paint::Green,
        false if claim.counts.refuted > 0 => Paint::Red,
        false => Paint::Yellow,
    };
    row.text = Some(claim.sentence.clone());
    let explaining = claim.facts.iter();
    let explaining = explaining.filter(|fact| fact.role == FactRole::Explains);
    row.below = explaining
        .map(|fact| {
            let levels = fact
                .levels
                .iter()
                .map(|level| format!("{} {} of {}", level.level, level.supported, level.machines));
            let levels: Vec<String> = levels.collect();
            format!(
                "{}: {}; {}",
                fact.name,
                levels.join(", "),
                fleet::role(fact)
            )
        })
        .collect();
    row
}
