//! Shows and writes the results of runs, each run as soon as it ends.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use toll_core::claim::Run;
use toll_core::claim::model::{Outcome, OverRuns, Verdict};
use toll_core::run::StoredRun;
use toll_core::spec::adhoc;
use toll_document::{Document, Paint};
use toll_host::store::exchange::RunDocument;
use toll_host::store::{RunStatus, Store};
use toll_host::trial::SessionEnd;
use toll_report::html::Page;
use toll_report::terminal;
use toll_report::terminal::NotRun;
use toll_system::{exit_code_of, output};

use crate::baseline;
use crate::baseline::{Against, Compared};
use crate::over_runs::over_runs;
use crate::pages;
use crate::price_lists;
use crate::{RunArguments, launch};

/// How the last of several runs ended.
pub enum Ending {
    Complete,
    Interrupted(i32),
    Failed(anyhow::Error),
}

impl Ending {
    pub fn from_session(end: anyhow::Result<SessionEnd>) -> Self {
        match end {
            Ok(SessionEnd::Complete(_)) => Self::Complete,
            Ok(SessionEnd::Interrupted(signal)) => Self::Interrupted(signal),
            Err(failure) => Self::Failed(failure),
        }
    }
}

/// The results so far, and the page that shows them.
pub struct Conclusion<'a> {
    arguments: &'a RunArguments,
    store: &'a Path,
    against: &'a Against,
    /// Number of experiments that the command line names.
    planned: usize,
    runs: Vec<Run>,
    /// For each run, its verdicts over all comparable runs.
    over_runs: Vec<Option<OverRuns>>,
    /// Experiments that could not begin, or had no time for a verdict.
    not_run: Vec<NotRun>,
    page: Page,
    page_path: Option<PathBuf>,
    /// The first error in showing results, which ends no run.
    trouble: Option<anyhow::Error>,
}

impl<'a> Conclusion<'a> {
    pub fn new(
        arguments: &'a RunArguments,
        store: &'a Path,
        against: &'a Against,
        planned: usize,
    ) -> Self {
        Self {
            arguments,
            store,
            against,
            planned,
            runs: Vec::new(),
            over_runs: Vec::new(),
            not_run: Vec::new(),
            page: Page::default(),
            page_path: None,
            trouble: None,
        }
    }

    pub fn has_runs(&self) -> bool {
        !self.runs.is_empty()
    }

    /// Adds an experiment that cannot run here, or has no time for a verdict.
    pub fn pass_over(&mut self, not_run: NotRun) {
        output::long_note(&not_run.sentence());
        self.not_run.push(not_run);
    }

    /// Adds a run that ended, shows its results, and rewrites the page.
    pub fn add(&mut self, run: Run, ending: &Ending) {
        if !matches!(ending, Ending::Complete) {
            self.let_signals_end();
        }
        if run.stored.trials.is_empty() {
            return;
        }
        // This run is shown even if other runs cannot be read.
        let over = self.over_runs(&run).ok().flatten();
        let shown = self.show(&run, over.as_ref());
        if !self.arguments.results.no_html && self.runs.is_empty() {
            self.begin_page(&run);
        }
        self.page.add(&run, over.as_ref());
        self.runs.push(run);
        self.over_runs.push(over);
        let written = self.write_page();
        self.trouble = self.trouble.take().or(shown.err()).or(written.err());
    }

    /// Starts the page with the newest price list of the machine, if there is one.
    fn begin_page(&mut self, run: &Run) {
        let store = Store::read(self.store);
        let machine = &run.stored.run.machine;
        let prices = store
            .ok()
            .and_then(|store| price_lists::newest_list(&store, machine).ok()?);
        if let Some(prices) = prices {
            self.page.add(&prices, None);
        }
    }

    /// Verdicts over comparable runs, for a run with open claims.
    fn over_runs(&self, run: &Run) -> anyhow::Result<Option<OverRuns>> {
        let is_open = |one: &Verdict| one.outcome == Outcome::Undecided && one.e_values.is_some();
        if run.analysis.verdicts.iter().any(is_open) && !self.arguments.results.json {
            over_runs(&Store::read(self.store)?, &run.stored).map(Some)
        } else {
            Ok(None)
        }
    }

