//! What is shown while a run goes on.

use std::collections::BTreeMap;
use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use super::output;
use super::run::Purpose;
use crate::claim::Question;
use crate::claim::model::Outcome;
use crate::report::words;
use crate::spec::Experiment;
use crate::trial::{Event, Observer};

/// Least time between plain lines where there is no terminal.
const PLAIN_LINE_EVERY: Duration = Duration::from_secs(10);

/// Whether standard error is a terminal on which a line can be drawn anew.
pub(super) fn is_live() -> bool {
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    stderr().is_terminal() && !is_dumb
}

/// Shows a run's progress on standard error: a line that is drawn anew on a
/// terminal, further lines elsewhere.
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    is_plain: bool,
    tells_skips: bool,
    name: String,
    begin: Instant,
    last_line: Option<Instant>,
    blocks: u32,
    min_blocks: u32,
    max_blocks: u32,
    budget: Duration,
    elapsed: Duration,
    slowest: Option<Question>,
    claims: Vec<Outcome>,
    /// How many more treatments were skipped for each reason already printed.
    skips: BTreeMap<String, usize>,
}

impl Progress {
    pub fn new(experiment: &Experiment, run_id: i64, purpose: Purpose) -> Self {
        let shown = matches!(purpose, Purpose::Shown { .. });
        let is_terminal = is_live();
        let name = match purpose {
            Purpose::Shown { number, of } if of > 1 => format!("{number}/{of} {}", experiment.name),
            _ => experiment.name.clone(),
        };
        let bar = (shown && is_terminal).then(|| {
            let bar = ProgressBar::new(0);
            // Cut off at the line's end; the template is constant, and tests draw it.
            let line = ProgressStyle::with_template("{prefix:.bold} {wide_msg}");
            bar.set_style(line.expect("template is right"));
            bar.set_prefix(output::shown(&name));
            bar
        });
        if shown && !is_terminal {
            output::note(&format!("{name}: run {run_id} begins"));
        }
        Self {
            bar,
            is_plain: shown && !is_terminal,
            tells_skips: purpose != Purpose::Aside,
            name,
            begin: Instant::now(),
            last_line: None,
            blocks: 0,
            min_blocks: experiment.run.min_blocks,
            max_blocks: experiment.run.max_blocks,
            budget: Duration::from_secs_f64(experiment.run.time_budget_s),
            elapsed: Duration::ZERO,
            slowest: None,
            claims: Vec::new(),
            skips: BTreeMap::new(),
        }
    }

    /// Blocks that are probably needed: an interval narrows with the square
    /// root of their number.
    fn blocks_expected(&self) -> u32 {
        let of_width = match &self.slowest {
            Some(width) if width.half_width.is_finite() && width.target > 0.0 => {
                let factor = (width.half_width / width.target).powi(2);
                (f64::from(self.blocks) * factor)
                    .ceil()
                    .min(f64::from(self.max_blocks)) as u32
            }
            _ => self.min_blocks,
        };
        of_width
            .clamp(self.min_blocks, self.max_blocks)
            .max(self.blocks)
    }

    fn remaining(&self) -> Option<Duration> {
        if self.blocks == 0 {
            return None;
        }
        let blocks_left = self.blocks_expected() - self.blocks;
        let by_blocks = self
            .elapsed
            .mul_f64(f64::from(blocks_left) / f64::from(self.blocks));
        Some(by_blocks.min(self.budget.saturating_sub(self.elapsed)))
    }

    fn status(&self, trial: &str) -> String {
        let time = |duration: Duration| {
            let seconds = duration.as_secs();
            format!("{}:{:02}", seconds / 60, seconds % 60)
        };
        let eta = self.remaining().map_or_else(|| "?".into(), time);
        let mut status = format!(
            "{} of {} blocks, {} elapsed, {eta} left",
            self.blocks,
            self.blocks_expected(),
            time(self.begin.elapsed())
        );
        status.push_str(&self.decided());
        if let Some(width) = &self.slowest
            && self.blocks >= self.min_blocks
        {
            let percent = |log: f64| format!("±{:.1} %", log.exp_m1() * 100.0);
            status.push_str(&match width.half_width.exp_m1() {
                share if share < 10.0 => format!(
                    ", {} {} (to be {})",
                    width.id,
                    percent(width.half_width),
                    percent(width.target)
                ),
                _ => format!(", {} needs more blocks", width.id),
            });
        }
        if !trial.is_empty() {
            status.push_str(&format!(" · {trial}"));
        }
        status
    }

    /// `, 3 ✔ 1 ✘ of 13 claims`: those that are decided already.
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
            let status = self.status("");
            output::note(&format!("{}: {status}", self.name));
        }
    }

    fn say(&self, message: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| output::note(message)),
            None => output::note(message),
        }
    }

    /// Clears the bar, and prints how many treatments were skipped besides those
    /// that were named.
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
pub(super) struct Steps {
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

    /// Tells that so many steps are done, of so many by what is known now.
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

impl Observer for Progress {
    fn wants_looks(&self) -> bool {
        self.is_plain || self.bar.is_some()
    }

    fn notice(&mut self, event: &Event<'_>) {
        match event {
            Event::TrialStarts { done, of, label } => {
                if let Some(bar) = &self.bar {
                    let trial = format!("{} of {of}: {label}", done + 1);
                    bar.set_message(output::shown(&self.status(&trial)));
                }
            }
            Event::GuestBoots => {
                if let Some(bar) = &self.bar {
                    bar.set_message(output::shown(&self.status("booting a guest")));
                }
            }
            Event::TrialEnds(_) => {}
            Event::BlockEnds { blocks, elapsed } => {
                self.blocks = *blocks;
                self.elapsed = *elapsed;
                self.plain_line();
            }
            Event::Look(questions) => {
                let over = |open: &&Question| open.half_width / open.target;
                let open = questions.iter().filter(|one| !one.is_settled(false));
                self.slowest = open.max_by(|a, b| over(a).total_cmp(&over(b))).cloned();
                self.claims = questions.iter().filter_map(|one| one.outcome).collect();
            }
            Event::Pauses => {
                self.clear();
                output::note("paused; the trial that ran is measured anew when the run goes on");
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
    use crate::spec::builtin;

    #[test]
    fn claims_are_counted_that_are_decided_already() {
        let sweep = builtin::find("sweep").unwrap();
        let experiment = crate::spec::parse(sweep.toml, "sweep", "quick").unwrap();
        let mut progress = Progress::new(&experiment, 1, Purpose::Aside);
        assert_eq!(progress.decided(), "");
        let outcomes = [
            None,
            Some(Outcome::Supported),
            Some(Outcome::Inconclusive),
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
