//! Checks whether verdicts keep what their grades promise in the hardest case, where half of the
//! truths are on borders.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use toll_core::claim::model::{Outcome, Verdict};
use toll_core::claim::{analyse, questions};
use toll_core::plan::{Plan, Treatment};
use toll_core::run::{RunRecord, RunStatus, StoredRun, TrialRecord};
use toll_core::spec::{self, ComparisonGoal};

use crate::simulation::{Disturbances, WORLDS};

/// Number of claims in a run. No two claims share a treatment.
const CLAIMS: usize = 13;
/// Logarithm of the ratio in claims whose truth is far from any border.
const FAR: f64 = 0.5;

/// The noise on the trials of a simulated run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Noise {
    /// The index of a world in [`WORLDS`].
    World(usize),
    /// Noise of 1 %, but one trial in fifty takes twenty times as long. That is so long that a
    /// block with such a trial only shows which side is larger.
    FarMode,
}

impl Noise {
    /// Returns all worlds, followed by the far mode.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let worlds = (0..WORLDS.len()).map(Self::World);
        worlds.chain([Self::FarMode]).collect()
    }

    fn draws(self, seed: u64) -> Box<dyn FnMut() -> f64> {
        match self {
            Self::World(place) => {
                let mut disturbances = Disturbances::new(WORLDS[place], seed);
                Box::new(move || disturbances.draw())
            }
            Self::FarMode => {
                let mut rng = toll_stats::Rng::new(seed);
                Box::new(move || {
                    let far = rng.uniform() < 0.02;
                    0.01 * rng.normal() + if far { 20.0_f64.ln() } else { 0.0 }
                })
            }
        }
    }

    fn name(self) -> String {
        match self {
            Self::World(place) => format!("{:?}", WORLDS[place]),
            Self::FarMode => "FarMode".into(),
        }
    }
}

/// Numbers of blocks of the simulated runs: before the first look, and at most.
pub const PLANS: [(u32, u32); 5] = [(5, 5), (6, 6), (8, 8), (10, 10), (8, 20)];

/// Counts of wrong verdicts in runs of one kind.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Promise {
    pub noise: String,
    /// Numbers of blocks: before the first look, and at most.
    pub blocks: (u32, u32),
    pub runs: usize,
    /// Number of runs with a wrong family-wise verdict.
    pub family_wise_wrong: usize,
    /// Mean share of wrong verdicts among all verdicts of a run. A run without verdicts has the
    /// share 0.
    pub false_discovery_rate: f64,
    /// The false discovery rate of runs in which every truth is on a border.
    pub false_discovery_rate_on_borders: f64,
    /// Number of runs with a wrong family-wise verdict when every truth is on a border.
    pub family_wise_wrong_on_borders: usize,
    /// Share of claims with a verdict, among those whose truth is far from the border.
    pub decided: f64,
}

/// Simulates runs of one kind.
#[must_use]
pub fn simulate(noise: Noise, (first, last): (u32, u32), runs: usize) -> Promise {
    let toml = experiment(first, last);
    let mut promise = Promise {
        noise: noise.name(),
        blocks: (first, last),
        runs,
        family_wise_wrong: 0,
        false_discovery_rate: 0.0,
        false_discovery_rate_on_borders: 0.0,
        family_wise_wrong_on_borders: 0,
        decided: 0.0,
    };
    let mut far = 0;
    for seed in 0..runs as u64 {
        let verdicts = run(&toml, seed, noise, true);
        let found = Found::from_verdicts(&verdicts, true);
        promise.family_wise_wrong += usize::from(found.is_family_wise_wrong);
        promise.false_discovery_rate += found.wrong_share / runs as f64;
        far += found.far;
        let found = Found::from_verdicts(&run(&toml, seed, noise, false), false);
        promise.family_wise_wrong_on_borders += usize::from(found.is_family_wise_wrong);
        promise.false_discovery_rate_on_borders += found.wrong_share / runs as f64;
    }
    promise.decided =
        far as f64 / (runs * (0..CLAIMS).filter(|place| is_far(*place)).count()) as f64;
    promise
}

/// Returns whether a claim's truth is far from its border, in runs where half of the truths are.
fn is_far(place: usize) -> bool {
    place / 3 % 2 == 1
}

/// Counts of wrong and right verdicts in a run.
struct Found {
    is_family_wise_wrong: bool,
    wrong_share: f64,
    /// Number of decided claims whose truth is far from a border.
    far: usize,
}

