//! Making all comparisons.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use toll_stats::Rng;

use super::decision::{Search, calibrated_level, is_right, wrong_max};
use super::load::Load;
use super::tool::Tools;
use super::{
    CONDITIONS, Comparison, Condition, DIFFERENCES_PERCENT, Document, LEVEL, Stop, TOOLS, Tool,
    VERSION,
};
use crate::machine::Machine;
use crate::process::command;
use crate::toll::Toll;

/// What to run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The program toll.
    pub toll: PathBuf,
    /// The program hyperfine.
    pub hyperfine: PathBuf,
    /// The program bench-work.
    pub work: PathBuf,
    /// How long the shorter command is to take, in milliseconds.
    pub work_ms: f64,
    /// Identical pairs for each tool and condition.
    pub identical: usize,
    /// Different pairs for each tool, condition, difference and setting.
    pub different: usize,
    /// Begin no comparison after this.
    pub limit: Duration,
    /// Seed of orders and loads.
    pub seed: u64,
    /// Directory for what the tools write.
    pub directory: PathBuf,
    /// For the record.
    pub command_line: String,
    /// Set by a signal.
    pub interrupted: Arc<AtomicBool>,
}

/// Share of the time for identical pairs.
const IDENTICAL_SHARE: f64 = 0.7;
/// How many times as long as toll hyperfine may measure.
const LIMIT_FACTOR: f64 = 4.0;
/// Least pieces of work by which the command is made as long as asked for: a
/// multiple of 100, so that a hundredth is whole.
const PIECES_STEP: u64 = 100;

/// Options that make a tool measure longer and longer: the fewest runs from which
/// it can tell anything, then always twice as many. Toll's are blocks, of three
/// runs each.
fn ladder(tool: Tool) -> [Vec<&'static str>; 8] {
    let runs = match tool {
        Tool::Toll => ["6", "10", "20", "40", "80", "160", "320", "640"],
        Tool::Hyperfine => ["5", "10", "20", "40", "80", "160", "320", "640"],
    };
    runs.map(|runs| vec!["--runs", runs])
}

/// Makes all comparisons, as far as time allows.
///
/// # Errors
/// If a program is missing or fails, or at an interrupt.
pub fn run(settings: &Settings, tell: &mut dyn FnMut(&str)) -> Result<Document, Stop> {
    let tools = Tools {
        toll: Toll {
            program: settings.toll.clone(),
            kept: settings.directory.clone(),
        },
        hyperfine: settings.hyperfine.clone(),
    };
    let machine = Machine::inspect();
    let (pieces, duration_ns) = calibrate(&settings.work, settings.work_ms)?;
    tell(&format!(
        "the shorter command does {pieces} pieces of work in {:.1} ms",
        duration_ns / 1e6
    ));
    let mut session = Session {
        settings,
        tools: &tools,
        begin: Instant::now(),
        usual_s: [2.0, 6.0],
        document: Document {
            version: VERSION,
            date: jiff::Timestamp::now().strftime("%F %T UTC").to_string(),
            command_line: settings.command_line.clone(),
            seed: settings.seed,
            machine,
            versions: tools.versions(),
            work: (pieces, duration_ns),
            different: settings.different,
            comparisons: Vec::new(),
            cut: false,
        },
        tell,
    };
    session.identical_pairs()?;
    // The small differences take longest, so they come last.
    for difference in DIFFERENCES_PERCENT {
        for condition in CONDITIONS {
            for tool in TOOLS {
                session.climb(tool, condition, difference)?;
            }
        }
    }
    Ok(session.document)
}

struct Session<'a> {
    settings: &'a Settings,
    tools: &'a Tools,
    begin: Instant,
    /// How long the last comparison of each tool at its defaults took, in seconds.
    usual_s: [f64; 2],
    document: Document,
    tell: &'a mut dyn FnMut(&str),
}

