//! Progress of a run and of other commands.

use std::collections::BTreeMap;
use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use toll_core::claim::model::Outcome;
use toll_core::spec::{BLOCKS_MAX, Experiment};
use toll_document::{Style, columns};
use toll_host::trial::{Event, Observer, comparison_time};
use toll_report::words;
use toll_system::output;

/// Who watches a run while it measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// A person: progress is shown, for experiment `number` of `of`.
    Shown { number: usize, of: usize },
    /// A person who wants no progress, but a note about skipped treatments.
    Quiet,
    /// Nobody: the run is part of another command.
    Aside,
}

/// Minimum time between plain lines if there is no terminal.
const PLAIN_LINE_EVERY: Duration = Duration::from_secs(10);

/// Whether standard error is a terminal on which a line can be redrawn.
pub fn is_live() -> bool {
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    stderr().is_terminal() && !is_dumb
}

/// Shows a run's progress on standard error: a line that is redrawn on a terminal,
/// further lines elsewhere.
pub struct Progress {
    bar: Option<ProgressBar>,
    is_plain: bool,
    tells_skips: bool,
    name: String,
    begin: Instant,
    last_line: Option<Instant>,
    blocks: u32,
    max_blocks: u32,
    budget: Duration,
    /// Time by which comparisons usually end.
    usual_end: Duration,
    experiment: Experiment,
    claims: Vec<Outcome>,
    /// For each reason that was already printed, the number of further treatments skipped for it.
    skips: BTreeMap<String, usize>,
}

/// Resolution of a bar, and its width in columns.
const BAR_PARTS: u64 = 1000;
const BAR_COLUMNS: usize = 12;
/// Minimum width of a terminal, in columns, that has room for a bar.
const COLUMNS_WITH_BAR: usize = 60;

impl Progress {
    pub fn new(experiment: &Experiment, run_id: i64, purpose: Purpose) -> Self {
        // Each of several experiments is summed up when it ends.
        let (is_shown, is_one_of_several, name) = match purpose {
            Purpose::Shown { number, of } if of > 1 => {
                (true, true, format!("{number}/{of} {}", experiment.name))
            }
            Purpose::Shown { .. } => (true, false, experiment.name.clone()),
            Purpose::Quiet | Purpose::Aside => (false, false, experiment.name.clone()),
        };
        let is_terminal = is_live();
        let bar = (is_shown && is_terminal).then(|| {
            let bar = ProgressBar::new(BAR_PARTS);
            bar.set_style(bar_style(output::error_style()));
            bar.set_prefix(output::shown(&name));
            bar
        });
        let is_plain = is_shown && !is_terminal && !is_one_of_several;
        if is_plain {
            output::note(&format!("{name}: run {run_id} begins"));
        }
        Self {
            bar,
            is_plain,
            tells_skips: purpose != Purpose::Aside && !is_one_of_several,
            name,
            begin: Instant::now(),
            last_line: None,
            blocks: 0,
            max_blocks: experiment.run.max_blocks,
            budget: Duration::from_secs_f64(experiment.run.time_budget_s),
            usual_end: Duration::ZERO,
            experiment: experiment.clone(),
            claims: Vec::new(),
            skips: BTreeMap::new(),
        }
    }

    /// The part of the run that is done, by blocks or by time, whichever is larger.
    fn share_done(&self) -> f64 {
        let of_blocks = f64::from(self.blocks) / f64::from(self.max_blocks);
        let of_time = self.begin.elapsed().div_duration_f64(self.budget());
        of_blocks.max(of_time).min(1.0)
    }

    /// The allowed time or, until it has passed, the time by which comparisons usually end.
    fn budget(&self) -> Duration {
        if self.begin.elapsed() < self.usual_end {
            self.usual_end.min(self.budget)
        } else {
            self.budget
        }
    }

    /// Time and blocks so far, with their limits. [`BLOCKS_MAX`] is not shown, since time ends a
    /// run before that.
    fn status(&self) -> String {
        let time = |duration: Duration| {
            let seconds = duration.as_secs();
            format!("{}:{:02}", seconds / 60, seconds % 60)
        };
        let blocks = match self.max_blocks {
            BLOCKS_MAX => format!("block {}", self.blocks),
            most => format!("block {} of {most}", self.blocks),
        };
        let (begin, end) = (time(self.begin.elapsed()), time(self.budget()));
        format!("{begin} of {end}, {blocks}{}", self.decided())
    }

    /// Redraws the line, with the current activity if there is room for it.
    fn draw(&self, what: &str) {
        let Some(bar) = &self.bar else {
            return;
        };
        let status = self.status();
        let whole = format!("{status} · {what}");
        let taken = columns(&self.name) + BAR_COLUMNS + 2 + columns(&whole);
        let is_room = taken < output::error_style().width;
        bar.set_position((self.share_done() * BAR_PARTS as f64) as u64);
        bar.set_message(output::shown(if is_room { &whole } else { &status }));
    }

    /// `, 3 ✔ 1 ✘ of 13 claims`: the claims decided so far.
    fn decided(&self) -> String {
        let count = |wanted| self.claims.iter().filter(|one| **one == wanted).count();
        let decided = [Outcome::Supported, Outcome::Refuted]
            .map(|outcome| format!("{} {}", count(outcome), words::symbol(outcome)));
        match self.claims.len() {
            0 => String::new(),
            all => format!(", {} of {}", decided.join(" "), words::plural(all, "claim")),
        }
    }

