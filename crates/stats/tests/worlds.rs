//! Whole runs in simulated worlds that end as soon as they decide: how often the
//! intervals of a ratio hold the truth, and how often two identical treatments are
//! called different by them alone.

mod simulation;

use simulation::{Disturbances, WORLDS, World};
use toll_stats::{
    Decision, Interval, Looks, Region, Rng, decide, hodges_lehmann, stopped_interval,
};

const LOOKS: Looks = Looks {
    first: 10,
    last: 40,
};
/// Runs end, too, when the interval is half as wide as this, logarithmic. Some are
/// that narrow at the first look and some never, and in each world there is a width
/// at which most runs end early by chance.
const TARGETS: [f64; 7] = [0.05, 0.03, 0.02, 0.015, 0.011, 0.008, 0.005];
/// Differences that a run may end on, logarithmic; the truth is none.
const MARGINS: [f64; 3] = [0.0, 0.005, 0.02];
/// Runs a world. The standard error of a share of 95 % of them is 0.34 %.
const RUNS: u64 = 4000;

/// What a look at the intervals shows.
struct Look {
    blocks: usize,
    /// Of the look alone.
    own: Interval,
    /// That holds with those of all looks.
    judged: Interval,
}

/// Looks at one run of three identical treatments, of which two are compared.
/// Blocks are complete, their order is random, and a disturbance lasts over
/// treatments and blocks.
fn looks(world: World, seed: u64) -> Vec<Look> {
    let mut disturbances = Disturbances::new(world, seed);
    let mut orders = Rng::new(seed).fork(1);
    let mut logs = Vec::new();
    let mut looks = Vec::new();
    for blocks in 1..=LOOKS.last {
        let mut order = [0, 1, 2];
        orders.shuffle(&mut order);
        let mut durations = [0.0; 3];
        for treatment in order {
            durations[treatment] = disturbances.draw();
        }
        logs.push(durations[1] - durations[0]);
        if LOOKS.is_look(blocks) {
            looks.push(Look {
                blocks,
                own: hodges_lehmann(&logs, 0.95),
                judged: stopped_interval(&logs, 0.95, LOOKS),
            });
        }
    }
    looks
}

fn differs(interval: &Interval, margin: f64) -> bool {
    let sides = [Region::Below(-margin), Region::Above(margin)];
    sides
        .iter()
        .any(|side| decide(interval, *side) == Decision::Supported)
}

/// The look at which a run ends.
fn last(looks: &[Look], target: f64, margin: f64) -> &Look {
    let is_same =
        |look: &Look| decide(&look.judged, Region::Within(-margin, margin)) == Decision::Supported;
    let ends = |look: &&Look| {
        is_same(look) || differs(&look.judged, margin) || look.judged.half_width() <= target
    };
    let end = looks.iter().find(ends).or(looks.last());
    end.expect("there is a look")
}

#[track_caller]
fn check(world: World) {
    let runs: Vec<Vec<Look>> = (0..RUNS).map(|seed| looks(world, seed)).collect();
    let mut mean_blocks = Vec::new();
    for (target, margin) in TARGETS
        .iter()
        .flat_map(|t| MARGINS.map(|margin| (*t, margin)))
    {
        let ends: Vec<&Look> = runs
            .iter()
            .map(|looks| last(looks, target, margin))
            .collect();
        let share = |is: &dyn Fn(&Look) -> bool| {
            ends.iter().filter(|look| is(look)).count() as f64 / RUNS as f64
        };
        let covered = share(&|look| look.judged.contains(0.0));
        let own = share(&|look| look.own.contains(0.0));
        let alarms = share(&|look| differs(&look.judged, margin));
        let blocks = ends.iter().map(|look| look.blocks).sum::<usize>() as f64 / RUNS as f64;
        let told = format!(
            "{world:?}, target {target}, margin {margin}: {blocks:.1} blocks, coverage \
             {covered:.4}, of the last look alone {own:.4}, false alarms {alarms:.4}"
        );
        // Three standard errors are 1 %.
        assert!(covered >= 0.94, "{told}");
        assert!(alarms <= 0.06, "{told}");
        // An interval that says nothing of the looks, where they ended the run.
        assert!((0.92..=0.97).contains(&own), "{told}");
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
fn intervals_cover_with_skewed_noise() {
    check(World::Skewed);
}

#[test]
fn intervals_cover_among_bursts() {
    check(World::Bursts);
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
            World::Skewed => drawn.iter().all(|x| *x >= 0.0) && deviation > 0.025,
            World::Bursts => correlation > 0.8 && deviation > 0.06,
        };
        assert!(is_so, "{world:?}: {deviation} {mad} {correlation}");
    }
}