impl Session<'_> {
    /// Whether there is no time for another comparison.
    fn is_over(&mut self, share: f64) -> Result<bool, Stop> {
        if self.settings.interrupted.load(Ordering::Relaxed) {
            return Err(Stop::Interrupted);
        }
        let over = self.begin.elapsed() > self.settings.limit.mul_f64(share);
        self.document.cut |= over;
        Ok(over)
    }

    /// Pairs of identical commands, each tool as it comes, in random order.
    fn identical_pairs(&mut self) -> Result<(), Stop> {
        let mut rng = Rng::new(self.settings.seed);
        for round in 0..self.settings.identical {
            let mut pairs: Vec<(Condition, Tool)> = CONDITIONS
                .into_iter()
                .flat_map(|condition| TOOLS.map(|tool| (condition, tool)))
                .collect();
            rng.shuffle(&mut pairs);
            (self.tell)(&format!(
                "identical commands: {round} of {} rounds after {:.0} s",
                self.settings.identical,
                self.begin.elapsed().as_secs_f64()
            ));
            for (condition, tool) in pairs {
                if self.is_over(IDENTICAL_SHARE)? {
                    return Ok(());
                }
                self.compare(tool, condition, 0, &[])?;
            }
        }
        Ok(())
    }

    /// Has a tool measure longer and longer until it is right often enough;
    /// hyperfine no longer than it takes to see that toll takes less than half of
    /// its time.
    fn climb(&mut self, tool: Tool, condition: Condition, difference: u32) -> Result<(), Stop> {
        let (level, limit_s) = match tool {
            Tool::Toll => (LEVEL, f64::INFINITY),
            Tool::Hyperfine => {
                let toll = Search::of(&self.document, Tool::Toll, condition, difference, LEVEL);
                (
                    calibrated_level(&self.document, condition),
                    toll.seconds().map_or(f64::INFINITY, |s| LIMIT_FACTOR * s),
                )
            }
        };
        for setting in ladder(tool) {
            (self.tell)(&format!(
                "{tool:?}, {condition:?}, {difference} %: {}",
                setting.join(" ")
            ));
            // Where 5 % has been enough before, the stricter level is in question.
            let plain = Search::of(&self.document, tool, condition, difference, LEVEL);
            let asked = plain.seconds().map_or(LEVEL, |_| level);
            if !self.rung(tool, condition, difference, &setting, asked)? {
                return Ok(());
            }
            let search = Search::of(&self.document, tool, condition, difference, level);
            match search {
                Search::Over { seconds, .. } if seconds < limit_s => {}
                _ => return Ok(()),
            }
        }
        Ok(())
    }

    /// All comparisons at a setting, as far as they can still be right often
    /// enough at a level; whether there was time for that.
    fn rung(
        &mut self,
        tool: Tool,
        condition: Condition,
        difference: u32,
        setting: &[&str],
        level: f64,
    ) -> Result<bool, Stop> {
        let mut wrong = 0;
        for _ in 0..self.settings.different {
            if self.is_over(1.0)? {
                return Ok(false);
            }
            let comparison = self.compare(tool, condition, difference, setting)?;
            wrong += usize::from(!is_right(comparison, level));
            if wrong > wrong_max(self.settings.different) {
                break;
            }
        }
        Ok(true)
    }

    fn compare(
        &mut self,
        tool: Tool,
        condition: Condition,
        difference_percent: u32,
        setting: &[&str],
    ) -> Result<&Comparison, Stop> {
        let pieces = self.document.work.0;
        let more = pieces + pieces / 100 * u64::from(difference_percent);
        let program = self.settings.work.display();
        let commands = [format!("{program} {pieces}"), format!("{program} {more}")];
        let usual_s = &mut self.usual_s[tool as usize];
        let seed = self.settings.seed + self.document.comparisons.len() as u64;
        let load = Load::start(&self.settings.work, condition, *usual_s, seed)?;
        let told = self
            .tools
            .compare(tool, setting, [&commands[0], &commands[1]]);
        drop(load);
        // ^C at a terminal reaches the tool as well, which then fails.
        let told =
            told.map_err(
                |reason| match self.settings.interrupted.load(Ordering::Relaxed) {
                    true => Stop::Interrupted,
                    false => Stop::Failed(reason),
                },
            )?;
        *usual_s = told.wall_s;
        self.document.comparisons.push(Comparison {
            tool,
            condition,
            difference_percent,
            setting: setting.join(" "),
            answer: told.answer,
            p: told.p,
            ratio: told.ratio,
            wall_s: told.wall_s,
        });
        Ok(self.document.comparisons.last().expect("one was just made"))
    }
}

/// How many pieces of work take so many milliseconds, and how long a process with
/// them takes, in nanoseconds.
///
/// # Errors
/// If the work fails.
pub fn calibrate(work: &Path, work_ms: f64) -> Result<(u64, f64), String> {
    let shortest = |pieces: u64| -> Result<f64, String> {
        let mut shortest = f64::INFINITY;
        for _ in 0..9 {
            let begin = Instant::now();
            let status = command(work)
                .arg(pieces.to_string())
                .stdin(Stdio::null())
                .status()
                .map_err(|error| format!("cannot run {}: {error}", work.display()))?;
            if !status.success() {
                return Err(format!("{} failed ({status})", work.display()));
            }
            shortest = shortest.min(begin.elapsed().as_nanos() as f64);
        }
        Ok(shortest)
    };
    let (few, many) = (shortest(PIECES_STEP)?, shortest(20 * PIECES_STEP)?);
    let per_piece_ns = ((many - few) / (19 * PIECES_STEP) as f64).max(1.0);
    let steps = (work_ms * 1e6 / per_piece_ns / PIECES_STEP as f64)
        .round()
        .max(1.0);
    let pieces = steps as u64 * PIECES_STEP;
    Ok((pieces, shortest(pieces)?))
}
