//! The blocks: everything once in each, in random order.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use toll_stats::Rng;

use super::program::Toll;
use super::volume::{self, RUNS_LISTED};
use super::{Answer, Document, Question, Series, VERSION, harness, timer};
use crate::machine::Machine;
use crate::process::find;
use crate::run::Stop;

/// What to measure with.
pub struct Settings {
    /// The program toll.
    pub toll: PathBuf,
    /// A program that takes a while, for the share that is not measured.
    pub work: PathBuf,
    /// How long it takes, in milliseconds.
    pub work_ms: f64,
    /// Blocks.
    pub blocks: usize,
    /// Seed of the order.
    pub seed: u64,
    /// Directory on a disk for stores.
    pub directory: PathBuf,
    /// Directory in memory for stores.
    pub memory: PathBuf,
    /// Command line, for the record.
    pub command_line: String,
    /// Set by a signal.
    pub interrupted: Arc<AtomicBool>,
}

/// One thing to do in a block.
#[derive(Clone)]
enum Step {
    Value(Series),
    Ask(Question, (u64, PathBuf)),
}

struct Bench<'a> {
    settings: &'a Settings,
    toll: Toll,
    work: String,
    listed: PathBuf,
}

/// Measures all blocks.
///
/// # Errors
/// If a program fails, or at an interrupt.
pub fn run(settings: &Settings, tell: &mut dyn FnMut(&str)) -> Result<Document, Stop> {
    let machine = Machine::inspect(&settings.directory);
    let date = jiff::Timestamp::now().strftime("%F %T UTC").to_string();
    let toll = Toll::new(&settings.toll, &settings.directory);
    let stores = volume::stores(&toll, &settings.directory, tell)?;
    tell(&format!("a store of {RUNS_LISTED} runs"));
    let bench = Bench {
        listed: volume::store_of_runs(&toll, &settings.memory)?,
        work: script(settings)?,
        settings,
        toll,
    };
    let (wanted, missing) = series();
    let mut steps: Vec<Step> = wanted.into_iter().map(Step::Value).collect();
    for (question, store) in volume::all_questions(&stores) {
        steps.push(Step::Ask(question, store));
    }
    let mut rng = Rng::new(settings.seed);
    let mut values: BTreeMap<Series, Vec<f64>> = BTreeMap::new();
    let mut answers: Vec<Answer> = Vec::new();
    for block in 0..settings.blocks {
        tell(&format!("block {} of {}", block + 1, settings.blocks));
        rng.shuffle(&mut steps);
        for step in steps.clone() {
            if settings.interrupted.load(Ordering::Relaxed) {
                return Err(Stop::Interrupted);
            }
            match step {
                Step::Value(series) => values.entry(series).or_default().push(bench.value(series)?),
                Step::Ask(question, store) => {
                    answers.push(volume::answer(&bench.toll, question, &store)?);
                }
            }
        }
    }
    Ok(Document {
        version: VERSION,
        date,
        command_line: settings.command_line.clone(),
        machine,
        versions: vec![bench.toll.version()],
        missing,
        work_ms: settings.work_ms,
        runs_listed: RUNS_LISTED,
        series: values,
        answers,
    })
}

/// What can be measured here, and what not.
fn series() -> (Vec<Series>, Vec<String>) {
    let mut wanted = vec![
        Series::SpawnNs,
        Series::HarnessNs,
        Series::HarnessDiskNs,
        Series::ClockNs,
        Series::TollCallNs,
        Series::UnmeasuredShare,
        Series::ListNs,
    ];
    let mut missing = Vec::new();
    match find("perf") {
        Some(_) => wanted.push(Series::PerfCallNs),
        None => missing.push("perf is not installed (package linux-perf)".to_owned()),
    }
    match timer::lmbench() {
        Some(_) => wanted.push(Series::LmbenchCallNs),
        None => missing.push("lmbench is not installed (package lmbench, non-free)".to_owned()),
    }
    (wanted, missing)
}

/// A program without arguments that does the work: a command whose words toll
/// need not split.
fn script(settings: &Settings) -> Result<String, String> {
    let (pieces, _) = crate::versus::measure::calibrate(&settings.work, settings.work_ms)?;
    Ok(format!("{} {pieces}", settings.work.display()))
}

impl Bench<'_> {
    fn value(&self, series: Series) -> Result<f64, String> {
        let (toll, memory) = (&self.toll, &self.settings.memory);
        match series {
            Series::SpawnNs => harness::spawn_ns(),
            Series::HarnessNs => harness::harness_ns(toll, memory),
            Series::HarnessDiskNs => harness::harness_ns(toll, &self.settings.directory),
            Series::ClockNs => Ok(timer::clock_ns()),
            Series::TollCallNs => timer::toll_call_ns(toll, memory),
            Series::PerfCallNs => timer::perf_call_ns(),
            Series::LmbenchCallNs => timer::lmbench_call_ns(),
            Series::UnmeasuredShare => harness::unmeasured_share(toll, memory, &self.work),
            Series::ListNs => Ok(toll.run(&self.listed, &["list"])?.wall_ns as f64),
        }
    }
}
