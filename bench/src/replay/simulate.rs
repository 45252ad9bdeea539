//! Simulates runs: draws, stops and judges them like real runs.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::{Deserialize, Serialize};
use toll_core::claim::model::Outcome;
use toll_core::claim::{analyse, questions};
use toll_core::run::{StoredRun, TrialRecord};
use toll_core::spec::{ComparisonGoal, Test};
use toll_stats::Rng;

use super::nodes::World;
use super::setup::{Setup, Studied};
use super::times;

/// The assumed truth about a claim in simulated runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Truth {
    /// The published value holds.
    Published,
    /// The recorded value holds, because none was published.
    Recorded,
    /// Both sides are equal.
    NoEffect,
    /// The value at which "supported" begins. At this value, that verdict is still wrong.
    SupportedBorder,
    /// The value at which "refuted" begins. At this value, that verdict is still wrong.
    RefutedBorder,
}

/// Results of the simulated runs of a claim with one assumed truth.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Case {
    pub experiment: String,
    pub profile: String,
    pub claim: String,
    pub truth: Truth,
    /// Value of the claim's quantity; absent if it is infinite or not defined.
    pub value: Option<f64>,
    /// The right verdict; absent on a border, where the right verdict changes.
    pub right: Option<Outcome>,
    /// Whether the claim was simulated as the only one of its experiment.
    pub is_alone: bool,
    pub runs: usize,
    pub supported: usize,
    pub refuted: usize,
    pub inconclusive: usize,
    pub not_testable: usize,
    /// Median number of blocks of a run.
    pub blocks: f64,
    /// Median time of a run in seconds; absent if the time of a block is not known.
    pub run_s: Option<f64>,
}

impl Case {
    /// Returns the share of the runs with the right verdict; `None` if no verdict is right.
    #[must_use]
    pub fn power(&self) -> Option<f64> {
        let right = match self.right? {
            Outcome::Supported => self.supported,
            Outcome::Refuted => self.refuted,
            Outcome::Undecided | Outcome::NotTestable => return None,
        };
        Some(right as f64 / self.runs as f64)
    }

    /// Returns the number of runs with a wrong verdict.
    #[must_use]
    pub fn wrong(&self) -> usize {
        match (self.truth, self.right) {
            (Truth::SupportedBorder, _) | (_, Some(Outcome::Refuted)) => self.supported,
            (Truth::RefutedBorder, _) | (_, Some(Outcome::Supported)) => self.refuted,
            _ => 0,
        }
    }

    fn count(&mut self, outcome: Outcome) {
        *match outcome {
            Outcome::Supported => &mut self.supported,
            Outcome::Refuted => &mut self.refuted,
            Outcome::Undecided => &mut self.inconclusive,
            Outcome::NotTestable => &mut self.not_testable,
        } += 1;
    }
}

/// Says how much to simulate.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    pub runs: usize,
    pub seed: u64,
    pub threads: usize,
    /// Whether claims only get their published values, or their recorded values if none are
    /// published.
    pub only_published: bool,
}

/// A simulated run.
struct Run {
    trials: Vec<TrialRecord>,
    seconds: f64,
}

/// The lengths of simulated runs.
#[derive(Default)]
struct Lengths {
    blocks: Vec<f64>,
    seconds: Vec<f64>,
}

impl Lengths {
    fn add(&mut self, run: &Run) {
        let blocks = run.trials.last().map_or(0, |last| last.block + 1);
        self.blocks.push(f64::from(blocks));
        self.seconds.push(run.seconds);
    }

    fn put(&self, setup: &Setup, case: &mut Case) {
        case.runs = self.blocks.len();
        case.blocks = toll_stats::median(&self.blocks);
        let run_s = toll_stats::median(&self.seconds);
        case.run_s = setup.block_s.map(|_| (1e3 * run_s).round() / 1e3);
    }
}

/// A unit of simulation that one thread takes.
enum Task {
    /// Simulates the setup's own world, in which all claims are judged.
    World,
    /// Simulates a world in which one claim is moved. The number is the claim's index.
    Moved(usize),
}

/// Divisor of the number of simulated runs if the setup is slow.
const FEWER: usize = 5;

