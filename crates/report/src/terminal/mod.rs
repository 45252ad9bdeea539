//! Tables and small plots for a terminal.

use toll_document::Document;

use crate::claim::Run;

mod brief;
mod guest;
mod over_runs;
mod overview;
mod paint;
mod prices;
mod selftest;
mod summary;
pub(crate) mod verdicts;
mod why;

pub use brief::{legend, of_run as brief};
pub use guest::kernel_logs;
pub use over_runs::{added as added_by_runs, beside_a_run, of_all as over_runs};
pub(super) use over_runs::{in_words as over_runs_in_words, promise as promise_over_runs};
pub use overview::{NotRun, of_runs as overview};
pub use paint::paint;
pub(crate) use paint::paint_of_relation;
pub use prices::{compared as prices_compared, is_listed, of_run as prices};
pub use selftest::of_report as selftest;
pub use why::of_explanation as explanation;

/// Shows the answer to a run's question: its verdicts, or its comparison if it has no
/// claims, with advice and a plot. `is_quiet` leaves out notes that always apply.
pub fn result(run: &Run, is_quiet: bool) -> Document {
    if run.analysis.prices.is_empty() {
        summary::result(run, is_quiet)
    } else {
        prices(run, &is_listed)
    }
}

/// Shows everything about one run, for `toll show`.
pub fn summary(run: &Run) -> Document {
    let prices = if run.analysis.prices.is_empty() {
        Document::default()
    } else {
        prices(run, &is_listed)
    };
    Document::sections([prices, summary::of_run(run)])
}
