//! Simulates with a machine's noise how often `toll ci` is right.
//!
//! A record holds blocks in which a command ran three times. A simulated run takes consecutive
//! blocks of the record, from a different start for each benchmark. So a disturbance that lasts
//! several blocks does so in the simulation, too. The run is stopped and judged like a real one.

use toll_core::claim::{analyse, questions};
use toll_core::plan::Plan;
use toll_core::run::{RunRecord, RunStatus, StoredRun, TrialRecord};
use toll_core::spec::adhoc::{AdhocCommands, experiment};
use toll_core::spec::trees::{SIDES, TREE, Trees};
use toll_core::spec::{ComparisonGoal, Experiment};
use toll_core::spec::{Level, LevelOverride};
use toll_stats::{Decision, Rng, median};

const METRIC: &str = "duration_ns";

/// Runs of one command in a block: base, its twin, and head.
const COPIES: usize = 3;

/// The times of one trial.
#[derive(Debug, Clone, Copy)]
struct Taken {
    duration_ns: f64,
    /// Time from the end of the previous trial to the end of this one, in seconds.
    with_overhead_s: f64,
}

/// Recorded blocks of a command that is compared with itself.
#[derive(Debug)]
pub struct Record {
    blocks: Vec<[Taken; COPIES]>,
}

impl Record {
    /// Reads a run of three treatments that do the same work.
    ///
    /// # Errors
    /// If the run has fewer than 100 blocks of three trials.
    pub fn from_run(run: &StoredRun) -> Result<Self, String> {
        let mut blocks: Vec<Vec<Taken>> = Vec::new();
        let mut before_ns = 0;
        for trial in &run.trials {
            let with_overhead_s = (trial.run_ns.saturating_sub(before_ns)) as f64 / 1e9;
            before_ns = trial.run_ns;
            let is_twin = run.treatments[trial.treatment].twin_of.is_some();
            if let (Some(samples), false) = (trial.samples.get(METRIC), is_twin) {
                blocks.resize(blocks.len().max(trial.block as usize + 1), Vec::new());
                blocks[trial.block as usize].push(Taken {
                    duration_ns: median(samples),
                    with_overhead_s,
                });
            }
        }
        let blocks = blocks.into_iter().filter_map(|block| block.try_into().ok());
        let blocks: Vec<[Taken; COPIES]> = blocks.collect();
        match blocks.len() {
            ..100 => {
                Err("cannot simulate: the run has fewer than 100 blocks of three trials".into())
            }
            _ => Ok(Self { blocks }),
        }
    }

    pub fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// Returns the command's median time in nanoseconds, and the scatter of the log-ratio of two
    /// copies in a block. The scatter is 0.7413 of the interquartile range, which is the standard
    /// deviation for normal values.
    pub fn time_and_noise(&self) -> (f64, f64) {
        let times: Vec<f64> = self
            .blocks
            .iter()
            .flatten()
            .map(|one| one.duration_ns)
            .collect();
        let ratio = |block: &[Taken; COPIES]| block[1].duration_ns / block[0].duration_ns;
        let mut logs: Vec<f64> = self.blocks.iter().map(|block| ratio(block).ln()).collect();
        logs.sort_by(f64::total_cmp);
        let quarter = logs.len() / 4;
        (median(&times), 0.7413 * (logs[3 * quarter] - logs[quarter]))
    }
}

/// Describes what is simulated.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    pub benchmarks: usize,
    /// Share by which the first benchmark takes longer in head than in base.
    pub change: f64,
    pub limit: f64,
    pub time_budget_s: f64,
}

/// Results of simulated runs.
#[derive(Debug, Default)]
pub struct Outcomes {
    pub runs: usize,
    pub failed: usize,
    pub blocks: Vec<f64>,
    pub seconds: Vec<f64>,
}

