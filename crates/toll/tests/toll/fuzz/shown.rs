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
    let mut run: Run = stored.clone().into();
    // A mutation rarely puts these characters into a text that is shown.
    run.stored.run.title.push_str("\u{1b}]0;x\u{7}\u{202e}");
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
        let shown = document.show(style);
        if !style.color {
            check(&shown);
        }
    }
    csv::csv(stored);
    for markup in [Markup::Markdown, Markup::AsciiDoc, Markup::Org] {
        check(&document::document(&run).markup(markup));
    }
    let page = html::page(std::slice::from_ref(&run));
    check(&page.expect("the page's template fits all runs"));
    let _ = junit::junit(&run);
    let _ = hyperfine::schema_1(&run);
    let _ = hyperfine::schema_2(&run);
    let _ = benchstat::benchstat(&run);
    let _ = plots::files(&run);
    let side = Side::from(&run);
    let _ = compare_sides(&side, &side, std::slice::from_ref(&run));
}

/// Panics if a terminal could obey a character of a text, or read the text in another order.
fn check(text: &str) {
    let is_obeyed = |one: &char| (one.is_control() && *one != '\n') || *one == '\u{202e}';
    assert_eq!(text.chars().find(is_obeyed), None, "{text:?}");
}
