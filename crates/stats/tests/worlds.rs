//! Whole runs in simulated worlds, with optional stopping on: how often the
//! interval of a ratio holds the truth, and how often two identical treatments
//! are called different by it alone.

mod simulation;

use simulation::{Disturbances, WORLDS, World};
use toll_stats::{Direction, Rng, Stop, StoppingRule, stopped_decision_p, stopped_interval};

/// Looks after 10, 15, 20, … blocks.
const RULE: StoppingRule = StoppingRule {
    min_blocks: 10,
    max_blocks: 40,
    look_every: 5,
};
/// Half-widths to stop at, logarithmic. Some are reached at the first look and
/// some never, and in each world there is one at which most runs stop early by
/// chance.
const TARGETS: [f64; 9] = [
    0.05, 0.035, 0.025, 0.02, 0.016, 0.013, 0.0105, 0.0085, 0.007,
];
/// Runs a world. The standard error of a share of 95 % of them is 0.34 %.
const RUNS: u64 = 4000;

/// What a look at the interval shows.
struct Look {
    blocks: usize,
    half_width: f64,
    holds_truth: bool,
    calls_different: bool,
}

/// Looks at one run of three identical treatments, of which two are compared.
/// Blocks are complete, their order is random, and a disturbance lasts over
/// treatments and blocks.
fn looks(world: World, seed: u64) -> Vec<Look> {
    let mut disturbances = Disturbances::new(world, seed);
    let mut orders = Rng::new(seed).fork(1);
    let mut logs = Vec::new();
    let mut looks = Vec::new();
    for blocks in 1..=RULE.max_blocks {
        let mut order = [0, 1, 2];
        orders.shuffle(&mut order);
        let mut durations = [0.0; 3];
        for treatment in order {
            durations[treatment] = disturbances.draw();
        }
        logs.push(durations[1] - durations[0]);
        if RULE.is_look(blocks) {
            let interval = stopped_interval(&logs, 0.95);
            let side = |direction| stopped_decision_p(&logs, direction, 0.0, 0.0) <= 0.05;
            looks.push(Look {
                blocks,
                half_width: interval.half_width(),
                holds_truth: interval.contains(0.0),
                calls_different: side(Direction::Less) || side(Direction::Greater),
            });
        }
    }
    looks
}

/// The look at which a run stops.
fn last(looks: &[Look], target: f64) -> &Look {
    looks
        .iter()
        .find(|look| RULE.decide(look.blocks, &[(look.half_width, target)]) != Stop::Continue)
        .expect("the cap ends a run")
}

#[track_caller]
fn check(world: World) {
    let runs: Vec<Vec<Look>> = (0..RUNS).map(|seed| looks(world, seed)).collect();
    let mut mean_blocks = Vec::new();
    for target in TARGETS {
        let ends: Vec<&Look> = runs.iter().map(|looks| last(looks, target)).collect();
        let share = |is: fn(&Look) -> bool| {
            ends.iter().filter(|look| is(look)).count() as f64 / RUNS as f64
        };
        let (coverage, alarms) = (share(|l| l.holds_truth), share(|l| l.calls_different));
        let blocks = ends.iter().map(|look| look.blocks).sum::<usize>() as f64 / RUNS as f64;
        let told = format!(
            "{world:?}, target {target}: {blocks:.1} blocks, coverage {coverage:.4}, \
             false alarms {alarms:.4}"
        );
        assert!((0.94..=0.97).contains(&coverage), "{told}");
        assert!(alarms <= 0.06, "{told}");
        mean_blocks.push(blocks);
    }
    // Else nothing would have been tested of stopping early by chance.
    let midway = |blocks: &f64| (11.0..38.0).contains(blocks);
    assert!(
        mean_blocks.iter().filter(|b| midway(b)).count() >= 3,
        "{world:?}: {mean_blocks:?}"
    );
}

#[test]
fn intervals_cover_in_a_plain_world() {
    check(World::Plain);
}

#[test]
fn intervals_cover_under_drift() {
    check(World::Drift);
}

#[test]
fn intervals_cover_among_outliers() {
    check(World::Outliers);
}

#[test]
fn intervals_cover_under_autocorrelation() {
    check(World::Autocorrelation);
}

#[test]
fn intervals_cover_with_heavy_tails() {
    check(World::HeavyTails);
}

#[test]
fn intervals_cover_with_bimodal_noise() {
    check(World::Bimodal);
}

#[test]
fn every_world_disturbs_as_it_says() {
    for world in WORLDS {
        let mut disturbances = Disturbances::new(world, 1);
        let drawn: Vec<f64> = (0..3000).map(|_| disturbances.draw()).collect();
        let deviation = toll_stats::standard_deviation(&drawn);
        // The median absolute deviation, scaled to that of normal values.
        let distances: Vec<f64> = drawn.iter().map(|x| x.abs()).collect();
        let mad = 1.4826 * toll_stats::median(&distances);
        let pairs = drawn.windows(2);
        let sum: f64 = pairs.map(|pair| pair[0] * pair[1]).sum();
        let correlation = sum / drawn.iter().map(|x| x * x).sum::<f64>();
        let is_so = match world {
            World::Plain => (0.019..0.021).contains(&deviation),
            World::Drift => drawn[2999] - drawn[0] > 5.5,
            World::Outliers => mad < 0.03 && deviation > 0.2,
            World::Autocorrelation => (0.9..0.97).contains(&correlation),
            World::HeavyTails => mad < 0.02 && deviation > 0.1,
            World::Bimodal => (0.033..0.041).contains(&deviation),
        };
        assert!(is_so, "{world:?}: {deviation} {mad} {correlation}");
    }
}
