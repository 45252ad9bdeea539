//! Shows and writes a run in every way.

use toll_core::claim::Run;
use toll_core::claim::between::{Side, compare_sides};
use toll_document::{Markup, Style};
use toll_host::store::StoredRun;
use toll_report::terminal;
use toll_report::{benchstat, csv, document, html, hyperfine, junit, plots};
use toll_stats::Rng;

/// Shows a run in every way. A format that does not apply to the run may return an error.
pub fn everywhere(stored: &StoredRun, rng: &mut Rng) {
    let run: Run = stored.clone().into();
    let style = Style {
        color: rng.below(2) == 0,
        width: 20 + rng.below(100),
        unicode: rng.below(4) > 0,
    };
    for document in [
        terminal::summary(&run),
        terminal::result(&run, rng.below(2) == 0),
        terminal::overview(std::slice::from_ref(&run), &[]),
        terminal::kernel_logs(&stored.boots),
    ] {
        document.show(style);
    }
    csv::csv(stored);
    for markup in [Markup::Markdown, Markup::AsciiDoc, Markup::Org] {
        let _ = document::document(&run).markup(markup);
    }
    html::page(std::slice::from_ref(&run)).expect("the page's template fits all runs");
    let _ = junit::junit(&run);
    let _ = hyperfine::schema_1(&run);
    let _ = hyperfine::schema_2(&run);
    let _ = benchstat::benchstat(&run);
    let _ = plots::files(&run);
    let side = Side::from(&run);
    let _ = compare_sides(&side, &side, std::slice::from_ref(&run));
}
