//! Making all comparisons.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use toll_stats::Rng;

use super::load::Load;
use super::tool::Tools;
use super::{Comparison, Condition, DIFFERENCES_PERCENT, Document, Stop, TOOLS, Tool, VERSION};
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
    /// Pairs for each tool, condition and difference.
    pub different: usize,
    /// Under what they are made.
    pub conditions: Vec<Condition>,
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

/// Least pieces of work by which the command is made as long as asked for: a
/// multiple of 100, so that a hundredth is whole.
const PIECES_STEP: u64 = 100;

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
            comparisons: Vec::new(),
            cut: false,
        },
        tell,
    };
    session.rounds()?;
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
    fn is_over(&mut self) -> Result<bool, Stop> {
        if self.settings.interrupted.load(Ordering::Relaxed) {
            return Err(Stop::Interrupted);
        }
        let over = self.begin.elapsed() > self.settings.limit;
        self.document.cut |= over;
        Ok(over)
    }

    /// Rounds of one comparison of each kind, in random order, so that both tools
    /// meet the same machine.
    fn rounds(&mut self) -> Result<(), Stop> {
        let mut rng = Rng::new(self.settings.seed);
        let (identical, different) = (self.settings.identical, self.settings.different);
        let rounds = identical.max(different);
        for round in 0..rounds {
            let mut kinds = Vec::new();
            for condition in &self.settings.conditions {
                for difference in DIFFERENCES_PERCENT {
                    let wanted = if difference == 0 {
                        identical
                    } else {
                        different
                    };
                    if round < wanted {
                        kinds.extend(TOOLS.map(|tool| (tool, *condition, difference)));
                    }
                }
            }
            rng.shuffle(&mut kinds);
            let seconds = self.begin.elapsed().as_secs_f64();
            (self.tell)(&format!("{round} of {rounds} rounds after {seconds:.0} s"));
            for (tool, condition, difference) in kinds {
                if self.is_over()? {
                    return Ok(());
                }
                self.compare(tool, condition, difference)?;
            }
        }
        Ok(())
    }

    fn compare(
        &mut self,
        tool: Tool,
        condition: Condition,
        difference_percent: u32,
    ) -> Result<(), Stop> {
        let pieces = self.document.work.0;
        let more = pieces + pieces / 100 * u64::from(difference_percent);
        let program = self.settings.work.display();
        let commands = [format!("{program} {pieces}"), format!("{program} {more}")];
        let usual_s = &mut self.usual_s[tool as usize];
        let seed = self.settings.seed + self.document.comparisons.len() as u64;
        let load = Load::start(&self.settings.work, condition, *usual_s, seed)?;
        let told = self.tools.compare(tool, [&commands[0], &commands[1]]);
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
            answer: told.answer,
            p: told.p,
            ratio: told.ratio,
            wall_s: told.wall_s,
        });
        Ok(())
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