/// Simulates all claims of a setup at all truths. Also returns the claims that cannot be
/// simulated, each with the reason.
#[must_use]
pub fn simulate(setup: &Setup, effort: Effort) -> (Vec<Case>, Vec<(String, String)>) {
    let effort = if setup.is_slow() {
        Effort {
            runs: effort.runs.div_ceil(FEWER),
            ..effort
        }
    } else {
        effort
    };
    let tasks: Vec<Task> = std::iter::once(Task::World)
        .chain((0..setup.claims.len()).map(Task::Moved))
        .collect();
    let next = AtomicUsize::new(0);
    let done = Mutex::new((Vec::new(), Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..effort.threads.max(1) {
            scope.spawn(|| {
                while let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let (cases, obstacles) = match task {
                        Task::World => (in_world(setup, effort), Vec::new()),
                        Task::Moved(place) => moved(setup, &setup.claims[*place], effort),
                    };
                    let mut done = done.lock().expect("no thread panics while it adds");
                    done.0.extend(cases);
                    done.1.extend(obstacles);
                }
            });
        }
    });
    let (mut cases, mut obstacles) = done.into_inner().expect("no thread panics while it adds");
    let place = |id: &str| setup.claims.iter().position(|one| one.claim.id == id);
    cases.sort_by_key(|case: &Case| (place(&case.claim), case.truth));
    obstacles.sort_by_key(|(id, _): &(String, String)| place(id));
    (cases, obstacles)
}

/// Simulates all claims with their published values, or with the recorded ones if none are
/// published.
fn in_world(setup: &Setup, effort: Effort) -> Vec<Case> {
    let mut cases: Vec<Option<Case>> = Vec::new();
    for studied in &setup.claims {
        let truth = match studied.claim.published {
            Some(_) if studied.is_published_in_world => Some(Truth::Published),
            Some(_) => None,
            None => Some(Truth::Recorded),
        };
        cases.push(truth.map(|truth| {
            let (right, measured) = match truth {
                Truth::Recorded => setup.truth(studied, &setup.as_estimated(studied)),
                _ => setup.truth(studied, &setup.world),
            };
            case(setup, studied, truth, measured, Some(right))
        }));
    }
    let mut lengths = Lengths::default();
    let mut stored = setup.run.clone();
    for run in 0..effort.runs {
        let world = &setup.drawn_world;
        let drawn = draw(setup, &setup.run, world, None, seed_of(effort, run));
        lengths.add(&drawn);
        stored.trials = drawn.trials;
        let analysis = analyse(&stored);
        for (studied, case) in setup.claims.iter().zip(&mut cases) {
            let mut judged = analysis.verdicts.iter().chain(&analysis.checks);
            let verdict = judged.find(|one| one.id == studied.claim.id);
            if let (Some(verdict), Some(case)) = (verdict, case) {
                case.count(verdict.outcome);
            }
        }
    }
    let mut cases: Vec<Case> = cases.into_iter().flatten().collect();
    for case in &mut cases {
        lengths.put(setup, case);
    }
    cases
}

/// Simulates one claim at the truths that it does not have in the setup's world. Also returns the
/// truths that cannot be simulated, each with the reason.
fn moved(setup: &Setup, studied: &Studied, effort: Effort) -> (Vec<Case>, Vec<(String, String)>) {
    let mut truths = Vec::new();
    let mut obstacles = Vec::new();
    let mut obstacle = |what: &str, why: String| {
        obstacles.push((studied.claim.id.clone(), format!("{what}: {why}")));
    };
    if let Some(published) = studied.claim.published
        && !studied.is_published_in_world
    {
        truths.push((Truth::Published, published));
    }
    if !effort.only_published {
        if matches!(studied.claim.test(), Test::Ratio(_)) {
            truths.push((Truth::NoEffect, 1.0));
        }
        match borders(setup, studied) {
            Ok(borders) => truths.extend(borders),
            Err(why) => obstacle("borders", why),
        }
    }
    let mut cases: Vec<Case> = Vec::new();
    for (truth, value) in truths {
        // If both verdicts begin at the same value, the same runs serve for both.
        let same = cases
            .iter()
            .find(|case| case.value == Some(value) && is_border(case.truth));
        if let Some(same) = same.filter(|_| is_border(truth)) {
            let case = Case {
                truth,
                ..same.clone()
            };
            cases.push(case);
            continue;
        }
        match setup.moved(studied, value) {
            Ok(world) => {
                let right = (!is_border(truth)).then(|| right(setup, studied, value));
                let case = case(setup, studied, truth, Some(value), right);
                cases.push(judged(setup, studied, &world, case, effort));
            }
            Err(why) => obstacle("published value", why),
        }
    }
    (cases, obstacles)
}

/// Returns the value at which each verdict begins.
fn borders(setup: &Setup, studied: &Studied) -> Result<Vec<(Truth, f64)>, String> {
    setup.require_noise(studied)?;
    let borders = setup.borders(studied)?.into_iter();
    let truths = borders.map(|border| match border.begins {
        Outcome::Supported => (Truth::SupportedBorder, border.value),
        _ => (Truth::RefutedBorder, border.value),
    });
    Ok(truths.collect())
}

