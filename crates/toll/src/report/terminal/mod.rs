//! Tables and small plots for a terminal.

use super::plots::small;
pub use super::sanitize::sanitize;
use crate::claim::Run;
use crate::claim::model::{RunComparison, SelftestReport};
use crate::claim::work::Difference;
use crate::run::Machine;
use crate::trace::model::{ListedCall, TraceReport};
use text::{Paint, layout, paragraph};
pub use text::{fit, fold};

mod calls;
mod devices;
mod dhcp;
mod guest;
mod interfaces;
mod overview;
mod prices;
mod selftest;
mod summary;
pub(super) mod text;
mod trace;
pub(super) mod verdicts;

pub use guest::kernel_logs;
pub use overview::LINES_MAX as OVERVIEW_LINES_MAX;
pub use prices::is_listed;
pub(super) use summary::paint;
pub use trace::Shown as TraceShown;

/// What the terminal can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    pub color: bool,
    pub width: usize,
    /// Characters beyond ASCII.
    pub unicode: bool,
}

/// The verdicts of a run, or the comparison of one that has no claims.
pub fn answer(run: &Run, style: Style) -> String {
    match run.analysis.prices.is_empty() {
        true => fit(summary::answer(run, layout(style)), style),
        false => prices(run, &is_listed, style),
    }
}

/// What answers the question of a run: the same with advice and a plot. What
/// always holds is left out if `is_quiet`.
pub fn result(run: &Run, is_quiet: bool, style: Style) -> String {
    match run.analysis.prices.is_empty() {
        true => fit(summary::result(run, is_quiet, layout(style)), style),
        false => prices(run, &is_listed, style),
    }
}

/// Everything about one run, for `toll show`.
pub fn summary(run: &Run, style: Style) -> String {
    let style_of_text = layout(style);
    let prices = match run.analysis.prices.is_empty() {
        true => String::new(),
        false => prices::of_run(run, &prices::is_listed, style_of_text) + "\n",
    };
    fit(prices + &summary::of_run(run, style_of_text), style)
}

/// Several runs in at most [`OVERVIEW_LINES_MAX`] lines; `not_run` has the name
/// of each experiment that could not begin, with the reason.
pub fn overview(runs: &[Run], not_run: &[(String, String)], style: Style) -> String {
    fit(overview::of_runs(runs, not_run, layout(style)), style)
}

/// The lines of a price list that are wanted.
pub fn prices(run: &Run, is_shown: prices::IsShown, style: Style) -> String {
    fit(prices::of_run(run, is_shown, layout(style)), style)
}

/// A price list beside another one.
pub fn prices_compared(
    run: &Run,
    other: &Run,
    differences: &[Difference],
    comparison: &RunComparison,
    style: Style,
) -> String {
    let text = prices::compared(run, other, differences, comparison, layout(style));
    fit(text, style)
}

/// What a traced program did.
pub fn traced(report: &TraceReport, shown: TraceShown, style: Style) -> String {
    fit(trace::of_report(report, shown, layout(style)), style)
}

/// One call of a list, with its thread's number and folded to the width if that
/// is wanted.
pub fn listed_call(call: &ListedCall, has_thread: bool, folds: bool, style: Style) -> String {
    fit(calls::of_call(call, has_thread, folds, style), style)
}

/// Which processes hold which devices.
pub fn devices(report: &toll_observe::devices::Report, style: Style) -> String {
    fit(devices::of_report(report, layout(style)), style)
}

/// What a capture says about leases; `of` is the capture's name.
pub fn dhcp(report: &toll_observe::dhcp::Report, of: &str, style: Style) -> String {
    fit(dhcp::of_report(report, of, layout(style)), style)
}

/// Addresses, netmasks and gateways of network interfaces.
pub fn interfaces(report: &toll_observe::interfaces::Report, style: Style) -> String {
    fit(interfaces::of_report(report, layout(style)), style)
}

/// What a self-test on a machine found.
pub fn selftest(report: &SelftestReport, machine: &Machine, style: Style) -> String {
    fit(selftest::of_report(report, machine, layout(style)), style)
}

fn advice_lines(run: &Run, style: Style) -> String {
    let mut text = String::new();
    for (index, advice) in run.analysis.advice.iter().enumerate() {
        let topic = if advice.decided {
            advice.topic.clone()
        } else {
            format!("{} (undecided)", advice.topic)
        };
        if index > 0 {
            text.push('\n');
        }
        text.push_str(&paragraph(&topic, 0, Paint::Dim, style));
        text.push_str(&paragraph(&advice.text, 2, Paint::Bold, style));
        for evidence in &advice.evidence {
            text.push_str(&paragraph(&format!("· {evidence}"), 4, Paint::Plain, style));
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
