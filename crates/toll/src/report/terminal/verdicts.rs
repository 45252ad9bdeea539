//! The verdict table.

use super::Style;
use super::text::{Paint, columns, heading, left, paragraph, right, wrap};
use crate::claim::Run;
use crate::claim::model::{Outcome, Verdict};
use crate::format;
use crate::report::footnotes::Footnotes;
use crate::report::words;

const GAP: usize = 2;
/// Sign and the space after it.
const SIGN: usize = 2;
/// Below this the numbers go under the claim instead of beside it.
const BESIDE_COLUMNS_MIN: usize = 76;
const CLAIM_COLUMNS_MIN: usize = 28;

/// Columns of the numbers beside each claim.
struct Widths {
    claim: usize,
    published: usize,
    measured: usize,
    margin: usize,
}

/// The verdicts as a table.
pub fn of_run(reported: &Run, style: Style) -> String {
    table(reported, style, |_| String::new())
}

/// The verdicts with what else the two sides of each claim on time differ in.
pub fn in_full(reported: &Run, style: Style) -> String {
    table(reported, style, |verdict| {
        let Some(explanatory_metrics) = &verdict.explanatory_metrics else {
            return String::new();
        };
        let text = words::explanatory_metrics(explanatory_metrics, &reported.analysis);
        let text = format!("with it: {text}");
        paragraph(&text, SIGN + GAP, Paint::Dim, style)
    })
}

fn table(reported: &Run, style: Style, below_each: impl Fn(&Verdict) -> String) -> String {
    let (run, analysis) = (&reported.stored.run, &reported.analysis);
    let mut text = heading(&format!("{}: {}", run.experiment, run.title), style);
    let widths = widths(&analysis.verdicts, style);
    if let Some(widths) = &widths {
        text.push_str(&titles(widths, style));
    }
    let reasons: Vec<(String, String)> = analysis.verdicts.iter().map(reason).collect();
    let told = reasons.iter().filter(|(reason, _)| !reason.is_empty());
    let footnotes = Footnotes::shared(told.map(|(reason, _)| reason.as_str()));
    for (verdict, (reason, own)) in analysis.verdicts.iter().zip(&reasons) {
        let mark = footnotes.mark(reason);
        let id = format!("{} {}", verdict.id, mark.as_deref().unwrap_or_default());
        text.push_str(&match &widths {
            Some(widths) => beside(verdict, id.trim_end(), widths, style),
            None => below(verdict, id.trim_end(), style),
        });
        let reason = [reason, own].into_iter().filter(|part| !part.is_empty());
        let reason: Vec<&str> = reason
            .map(String::as_str)
            .skip(usize::from(mark.is_some()))
            .collect();
        if !reason.is_empty() {
            text.push_str(&paragraph(
                &reason.join("; "),
                SIGN + GAP,
                Paint::Dim,
                style,
            ));
        }
        text.push_str(&below_each(verdict));
    }
    text.push('\n');
    for note in footnotes.lines() {
        text.push_str(&paragraph(&note, 0, Paint::Dim, style));
    }
    let summary = format!(
        "{}; {}, run {}",
        words::counts(&analysis.verdicts),
        words::plural(analysis.blocks, "block"),
        run.id
    );
    text.push_str(&paragraph(&summary, 0, Paint::Bold, style));
    text
}

pub fn paint(outcome: Outcome) -> Paint {
    match outcome {
        Outcome::Supported => Paint::Green,
        Outcome::Refuted => Paint::Red,
        Outcome::Inconclusive => Paint::Yellow,
        Outcome::NotTestable => Paint::Dim,
    }
}