    fn show(&self, run: &Run, over: Option<&OverRuns>) -> anyhow::Result<()> {
        if self.arguments.results.json {
            return Ok(());
        }
        let over = over.map(|over| terminal::beside_a_run(run, over));
        let over = over.unwrap_or_default();
        if self.planned == 1 {
            let result = terminal::result(run, self.arguments.results.quiet);
            return output::result(&Document::sections([result, over]));
        }
        let has_verdicts = |run: &Run| !run.analysis.verdicts.is_empty();
        if has_verdicts(run) && !self.runs.iter().any(has_verdicts) {
            output::result(&terminal::legend())?;
        }
        output::result(&(terminal::brief(run) + over))
    }

    fn write_page(&mut self) -> anyhow::Result<()> {
        if self.arguments.results.no_html {
            return Ok(());
        }
        let named = self.arguments.results.html.as_deref();
        let first = self.runs[0].stored.run.id;
        let path = match (named, self.planned) {
            (Some(path), _) => path.to_owned(),
            (None, 1) => pages::page_path(&format!("run-{first}"))?,
            (None, _) => pages::page_path(&format!("runs-from-{first}"))?,
        };
        // On standard output, the page is written once, at the end.
        if path.as_os_str() != "-" {
            output::write_file(&path, self.page.render()?.as_bytes())?;
        }
        let is_first_of_several = self.page_path.is_none() && self.planned > 1;
        if is_first_of_several && !self.arguments.results.quiet {
            let sentence = "report, rewritten after each experiment";
            output::long_note(&format!("{sentence}: {}", path.display()));
        }
        self.page_path = Some(path);
        Ok(())
    }

    /// Lets the next signal end the program at once, since the store is written and the machine
    /// restored.
    fn let_signals_end(&self) {
        if let Ok(interrupt) = launch::listen() {
            interrupt.let_signals_end();
        }
    }

    /// Shows the results of all runs together, and applies `--fail-on`.
    pub fn finish(mut self, ending: Ending) -> anyhow::Result<ExitCode> {
        self.let_signals_end();
        if self.runs.is_empty() {
            return ended(ending, &self.how_to_go_on());
        }
        let trouble = self.trouble.take();
        // Errors are reported at the end, so that everything else is shown first.
        let exported = match self.runs.as_slice() {
            [only] => {
                let schema = self.arguments.results.hyperfine_schema;
                self.arguments.results.exports.write(only, schema)
            }
            _ => Ok(()),
        };
        let compared = self.against.compare(self.store, &self.runs)?;
        self.show_all(&compared)?;
        let code = ended(ending, &self.how_to_go_on())?;
        trouble.map_or(Ok(()), Err)?;
        exported?;
        if code == ExitCode::SUCCESS {
            require_all_commands(&self.runs)?;
            self.judge(&compared)?;
            self.save()?;
        } else if self.arguments.results.save_baseline.is_some() {
            output::note("the baseline is not saved, since the run is not complete");
        }
        Ok(code)
    }

    /// Says how to continue after a signal.
    fn how_to_go_on(&self) -> String {
        let why = self.arguments.explaining.why;
        let last = self.runs.last().map(|run| &run.stored);
        let is_to_explain = |stored: &&StoredRun| {
            why && stored.run.status == RunStatus::Complete && stored.profiles.is_empty()
        };
        match (self.arguments.how_to_go_on, last.filter(is_to_explain)) {
            (Some(how), _) => how.to_owned(),
            (None, Some(stored)) => format!("`toll why {}` explains the run", stored.run.id),
            (None, _) if why => "`toll run --resume --why` continues it".to_owned(),
            (None, _) => "`toll run --resume` continues it".to_owned(),
        }
    }