fn is_border(truth: Truth) -> bool {
    matches!(truth, Truth::SupportedBorder | Truth::RefutedBorder)
}

/// Returns the right verdict if the claim's quantity has a value.
fn right(setup: &Setup, studied: &Studied, value: f64) -> Outcome {
    let mut world = setup.world.clone();
    match studied.target.put(value, &mut world) {
        Ok(()) => setup.truth(studied, &world).0,
        Err(_) => Outcome::NotTestable,
    }
}

fn case(
    setup: &Setup,
    studied: &Studied,
    truth: Truth,
    value: Option<f64>,
    right: Option<Outcome>,
) -> Case {
    Case {
        experiment: setup.name.clone(),
        profile: setup.profile.clone(),
        claim: studied.claim.id.clone(),
        truth,
        value,
        right,
        is_alone: is_border(truth) && setup.is_slow(),
        runs: 0,
        supported: 0,
        refuted: 0,
        inconclusive: 0,
        not_testable: 0,
        blocks: 0.0,
        run_s: None,
    }
}

/// Simulates runs in a world, and counts the verdicts on one claim.
fn judged(setup: &Setup, studied: &Studied, world: &World, mut case: Case, effort: Effort) -> Case {
    let mut alone = setup.alone(studied, Vec::new());
    let mut all = if case.is_alone {
        alone.clone()
    } else {
        setup.run.clone()
    };
    let needed = case.is_alone.then(|| setup.involved(studied));
    let mut lengths = Lengths::default();
    for run in 0..effort.runs {
        let drawn = draw(setup, &all, world, needed.as_ref(), seed_of(effort, run));
        lengths.add(&drawn);
        alone.trials = drawn.trials;
        case.count(match outcome(&alone, studied) {
            // A claim that is undecided at the level of a single claim is undecided at every
            // level of Holm's procedure. So the other claims need not be judged.
            Outcome::Undecided => Outcome::Undecided,
            alone_outcome if case.is_alone => alone_outcome,
            _ => {
                all.trials = std::mem::take(&mut alone.trials);
                outcome(&all, studied)
            }
        });
    }
    lengths.put(setup, &mut case);
    case
}

fn outcome(run: &StoredRun, studied: &Studied) -> Outcome {
    let analysis = analyse(run);
    let mut judged = analysis.verdicts.iter().chain(&analysis.checks);
    let verdict = judged.find(|one| one.id == studied.claim.id);
    verdict
        .expect("every claim and check has a verdict")
        .outcome
}

/// Returns the random generator of a run. It is the same for all truths, so that runs differ only
/// by the truth.
fn seed_of(effort: Effort, run: usize) -> Rng {
    Rng::new(effort.seed).fork(run as u64)
}

/// Draws a run until it ends as `toll run` would end it. If `needed` names treatments, draws only
/// their trials and requires no others.
fn draw(
    setup: &Setup,
    run: &StoredRun,
    world: &World,
    needed: Option<&BTreeSet<usize>>,
    mut rng: Rng,
) -> Run {
    let mut trials = Vec::new();
    let mut open = needed.map(|needed| vec![needed.iter().copied().collect()]);
    let shares = times::shares(&setup.name, &setup.profile, &setup.plan.treatments);
    let mut elapsed_s = 0.0;
    for block in 0.. {
        let order = setup.plan.block_order(block, open.as_deref());
        let is_drawn = |trial: &TrialRecord| {
            let treatment = trial.treatment;
            order.contains(&treatment) && needed.is_none_or(|some| some.contains(&treatment))
        };
        let deviations = setup.nodes.draw(&mut rng);
        let all = setup.block(block, world, &deviations);
        trials.extend(all.into_iter().filter(is_drawn));
        let share: f64 = order.iter().map(|treatment| shares[*treatment]).sum();
        elapsed_s += setup.block_s.unwrap_or(0.0) * share;
        let blocks = block as usize + 1;
        if run.experiment.run.looks().is_look(blocks) {
            let further = open_questions(run, &trials);
            if further.is_empty() {
                break;
            }
            open = Some(further);
        }
        let next_ends_s = elapsed_s + elapsed_s / blocks as f64;
        let settings = &run.experiment.run;
        if blocks >= settings.max_blocks as usize || next_ends_s > settings.time_budget_s {
            break;
        }
    }
    Run {
        trials,
        seconds: elapsed_s,
    }
}

/// Returns the treatments that each open question of a run needs.
fn open_questions(run: &StoredRun, trials: &[TrialRecord]) -> Vec<Vec<usize>> {
    let questions = questions(&run.experiment, &run.treatments, trials, &[]);
    let open = questions
        .into_iter()
        .filter(|one| !one.is_settled(ComparisonGoal::default(), false));
    open.map(|one| one.treatments).collect()
}
