//! Tables and small plots for a terminal.

use super::plots::small;
pub use super::sanitize::sanitize;
use super::words;
use crate::claim::Run;
use crate::claim::model::SelftestReport;
use crate::run::Machine;
use crate::trace::model::{ListedCall, TraceReport};
use text::{Paint, heading, layout, paragraph};
pub use text::{fit, fold};

mod calls;
mod devices;
mod dhcp;
mod guest;
mod interfaces;
mod selftest;
mod summary;
pub(super) mod text;
mod trace;
pub(super) mod verdicts;

pub use guest::kernel_logs;
pub(super) use summary::paint;

/// What the terminal can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    pub color: bool,
    pub width: usize,
    /// Characters beyond ASCII.
    pub unicode: bool,
}

/// The verdicts of every run, an experiment a table.
pub fn verdict_table(runs: &[Run], style: Style) -> String {
    let tables: Vec<String> = runs
        .iter()
        .map(|run| verdicts::of_run(run, layout(style)))
        .collect();
    fit(tables.join("\n"), style)
}

/// Everything about one run, for `toll show`.
pub fn summary(run: &Run, style: Style) -> String {
    fit(summary::of_run(run, layout(style)), style)
}

/// What answers the question of a comparison of commands; `toll show` has the
/// rest.
pub fn brief(run: &Run, style: Style) -> String {
    fit(summary::brief(run, layout(style)), style)
}

/// What a traced program did; at most so many of its files.
pub fn traced(report: &TraceReport, files_max: usize, style: Style) -> String {
    fit(trace::of_report(report, files_max, layout(style)), style)
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

/// What to do on this machine.
pub fn advice(run: &Run, style: Style) -> String {
    let style = layout(style);
    let mut text = heading(&format!("What to do: {}", run.stored.run.title), style);
    let machine = words::machine_line(&run.stored.run.machine);
    text.push_str(&paragraph(&machine, 0, Paint::Dim, style));
    for guest in &run.analysis.guests {
        text.push_str(&paragraph(&words::guest_line(guest), 0, Paint::Dim, style));
    }
    text.push_str(&advice_lines(run, style));
    fit(text, style)
}

fn advice_lines(run: &Run, style: Style) -> String {
    if run.analysis.advice.is_empty() {
        return "This run holds no advice.\n".to_owned();
    }
    let mut text = String::new();
    for advice in &run.analysis.advice {
        let topic = if advice.decided {
            advice.topic.clone()
        } else {
            format!("{} (undecided)", advice.topic)
        };
        text.push('\n');
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