/// Simulates `runs` runs of a case.
pub fn simulate(record: &Record, case: Case, runs: usize, seed: u64) -> Outcomes {
    let experiment = compared(case);
    let mut outcomes = Outcomes::default();
    for run in 0..runs {
        let mut rng = Rng::new(seed).fork(run as u64);
        let plan = Plan::new(&experiment, rng.next_u64()).expect("the experiment is checked");
        let mut stored = StoredRun {
            run: RunRecord {
                status: RunStatus::Complete,
                ..RunRecord::from_experiment(&experiment)
            },
            experiment: experiment.clone(),
            treatments: plan.treatments.clone(),
            trials: Vec::new(),
            boots: Vec::new(),
            profiles: Vec::new(),
        };
        let seconds = draw(record, case, &plan, &mut stored, &mut rng);
        let analysis = analyse(&stored);
        let is_failed = analysis.comparisons.iter().any(|one| {
            one.is_judged && one.judged(&analysis).regression(case.limit) == Decision::Supported
        });
        outcomes.runs += 1;
        outcomes.failed += usize::from(is_failed);
        outcomes.blocks.push(analysis.blocks as f64);
        outcomes.seconds.push(seconds);
    }
    outcomes
}

/// Creates the experiment that `toll ci` would run.
fn compared(case: Case) -> Experiment {
    let commands = AdhocCommands {
        commands: (0..case.benchmarks)
            .map(|number| format!("{{tree}}/{number}"))
            .collect(),
        overrides: vec![LevelOverride {
            name: TREE.into(),
            levels: SIDES.map(Level::new).into(),
            is_size: false,
        }],
        ..AdhocCommands::default()
    };
    let mut experiment = experiment(&commands, "standard").expect("the commands differ");
    experiment
        .compare_trees(Trees {
            directory: "/trees".into(),
            commits: SIDES.map(str::to_owned),
        })
        .expect("all name the tree");
    experiment.decide_against(case.limit);
    experiment.run.time_budget_s = case.time_budget_s;
    experiment
}

/// Draws trials until the run ends as `toll ci` would end it. Returns its length in seconds.
fn draw(record: &Record, case: Case, plan: &Plan, stored: &mut StoredRun, rng: &mut Rng) -> f64 {
    let places: Vec<usize> = (0..case.benchmarks)
        .map(|_| rng.below(record.blocks()))
        .collect();
    let settings = stored.experiment.run;
    let (mut open, mut elapsed_s) = (None, 0.0);
    for block in 0_u32.. {
        let copies: Vec<[Taken; COPIES]> = places
            .iter()
            .map(|place| {
                let mut taken = record.blocks[(place + block as usize) % record.blocks()];
                rng.shuffle(&mut taken);
                taken
            })
            .collect();
        for treatment in plan.block_order(block, open.as_deref()) {
            let one = &plan.treatments[treatment];
            let command = &one.levels["command"].text;
            let benchmark: usize = command
                .trim_start_matches("{tree}/")
                .parse()
                .expect("numbered");
            let is_head = one.levels[TREE].text == SIDES[1];
            let copy = 2 * usize::from(is_head) + usize::from(one.twin_of.is_some());
            let taken = copies[benchmark][copy];
            let change = case.change * f64::from(u8::from(is_head && benchmark == 0));
            elapsed_s += taken.with_overhead_s + change * taken.duration_ns / 1e9;
            stored.trials.push(TrialRecord {
                block,
                treatment,
                wall_ns: (1e9 * taken.with_overhead_s) as u64,
                samples: [(METRIC.to_owned(), vec![taken.duration_ns * (1.0 + change)])].into(),
                ..TrialRecord::default()
            });
        }
        let blocks = block + 1;
        if settings.looks().is_look(blocks as usize) {
            let all = questions(&stored.experiment, &stored.treatments, &stored.trials, &[]);
            let further = all
                .into_iter()
                .filter(|one| !one.is_settled(ComparisonGoal::default(), true));
            let further: Vec<Vec<usize>> = further.map(|one| one.treatments).collect();
            if further.is_empty() {
                break;
            }
            open = Some(further);
        }
        let next_ends_s = elapsed_s + elapsed_s / f64::from(blocks);
        if blocks >= settings.max_blocks || next_ends_s > settings.time_budget_s {
            break;
        }
    }
    elapsed_s
}