/// `None` where the claims would have too little room beside the numbers.
fn widths(verdicts: &[Verdict], style: Style) -> Option<Widths> {
    let widest = |title: &str, text: &dyn Fn(&Verdict) -> String| {
        let cells = verdicts.iter().map(|verdict| columns(&text(verdict)));
        cells.max().unwrap_or(0).max(columns(title))
    };
    let published = widest("published", &format::published);
    let measured = widest("measured", &format::measured);
    let margin = widest("margin", &|verdict| format::margin(verdict));
    let numbers = published + measured + margin + 3 * GAP;
    let claim = style.width.checked_sub(SIGN + numbers)?;
    (style.width >= BESIDE_COLUMNS_MIN && claim >= CLAIM_COLUMNS_MIN).then_some(Widths {
        claim: claim.min(CLAIM_COLUMNS_MAX),
        published,
        measured,
        margin,
    })
}

/// Numbers far from their claim are hard to match with it.
const CLAIM_COLUMNS_MAX: usize = 56;

fn numbers(published: &str, measured: &str, margin: &str, widths: &Widths) -> String {
    format!(
        "  {}  {}  {}",
        right(published, widths.published),
        right(measured, widths.measured),
        right(margin, widths.margin)
    )
}

fn titles(widths: &Widths, style: Style) -> String {
    let line = format!(
        "  {}{}",
        left("claim", widths.claim),
        numbers("published", "measured", "margin", widths)
    );
    format!("{}\n", Paint::Dim.on(&line, style))
}

fn head(verdict: &Verdict, style: Style) -> String {
    let sign = words::symbol(verdict.outcome);
    let paint = paint(verdict.outcome);
    format!("{} ", paint.on(sign, style))
}

/// The claim's id in its colour, the numbers beside it, its text below.
fn beside(verdict: &Verdict, id: &str, widths: &Widths, style: Style) -> String {
    let paint = paint(verdict.outcome);
    let numbers = numbers(
        &format::published(verdict),
        &format::measured(verdict),
        &format::margin(verdict),
        widths,
    );
    let mut text = head(verdict, style);
    for (index, id) in wrap(id, widths.claim).iter().enumerate() {
        if index == 0 {
            text.push_str(&paint.on(id, style));
            text.push_str(&" ".repeat(widths.claim.saturating_sub(columns(id))));
            text.push_str(&numbers);
            text.push('\n');
        } else {
            text.push_str(&format!("  {}\n", paint.on(id, style)));
        }
    }
    text.push_str(&paragraph(&verdict.text, SIGN, Paint::Plain, style));
    text
}

fn below(verdict: &Verdict, id: &str, style: Style) -> String {
    let paint = paint(verdict.outcome);
    let room = style.width.saturating_sub(SIGN);
    let mut text = head(verdict, style);
    for (index, id) in wrap(id, room).iter().enumerate() {
        let indent = if index == 0 { "" } else { "  " };
        text.push_str(&format!("{indent}{}\n", paint.on(id, style)));
    }
    text.push_str(&paragraph(&verdict.text, SIGN, Paint::Plain, style));
    let mut numbers = Vec::new();
    if verdict.published.is_some() {
        numbers.push(format!("published {}", format::published(verdict)));
    }
    if verdict.measured.is_some() {
        numbers.push(format!("measured {}", format::measured(verdict)));
        numbers.push(format!("margin {}", format::margin(verdict)));
    }
    // Spaces that do not break keep each number with its name and interval.
    let numbers: Vec<String> = numbers
        .iter()
        .map(|one| one.replace(' ', "\u{a0}"))
        .collect();
    if !numbers.is_empty() {
        text.push_str(&paragraph(&numbers.join(", "), SIGN, Paint::Plain, style));
    }
    text
}

/// Why a claim is not simply supported, empty if it is, and what of that is its
/// own: the ratio of a claim that is not judged.
fn reason(verdict: &Verdict) -> (String, String) {
    if verdict.outcome == Outcome::Supported || verdict.reason.is_empty() {
        return Default::default();
    }
    let reason = format!("{}: {}", words::outcome(verdict.outcome), verdict.reason);
    match reason.split_once("; the ratio was ") {
        Some((shared, ratio)) => (shared.to_owned(), format!("the ratio was {ratio}")),
        None => (reason, String::new()),
    }
}