impl Found {
    fn from_verdicts(verdicts: &[Verdict], has_far: bool) -> Self {
        let is_decided =
            |one: &Verdict| matches!(one.outcome, Outcome::Supported | Outcome::Refuted);
        let is_wrong = |place: usize, one: &Verdict| match (has_far && is_far(place), place % 3) {
            // The ratio is larger than any border, so `less` and `equal` are refuted.
            (true, 1) => one.outcome == Outcome::Refuted,
            (true, _) => one.outcome == Outcome::Supported,
            (false, 2) => one.outcome == Outcome::Refuted,
            (false, _) => one.outcome == Outcome::Supported,
        };
        let all = || verdicts.iter().enumerate();
        let wrong = || all().filter(|(place, one)| is_wrong(*place, one));
        let decided = all().filter(|(_, one)| is_decided(one));
        let far = decided
            .clone()
            .filter(|(place, _)| has_far && is_far(*place));
        Self {
            is_family_wise_wrong: wrong().any(|(_, one)| one.is_family_wise()),
            wrong_share: wrong().count() as f64 / decided.count().max(1) as f64,
            far: far.count(),
        }
    }
}

/// Returns an experiment whose claims are `less`, `greater` and `equal` in turn.
fn experiment(first: u32, last: u32) -> String {
    let directions = ["'less'", "'greater'", "'equal'\nmargin = '3%'"];
    let levels: Vec<String> = (1..=2 * CLAIMS)
        .map(|pages| (4096 * pages).to_string())
        .collect();
    let mut toml = format!(
        "format = 1\nname = 'promises'\n[workload]\nkind = 'write'\ninput = '1MiB'\n\
         [[factor]]\nname = 'buffer'\nlevels = [{}]\n[run]\nmin_blocks = {first}\n\
         max_blocks = {last}\ntarget_ci = '2%'\n",
        levels.join(", ")
    );
    for (place, pair) in levels.chunks_exact(2).enumerate() {
        toml += &format!(
            "[[claim]]\nid = 'c{place}'\ntext = 'x'\nto = {{ buffer = {} }}\n\
             of = {{ buffer = {} }}\ndirection = {}\n",
            pair[0],
            pair[1],
            directions[place % 3]
        );
    }
    toml
}

/// Returns the verdicts of a run whose truths are on borders: just not less, just not greater,
/// and just still equal. If `has_far`, some truths are far beyond their border.
fn run(toml: &str, seed: u64, noise: Noise, has_far: bool) -> Vec<Verdict> {
    let experiment = spec::parse(toml, "promises", "standard").expect("it is an experiment");
    let plan = Plan::new(&experiment, seed).expect("it has a plan");
    let borders = [-1.01_f64.ln(), 1.01_f64.ln(), 1.03_f64.ln()];
    let truth = |treatment: &Treatment| {
        let index = treatment.twin_of.unwrap_or(treatment.index);
        match (index % 2, has_far && is_far(index / 2)) {
            (0, _) => 0.0,
            (_, true) => FAR,
            (_, false) => borders[index / 2 % 3],
        }
    };
    let mut draw = noise.draws(seed);
    let looks = experiment.run.looks();
    let mut trials = Vec::new();
    let mut open: Option<Vec<Vec<usize>>> = None;
    for block in 0..experiment.run.max_blocks {
        for treatment in plan.block_order(block, open.as_deref()) {
            let duration_ns = 1e6 * (truth(&plan.treatments[treatment]) + draw()).exp();
            trials.push(TrialRecord {
                block,
                treatment,
                samples: BTreeMap::from([("duration_ns".to_owned(), vec![duration_ns])]),
                ..TrialRecord::default()
            });
        }
        if looks.is_look(block as usize + 1) {
            let questions = questions(&experiment, &plan.treatments, &trials, &[]);
            let further = questions
                .into_iter()
                .filter(|one| !one.is_settled(ComparisonGoal::default(), false));
            let further: Vec<Vec<usize>> = further.map(|one| one.treatments).collect();
            if further.is_empty() {
                break;
            }
            open = Some(further);
        }
    }
    let stored = StoredRun {
        run: RunRecord {
            status: RunStatus::Complete,
            ..RunRecord::default()
        },
        experiment,
        treatments: plan.treatments,
        trials,
        boots: Vec::new(),
        profiles: Vec::new(),
    };
    analyse(&stored).verdicts
}