    /// Shows the overview of all runs, their comparison with a baseline, and the paths of
    /// the files.
    fn show_all(&self, compared: &Compared) -> anyhow::Result<()> {
        let arguments = self.arguments;
        let tell = |lines: &[String]| {
            if arguments.results.json {
                lines.iter().for_each(|line| output::note(line));
                Ok(())
            } else {
                output::further_result(&Document::lines(lines, Paint::Plain))
            }
        };
        if let Some(directory) = &arguments.results.plots {
            tell(&pages::write_plots(&self.runs, directory)?)?;
        }
        if arguments.results.json {
            output::json(&self.document(compared))?;
        } else {
            for text in &compared.texts {
                output::further_result(text)?;
            }
            if self.planned > 1 {
                let overview = terminal::overview(&self.runs, &self.not_run);
                output::further_result(&overview)?;
                let over = self.over_runs.iter().map(Option::as_ref);
                let pairs = self.runs.iter().zip(over);
                let pairs = pairs.filter_map(|(run, over)| Some((run, over?)));
                if let Some(added) = terminal::added_by_runs(pairs) {
                    output::line(&added)?;
                }
            }
        }
        let mut lines = match &self.page_path {
            Some(page) if page.as_os_str() == "-" => {
                return output::document(&self.page.render()?);
            }
            Some(page) => vec![format!("report: {}", page.display())],
            None => Vec::new(),
        };
        lines.extend(self.next_command());
        if lines.is_empty() {
            Ok(())
        } else {
            tell(&lines)
        }
    }

    /// The command that shows all verdicts of one of several runs.
    fn next_command(&self) -> Option<String> {
        let judged = self.runs.iter().find(|run| run.is_judged());
        let id = judged.filter(|_| self.planned > 1)?.stored.run.id;
        Some(format!(
            "next: toll show {id}, or another run, for each verdict and what to do"
        ))
    }

    fn document(&self, compared: &Compared) -> serde_json::Value {
        let documents: Vec<RunDocument> = self
            .runs
            .iter()
            .map(|run| RunDocument::new(run.stored.clone(), run.analysis.clone()))
            .collect();
        let mut document = serde_json::json!({ "runs": documents });
        if self.arguments.against.baseline.is_some() {
            document["comparisons"] = serde_json::json!(compared.comparisons);
        }
        document
    }

    /// Applies `--fail-on`.
    fn judge(&self, compared: &Compared) -> anyhow::Result<()> {
        let analyses: Vec<_> = self.runs.iter().map(|run| &run.analysis).collect();
        let judged = self.arguments.gate.judge(&analyses, &compared.ratios);
        if judged.is_err() && self.arguments.results.save_baseline.is_some() {
            // A later run would be compared with the failed one, which would hide the failure.
            output::note("the baseline is not saved, since a condition of --fail-on is met");
        }
        judged
    }

    fn save(&self) -> anyhow::Result<()> {
        let Some(name) = &self.arguments.results.save_baseline else {
            return Ok(());
        };
        let mut store = Store::open_existing(self.store)?;
        for run in &self.runs {
            output::note(&baseline::save(&mut store, name, run.stored.run.id)?);
        }
        Ok(())
    }
}

/// Fails if a command of the command line never succeeded, since nothing can be compared with it.
/// In an experiment file such a command is reported by its row and claims.
fn require_all_commands(runs: &[Run]) -> anyhow::Result<()> {
    let mut named = runs
        .iter()
        .filter(|run| run.stored.run.experiment == adhoc::NAME);
    let treatments = named.next().map(|run| run.analysis.treatments.iter());
    let mut failed = treatments
        .into_iter()
        .flatten()
        .filter(|one| one.twin_of.is_none() && one.trials_completed == 0 && one.trials_failed > 0);
    let Some(first) = failed.next() else {
        return Ok(());
    };
    let others = match failed.count() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    bail!(
        "cannot compare {}{others}: no run of it succeeded: {}",
        first.label,
        first.first_failure.as_deref().unwrap_or_default()
    )
}

fn ended(ending: Ending, how_to_go_on: &str) -> anyhow::Result<ExitCode> {
    match ending {
        Ending::Complete => Ok(ExitCode::SUCCESS),
        Ending::Failed(failure) => Err(failure),
        Ending::Interrupted(signal) => {
            output::note(&format!(
                "interrupted; everything measured so far is kept: {how_to_go_on}"
            ));
            Ok(exit_code_of(signal))
        }
    }
}
