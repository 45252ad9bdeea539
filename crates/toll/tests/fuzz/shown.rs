//! Everything that shows or writes a run.

use toll::claim::between::{Judged, compare_runs};
use toll::claim::{analyse, emulated_treatments};
use toll::report::terminal::{self, Style};
use toll::report::{ReportedRun, benchstat, csv, html, hyperfine, junit, markdown, plots};
use toll::store::StoredRun;
use toll_stats::Rng;

/// Has a run shown in every way. What does not apply to it may say so.
pub fn everywhere(stored: &StoredRun, rng: &mut Rng) {
    let analysis = analyse(stored);
    let run = ReportedRun {
        run: &stored.run,
        analysis: &analysis,
    };
    let style = Style {
        color: rng.below(2) == 0,
        width: 20 + rng.below(100),
        unicode: rng.below(4) > 0,
    };
    let _ = terminal::summary(&run, style);
    let _ = terminal::brief(&run, style);
    let _ = terminal::verdict_table(&[run], style);
    let _ = terminal::advice(&run, style);
    let _ = terminal::small_plot(&run, style);
    let _ = terminal::kernel_logs(&stored.boots);
    csv::csv(stored);
    let _ = markdown::markdown(&run);
    html::page(&[run]).expect("the page's template fits all runs");
    let emulated = emulated_treatments(stored);
    let _ = junit::junit(&run);
    let _ = hyperfine::hyperfine(stored, &emulated);
    let _ = benchstat::benchstat(stored, &analysis, &emulated);
    // Bitmaps take longer than all the rest.
    if rng.below(200) == 0 {
        let _ = plots::files(&run);
    }
    let judged = Judged {
        stored,
        analysis: &analysis,
    };
    let _ = compare_runs(judged, judged);
}
