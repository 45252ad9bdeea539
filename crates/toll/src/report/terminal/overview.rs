//! Several runs in a few lines: what fails, what to do, what cannot be tested.

use super::Style;
use super::text::{Paint, Text, columns};
use super::verdicts::paint;
use crate::claim::model::{Advice, Outcome, Verdict};
use crate::claim::{Run, untestable_cause};
use crate::format;
use crate::report::words;

/// Refuted claims shown, two lines each.
const CLAIMS_MAX: usize = 5;
/// Pieces of advice shown, two lines each.
const ADVICE_MAX: usize = 4;
/// Causes shown for which claims cannot be tested, a line each.
const CAUSES_MAX: usize = 6;

/// Several runs in at most 38 lines; `not_run` has the name of each
/// experiment that could not begin, with the reason.
pub fn of_runs(runs: &[Run], not_run: &[(String, String)], style: Style) -> Text {
    let mut lines = Lines {
        text: Text::default(),
        style,
    };
    let verdicts = || runs.iter().flat_map(|run| &run.analysis.verdicts);
    let title = format!("Summary of {}", words::plural(runs.len(), "run"));
    lines.add(&title, Paint::Bold);
    lines.add(&"─".repeat(columns(&title).min(style.width)), Paint::Dim);
    lines.add(&words::counts(verdicts()), Paint::Plain);
    if let Some(line) = words::wrong_verdicts(runs.iter().filter(|run| run.is_judged()).count()) {
        lines.add(&line, Paint::Plain);
    }
    refuted(&mut lines, verdicts().collect());
    advice(&mut lines, runs);
    untestable(&mut lines, verdicts(), not_run);
    lines.text
}

/// Lines that are cut off at the end rather than folded.
struct Lines {
    text: Text,
    style: Style,
}

impl Lines {
    fn add(&mut self, line: &str, paint: Paint) {
        self.text += Text::line(cut(line, self.style.width), paint);
    }

    fn begin_section(&mut self, title: &str) {
        self.text.gap();
        self.add(title, Paint::Bold);
    }

    fn add_rest(&mut self, count: usize, shown: usize) {
        if count > shown {
            self.add(&format!("  and {} more", count - shown), Paint::Dim);
        }
    }
}

/// The start of a line that fits a width, with a sign where its end is missing.
fn cut(line: &str, width: usize) -> String {
    if columns(line) <= width {
        return line.to_owned();
    }
    let mut kept = String::new();
    for character in line.chars() {
        if columns(&kept) + columns(&character.to_string()) + 1 > width {
            break;
        }
        kept.push(character);
    }
    format!("{}…", kept.trim_end())
}

/// The refuted claims, those first whose intervals lie farthest past the bound.
fn refuted(lines: &mut Lines, mut verdicts: Vec<&Verdict>) {
    verdicts.retain(|one| one.outcome == Outcome::Refuted);
    if verdicts.is_empty() {
        return;
    }
    let past = |one: &Verdict| one.factor_past_bound().unwrap_or(0.0);
    verdicts.sort_by(|a, b| past(b).total_cmp(&past(a)));
    lines.begin_section("Refuted by the widest margin");
    for verdict in verdicts.iter().take(CLAIMS_MAX) {
        let measured = format::measured(verdict);
        let bound = words::bound(verdict);
        let sign = words::symbol(verdict.outcome);
        let line = format!("{sign} {}: {measured}, claimed {bound}", verdict.id);
        lines.add(&line, paint(verdict.outcome));
        lines.add(&format!("  {}", verdict.text), Paint::Plain);
    }
    lines.add_rest(verdicts.len(), CLAIMS_MAX);
}

/// The advice that the data decide and that gains most.
fn advice(lines: &mut Lines, runs: &[Run]) {
    let mut all: Vec<(&str, &Advice)> = runs
        .iter()
        .flat_map(|run| {
            let advice = run.analysis.advice.iter();
            advice.map(|one| (run.stored.run.experiment.as_str(), one))
        })
        .filter(|(_, advice)| advice.decided)
        .collect();
    if all.is_empty() {
        return;
    }
    let gain = |advice: &Advice| advice.gain.unwrap_or(1.0);
    all.sort_by(|(_, a), (_, b)| gain(b).total_cmp(&gain(a)));
    lines.begin_section("What to do");
    for (experiment, advice) in all.iter().take(ADVICE_MAX) {
        let gain = advice.gain.map_or_else(String::new, |gain| {
            format!(
                ", {} times better than the median of the others",
                format::ratio(gain)
            )
        });
        let topic = format!("{} ({experiment}{gain})", advice.topic);
        lines.add(&topic, Paint::Dim);
        lines.add(&format!("  {}", advice.text), Paint::Plain);
    }
    lines.add_rest(all.len(), ADVICE_MAX);
}

/// How many claims cannot be tested for which cause.
fn untestable<'a>(
    lines: &mut Lines,
    verdicts: impl Iterator<Item = &'a Verdict>,
    not_run: &[(String, String)],
) {
    let mut causes: Vec<(String, usize)> = Vec::new();
    for verdict in verdicts.filter(|one| one.outcome == Outcome::NotTestable) {
        let cause = untestable_cause(&verdict.reason);
        match causes.iter_mut().find(|(known, _)| *known == cause) {
            Some((_, count)) => *count += 1,
            None => causes.push((cause, 1)),
        }
    }
    causes.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let skipped = not_run.iter().map(|(name, why)| format!("  {name}: {why}"));
    let counted = causes
        .iter()
        .map(|(cause, count)| format!("  {}: {cause}", words::plural(*count, "claim")));
    let all: Vec<String> = skipped.chain(counted).collect();
    if all.is_empty() {
        return;
    }
    lines.begin_section("Not testable here");
    for line in all.iter().take(CAUSES_MAX) {
        lines.add(line, Paint::Plain);
    }
    lines.add_rest(all.len(), CAUSES_MAX);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    const LINES_MAX: usize = 38;

    #[test]
    fn an_overview_has_at_most_so_many_lines_of_any_width() {
        let runs = vec![sample::copying(); 12];
        let not_run: Vec<(String, String)> = (0..12)
            .map(|number| (format!("guest-{number}"), "no kernel is built".to_owned()))
            .collect();
        for width in [20, 40, 80, 120] {
            let style = Style::new(false, width, true);
            let text = of_runs(&runs, &not_run, style).show(style);
            if width >= 80 {
                assert!(text.contains("on average 0.60 of these 12"), "{text}");
            }
            let count = text.lines().count();
            assert!(count <= LINES_MAX, "{count} lines at {width}:\n{text}");
            let widest = text.lines().map(columns).max().unwrap_or(0);
            assert!(widest <= width, "{widest} columns at {width}:\n{text}");
        }
    }
}
