//! Tables in GitHub's Markdown.

use super::sanitize::sanitize;
use super::words;
use crate::claim::Run;
use crate::claim::model::{Analysis, TreatmentSummary, Verdict};
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
        words::counts(analysis)
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
    if !analysis.treatments.is_empty() {
        let metric = escape(&analysis.primary_metric);
        text.push_str(&format!(
            "\n| Treatment | Trials | Median {metric} | Note |\n"
        ));
        text.push_str("| :-- | --: | --: | :-- |\n");
        text.extend(
            analysis
                .treatments
                .iter()
                .map(|one| treatment(one, analysis)),
        );
    }
    for warning in &analysis.warnings {
        text.push_str(&format!("\n> {}\n", escape(warning)));
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

fn treatment(treatment: &TreatmentSummary, analysis: &Analysis) -> String {
    let skipped = treatment
        .skipped
        .iter()
        .map(|why| format!("skipped: {}", escape(why)));
    let failed = treatment
        .first_failure
        .iter()
        .map(|why| format!("failed: {}", escape(why)));
    let notes: Vec<String> = skipped
        .chain(failed)
        .chain(treatment.notes.iter().map(|note| escape(note)))
        .collect();
    format!(
        "| `{}` | {} | {} | {} |\n",
        code(&treatment.label),
        words::trials(treatment),
        escape(&words::median(treatment, analysis)),
        notes.join("<br>")
    )
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