    fn plain_line(&mut self) {
        let due = self
            .last_line
            .is_none_or(|last| last.elapsed() >= PLAIN_LINE_EVERY);
        if self.is_plain && due {
            self.last_line = Some(Instant::now());
            let status = self.status();
            output::note(&format!("{}: {status}", self.name));
        }
    }

    fn say(&self, message: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| output::note(message)),
            None => output::note(message),
        }
    }

    /// Clears the bar. Prints how many treatments were skipped besides the named ones.
    pub fn finish(&self) {
        self.clear();
        for (reason, more) in self.skips.iter().filter(|(_, more)| **more > 0) {
            output::note(&format!("skipped: {more} more: {reason}"));
        }
    }

    fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Shows how many of a command's equal steps are done.
pub struct Steps {
    bar: Option<ProgressBar>,
    name: &'static str,
    begin: Instant,
    last_line: Instant,
}

impl Steps {
    pub fn new(name: &'static str, count: usize) -> Self {
        let bar = is_live().then(|| {
            let bar = ProgressBar::new(count as u64);
            let template =
                "{prefix:.bold} {wide_bar:.cyan/dim} {pos} of {len}, {elapsed} elapsed, {eta} left";
            // The template is constant; a test draws it.
            bar.set_style(ProgressStyle::with_template(template).expect("template is right"));
            bar.set_prefix(name);
            bar
        });
        let begin = Instant::now();
        Self {
            bar,
            name,
            begin,
            last_line: begin,
        }
    }

    /// Shows that `done` steps are done, of `count` as far as is known now.
    pub fn step(&mut self, done: usize, count: usize) {
        if let Some(bar) = &self.bar {
            bar.set_length(count as u64);
            bar.set_position(done as u64);
        } else if self.last_line.elapsed() >= PLAIN_LINE_EVERY {
            self.last_line = Instant::now();
            let seconds = self.begin.elapsed().as_secs();
            let name = self.name;
            output::note(&format!("{name}: {done} of {count} done after {seconds} s"));
        }
    }

    /// Clears the bar.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// A style whose line is cut at the terminal's edge. On a narrow terminal the line has no bar.
fn bar_style(style: Style) -> ProgressStyle {
    let line = if style.width < COLUMNS_WITH_BAR {
        "{prefix:.bold} {wide_msg}".to_owned()
    } else {
        format!("{{prefix:.bold}} {{bar:{BAR_COLUMNS}.cyan/dim}} {{wide_msg}}")
    };
    // The templates are constant, and tests draw them.
    let line = ProgressStyle::with_template(&line).expect("template is right");
    line.progress_chars(if style.unicode { "━━─" } else { "##-" })
}

impl Observer for Progress {
    fn wants_looks(&self) -> bool {
        self.is_plain || self.bar.is_some()
    }

    fn notice(&mut self, event: &Event<'_>) {
        match event {
            Event::TrialStarts { label, .. } => self.draw(label),
            Event::GuestBoots => self.draw("booting a guest"),
            Event::TrialEnds(_) => {}
            Event::BlockEnds { blocks } => {
                self.blocks = *blocks;
                self.plain_line();
            }
            Event::Look(questions) => {
                self.claims = questions.iter().filter_map(|one| one.outcome).collect();
                let usual_end = comparison_time(&self.experiment, questions);
                self.usual_end = usual_end.unwrap_or_default();
            }
            Event::Pauses => {
                self.clear();
                output::note("paused; the trial is measured again when the run continues");
            }
            Event::Continues => {
                if let Some(bar) = &self.bar {
                    bar.reset();
                }
            }
            Event::Trouble(message) => self.say(&format!("warning: {message}")),
            Event::Skipped { label, reason } => {
                if !self.tells_skips {
                    return;
                }
                match self.skips.get_mut(*reason) {
                    Some(more) => *more += 1,
                    None => {
                        self.say(&format!("skipped: {label}: {reason}"));
                        self.skips.insert((*reason).to_owned(), 0);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toll_core::claim::Question;
    use toll_core::spec::builtin;

    #[test]
    fn claims_are_counted_that_are_decided_already() {
        let sweep = builtin::find("sweep").unwrap();
        let experiment = toll_core::spec::parse(sweep.toml, "sweep", "quick").unwrap();
        let mut progress = Progress::new(&experiment, 1, Purpose::Aside);
        assert_eq!(progress.decided(), "");
        let outcomes = [
            None,
            Some(Outcome::Supported),
            Some(Outcome::Undecided),
            Some(Outcome::Refuted),
            Some(Outcome::Refuted),
        ];
        let questions = outcomes.map(|outcome| Question {
            id: "x".into(),
            half_width: 0.1,
            target: 0.05,
            is_decided: false,
            must_be_decided: false,
            outcome,
            treatments: Vec::new(),
        });
        progress.notice(&Event::Look(&questions));
        assert_eq!(progress.decided(), ", 1 ✔ 2 ✘ of 4 claims");
    }
}
