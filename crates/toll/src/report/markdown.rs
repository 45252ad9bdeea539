//! Tables in GitHub's Markdown.

use super::sanitize::sanitize;
use super::{comparison, words};
use crate::claim::Run;
use crate::claim::model::Verdict;
use crate::format;

/// The verdicts and treatments of a run as Markdown tables.
pub fn markdown(run: &Run) -> String {
    let (record, analysis) = (&run.stored.run, &run.analysis);
    let mut text = format!("## {}\n\n", escape(&record.title));
    let origin = format!(
        "`{}` run {}, {}, {}: {}",
        code(&record.experiment),
        record.id,
        escape(&words::minute(&record.created_at)),
        words::plural(analysis.blocks, "block"),
        words::counts(&analysis.verdicts)
    );
    text.push_str(&origin);
    text.push_str(&format!(
        "\n\n{}\n",
        escape(&words::machine_line(&record.machine))
    ));
    for guest in &analysis.guests {
        text.push_str(&format!("\n{}\n", escape(&words::guest_line(guest))));
    }
    if !analysis.verdicts.is_empty() {
        text.push_str("\n| Verdict | Claim | Published | Measured | Margin |\n");
        text.push_str("| :-- | :-- | --: | --: | --: |\n");
        text.extend(analysis.verdicts.iter().map(verdict));
    }
    text.push_str(&treatments(run));
    for note in analysis.warnings.iter().chain(&analysis.notes) {
        text.push_str(&format!("\n> {}\n", escape(note)));
    }
    text
}

/// The treatments by the metrics of the run, beside its reference.
fn treatments(run: &Run) -> String {
    let table = comparison::table(&run.analysis, &comparison::metrics(run));
    if table.rows.is_empty() {
        return String::new();
    }
    let cells = |cells: &mut dyn Iterator<Item = String>| {
        let joined: Vec<String> = cells.collect();
        format!("| {} |\n", joined.join(" | "))
    };
    let titles = table.columns.iter().map(|title| escape(title));
    let mut text = format!("\n{}", cells(&mut titles.chain(["note".to_owned()])));
    let rules = table.columns.iter().skip(1).map(|_| "--:".to_owned());
    let left = || std::iter::once(":--".to_owned());
    text.push_str(&cells(&mut left().chain(rules).chain(left())));
    for row in &table.rows {
        let marks = row.marks.clone();
        let notes: Vec<String> = row.notes.iter().cloned().chain([marks]).collect();
        let notes = notes.iter().filter(|note| !note.is_empty());
        let notes: Vec<String> = notes.map(|note| escape(note)).collect();
        let label = std::iter::once(format!("`{}`", code(&row.label)));
        let values = row.cells.iter().map(|cell| escape(cell));
        text.push_str(&cells(&mut label.chain(values).chain([notes.join("<br>")])));
    }
    for note in table.footnotes.iter().chain(&table.sentence) {
        text.push_str(&format!("\n{}\n", escape(note)));
    }
    text
}

fn verdict(verdict: &Verdict) -> String {
    format!(
        "| {} {} | `{}` {}{} | {} | {} | {} |\n",
        words::symbol(verdict.outcome),
        words::outcome(verdict.outcome),
        code(&verdict.id),
        escape(&verdict.text),
        reason(&verdict.reason),
        escape(&format::published(verdict)),
        escape(&format::measured(verdict)),
        format::margin(verdict)
    )
}

fn reason(reason: &str) -> String {
    if reason.is_empty() {
        String::new()
    } else {
        format!("<br>{}", escape(reason))
    }
}

/// Text that stays text: GitHub renders HTML, and pipes end a cell.
fn escape(text: &str) -> String {
    let mut escaped = String::new();
    // At the begin of a line these make lists and underline headings.
    if text.starts_with(['-', '+', '=']) {
        escaped.push('\\');
    }
    for character in sanitize(text).chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '\\' | '|' | '`' | '*' | '_' | '[' | ']' | '#' | '~' | '$' | '!' => {
                escaped.push('\\');
                escaped.push(character);
            }
            // A mention would notify people, a link would be followed.
            '@' => escaped.push_str("@\u{200b}"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// The inside of a code span in a table cell. Backquotes would end it, and
/// GitHub splits cells at pipes even within code unless they are escaped.
fn code(text: &str) -> String {
    sanitize(text).replace('`', "'").replace('|', "\\|")
}
