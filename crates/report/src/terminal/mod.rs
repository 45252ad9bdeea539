//! Tables and small plots for a terminal.

use toll_document::Style;
use toll_document::text::{Paint, Text, paragraph};

use super::plots::small;
use crate::claim::Run;

mod brief;
mod guest;
mod over_runs;
mod overview;
mod prices;
mod selftest;
mod summary;
pub(crate) mod verdicts;
pub use verdicts::paint;
mod why;

pub use brief::{legend, of_run as brief};
pub use guest::kernel_logs;
pub use over_runs::{added as added_by_runs, beside_a_run, of_all as over_runs};
pub(super) use over_runs::{in_words as over_runs_in_words, promise as promise_over_runs};
pub use overview::{NotRun, of_runs as overview};
pub use prices::{compared as prices_compared, is_listed, of_run as prices};
pub use selftest::of_report as selftest;
pub(crate) use summary::paint as paint_of_relation;
pub use why::of_explanation as explanation;

/// Shows the answer to a run's question: its verdicts, or its comparison if it has no
/// claims, with advice and a plot. `is_quiet` leaves out notes that always apply.
pub fn result(run: &Run, is_quiet: bool, style: Style) -> Text {
    if run.analysis.prices.is_empty() {
        summary::result(run, is_quiet, style)
    } else {
        prices(run, &is_listed, style)
    }
}

/// Shows everything about one run, for `toll show`.
pub fn summary(run: &Run, style: Style) -> Text {
    let prices = if run.analysis.prices.is_empty() {
        Text::default()
    } else {
        prices(run, &is_listed, style)
    };
    Text::sections([prices, summary::of_run(run, style)])
}

/// Joins texts with an empty line between them.
pub fn sections(texts: impl IntoIterator<Item = Text>) -> Text {
    Text::sections(texts)
}

fn advice_lines(run: &Run, style: Style) -> Text {
    let mut text = Text::default();
    for (index, advice) in run.analysis.advice.iter().enumerate() {
        let topic = if advice.decided {
            advice.topic.clone()
        } else {
            format!("{} (undecided)", advice.topic)
        };
        if index > 0 {
            text.gap();
        }
        text += paragraph(&topic, 0, Paint::Dim, style);
        text += paragraph(&advice.text, 2, Paint::Bold, style);
        for evidence in &advice.evidence {
            text += paragraph(&format!("· {evidence}"), 4, Paint::Plain, style);
        }
    }
    text
}

/// The first curve of a run, or its claims, as a plot of characters; `None` if
/// there is nothing to draw or no room, or if the terminal is limited to ASCII.
pub fn small_plot(run: &Run, style: Style) -> Option<String> {
    if !style.unicode {
        return None;
    }
    small::draw(&run.analysis, style.width, style.color)
}
