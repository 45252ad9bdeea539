//! A price list: what each row costs, by group.

use toll_document::{Column, Document, Paint, Row, heading, notes, paragraph, paragraphs, table};

use super::paint::paint_of_relation;
use crate::claim::Run;
use crate::claim::model::{Price, RunComparison};
use crate::claim::work::Difference;
use crate::format;
use crate::run_differences::machines;
use crate::words;

/// Minimum number of blocks for which the interval of a median covers 95 %.
const BLOCKS_MIN: usize = 6;

/// Selects the lines to show.
pub type IsShown<'a> = &'a dyn Fn(&Price) -> bool;

/// Whether a line is in the list by default.
pub fn is_listed(price: &Price) -> bool {
    price.group.is_some()
}

/// Shows the selected lines of a price list.
pub fn of_run(run: &Run, is_shown: IsShown) -> Document {
    let prices = listed(run, is_shown);
    let columns = vec![
        Column::words("what"),
        Column::numbers("price"),
        Column::words("95 % interval"),
        Column::words("for each"),
    ];
    Document::sections([head(run), grouped(&prices, columns, row), remarks(run)])
}

/// Compares a list with another one; the differences between the machines come first.
pub fn compared(
    run: &Run,
    other: &Run,
    differences: &[Difference],
    comparison: &RunComparison,
) -> Document {
    let mut head = heading("Prices of this machine against the other list");
    let lists = [("this", run), ("other", other)];
    let lists = lists.map(|(name, run)| format!("{name}: {}", when_and_where(run)));
    head += paragraphs(lists, 0, Paint::Dim);
    let names = ["this list".to_owned(), "other list".to_owned()];
    let machines = machines(&names, &[], differences);
    let columns = vec![
        Column::words("what"),
        Column::numbers("this"),
        Column::numbers("other"),
        Column::numbers("change"),
    ];
    let prices = listed(run, &is_listed);
    let common = common_reason(comparison);
    let mut ratios = grouped(&prices, columns, |price| {
        compared_row(price, other, comparison, common)
    });
    ratios += notes(common.map(|why| format!("all: {why}")), Paint::Yellow);
    let remark = format!(
        "The intervals of all ratios hold simultaneously; {}.",
        words::margin_between_runs(comparison)
    );
    ratios += paragraph(&remark, 0, Paint::Dim);
    Document::sections([head, machines, ratios])
}

/// Why no ratio is judged, if one reason holds for all.
fn common_reason(comparison: &RunComparison) -> Option<&str> {
    let mut reasons = comparison.ratios.iter().map(|one| one.reason.as_deref());
    let first = reasons.next()??;
    reasons.all(|reason| reason == Some(first)).then_some(first)
}

fn listed<'a>(run: &'a Run, is_shown: IsShown) -> Vec<&'a Price> {
    let prices = run.analysis.prices.iter();
    prices.filter(|price| is_shown(price)).collect()
}

fn head(run: &Run) -> Document {
    heading(&run.stored.run.title) + paragraph(when_and_where(run), 0, Paint::Dim)
}

fn when_and_where(run: &Run) -> String {
    let record = &run.stored.run;
    format!(
        "{}; run {}, {}",
        words::machine_line(&record.machine),
        record.id,
        words::minute(&record.created_at)
    )
}

/// Lays out all groups as one table, with their names between the rows, so that columns line up.
fn grouped(prices: &[&Price], columns: Vec<Column>, row: impl Fn(&Price) -> Row) -> Document {
    let mut rows: Vec<Row> = Vec::new();
    let mut before = None;
    for price in prices {
        if before != Some(&price.group) {
            let name = price
                .group
                .as_deref()
                .unwrap_or("measured for other purposes");
            let mut group = Row::new([name]);
            group.paint = Paint::Bold;
            rows.push(group);
        }
        before = Some(&price.group);
        rows.push(row(price));
    }
    table(columns, rows)
}

fn row(price: &Price) -> Row {
    let name = format!("\u{a0}\u{a0}{}", price.name);
    let Some(value) = &price.value else {
        let mut row = Row::new([
            name,
            format::NOTHING.into(),
            String::new(),
            price.per.clone(),
        ]);
        row.below.extend(price.note.clone());
        return row;
    };
    let (number, ends) = format::price_parts(value, &price.unit);
    let per = [Some(&price.per), price.note.as_ref()]
        .into_iter()
        .flatten();
    let per: Vec<&str> = per
        .map(String::as_str)
        .filter(|part| !part.is_empty())
        .collect();
    Row::new([name, number, ends, per.join(" ")])
}

fn compared_row(
    price: &Price,
    other: &Run,
    comparison: &RunComparison,
    common: Option<&str>,
) -> Row {
    let value = |price: Option<&Price>| {
        let value = price.and_then(|price| price.value.as_ref()?.value);
        value.map_or_else(
            || format::NOTHING.to_owned(),
            |value| format::value(value, &price_unit(price)),
        )
    };
    let mut others = other.analysis.prices.iter();
    let same = others.find(|other| other.name == price.name && other.group == price.group);
    let ratio = comparison
        .ratios
        .iter()
        .find(|ratio| ratio.label == price.name);
    let change = ratio.map(|one| words::change_between_runs(one, &comparison.described, true));
    let mut row = Row::new([
        format!("\u{a0}\u{a0}{}", price.name),
        value(Some(price)),
        value(same),
        change.unwrap_or_else(|| format::NOTHING.to_owned()),
    ]);
    if let Some(ratio) = ratio {
        row.paint = paint_of_relation(ratio.relation);
        let own = ratio
            .reason
            .iter()
            .filter(|why| common != Some(why.as_str()));
        row.below.extend(own.cloned());
    }
    row
}

fn price_unit(price: Option<&Price>) -> String {
    price.map_or_else(String::new, |price| price.unit.clone())
}

fn remarks(run: &Run) -> Document {
    let mut lines = Vec::new();
    let blocks = run.analysis.blocks;
    if blocks < run.stored.experiment.run.min_blocks as usize {
        lines.extend(run.stored.run.stop_reason.clone());
    }
    if blocks < BLOCKS_MIN {
        lines.push(format!(
            "with {} the intervals cover less than 95 %; {BLOCKS_MIN} blocks are enough",
            words::plural(blocks, "block")
        ));
    }
    lines.extend(run.analysis.warnings.iter().cloned());
    notes(lines, Paint::Yellow)
}
