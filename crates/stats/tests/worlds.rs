//! Whole runs in simulated worlds that end as soon as they decide. Tests how often the intervals
//! of a ratio contain the truth, and how often they alone call two identical treatments different.

use crate::simulation::{Disturbances, WORLDS, World};
use crate::size;
use toll_stats::{
    Decision, Interval, Looks, Region, Rng, decide, hodges_lehmann, stopped_decision_p,
    stopped_interval,
};

const LOOKS: Looks = Looks {
    first: 10,
    last: 40,
};
/// Half-widths, as log-ratios, at which runs also end. Some intervals are that narrow at the first
/// look and some never. In each world there is a width at which most runs end early by chance.
const TARGETS: [f64; 7] = [0.05, 0.03, 0.02, 0.015, 0.011, 0.008, 0.005];
/// Differences, as log-ratios, on which a run may end; the true difference is 0.
const MARGINS: [f64; 3] = [0.0, 0.005, 0.02];
/// Runs per world, at full length. The standard error of a share of 95 % of them is 0.34 %.
const RUNS: usize = 4000;

/// What a look at the intervals shows.
struct Look {
    blocks: usize,
    /// The interval of this look alone.
    own: Interval,
    /// The interval that holds jointly with the intervals of all looks.
    judged: Interval,
}

/// Returns the looks at one run of three identical treatments, two of which are compared. Blocks
/// are complete, their order is random, and a disturbance continues across treatments and blocks.
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
                judged: stopped_interval(&logs, 0.95, LOOKS.at(blocks)),
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

/// Returns the look at which a run ends.
fn last(looks: &[Look], target: f64, margin: f64) -> &Look {
    let is_same =
        |look: &Look| decide(&look.judged, Region::Within(-margin, margin)) == Decision::Supported;
    let ends = |look: &&Look| {
        is_same(look) || differs(&look.judged, margin) || look.judged.half_width() <= target
    };
    let end = looks.iter().find(ends).or(looks.last());
    end.expect("there is a look")
}

fn check(world: World) {
    let seeds = 0..size::runs(RUNS) as u64;
    let runs: Vec<Vec<Look>> = seeds.map(|seed| looks(world, seed)).collect();
    let tolerance = size::widening();
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
            ends.iter().filter(|look| is(look)).count() as f64 / runs.len() as f64
        };
        let covered = share(&|look| look.judged.contains(0.0));
        let own = share(&|look| look.own.contains(0.0));
        let alarms = share(&|look| differs(&look.judged, margin));
        let blocks = ends.iter().map(|look| look.blocks).sum::<usize>() as f64 / runs.len() as f64;
        let found = format!(
            "{world:?}, target {target}, margin {margin}: {blocks:.1} blocks, coverage \
             {covered:.4}, of the last look alone {own:.4}, false alarms {alarms:.4}"
        );
        // Three standard errors are 1 %.
        assert!(covered >= 0.95 - 0.01 * tolerance, "{found}");
        assert!(alarms <= 0.05 + 0.01 * tolerance, "{found}");
        // The interval that ignores the other looks, at the look that ended the run.
        let usual = 0.95 - 0.03 * tolerance..=0.95 + 0.02 * tolerance;
        assert!(usual.contains(&own), "{found}");
        mean_blocks.push(blocks);
    }
    // Otherwise early stopping by chance would not have been tested.
    let midway = |blocks: &f64| (11.0..38.0).contains(blocks);
    assert!(
        mean_blocks.iter().filter(|b| midway(b)).count() >= 3,
        "{world:?}: {mean_blocks:?}"
    );
}

/// Number of treatments in a wide block; some are in no pair.
const WIDE: usize = 65;
const PAIRS: usize = 30;
/// The looks of runs of wide blocks.
const FEW: Looks = Looks { first: 8, last: 20 };
/// Sizes of families in which no other claim is decided: Holm's procedure tests each claim at 5 %
/// divided by this number.
const FAMILIES: [usize; 3] = [1, 10, PAIRS];
const RUNS_WIDE: u64 = 1000;

/// Returns the log-ratios, by pair and block, of one run in which no pair differs. The two
/// treatments of a pair are neighbours, like the two of a claim in the plan of a run.
fn wide_run(world: World, seed: u64) -> Vec<Vec<f64>> {
    let mut disturbances = Disturbances::new(world, seed);
    let mut orders = Rng::new(seed).fork(1);
    let mut logs = vec![Vec::new(); PAIRS];
    for _ in 0..FEW.last {
        let mut groups: Vec<Vec<usize>> = (0..PAIRS).map(|i| vec![2 * i, 2 * i + 1]).collect();
        groups.extend((2 * PAIRS..WIDE).map(|single| vec![single]));
        orders.shuffle(&mut groups);
        groups.iter_mut().for_each(|group| orders.shuffle(group));
        let mut order = groups.concat();
        if orders.below(2) == 1 {
            order.reverse();
        }
        let mut durations = [0.0; WIDE];
        for treatment in order {
            durations[treatment] = disturbances.draw();
        }
        for (pair, logs) in logs.iter_mut().enumerate() {
            logs.push(durations[2 * pair + 1] - durations[2 * pair]);
        }
    }
    logs
}

/// Checks that intervals of a fixed number of blocks cover as often as they promise, at every
/// level that Holm's procedure may use.
fn check_levels(world: World, runs: &[Vec<Vec<f64>>]) {
    for (blocks, family) in [8, 12, 20].iter().flat_map(|b| FAMILIES.map(|f| (*b, f))) {
        let confidence = 1.0 - 0.05 / family as f64;
        let achieved = hodges_lehmann(&vec![0.0; blocks], confidence).confidence;
        let intervals = runs.iter().flatten();
        let intervals = intervals.map(|logs| hodges_lehmann(&logs[..blocks], confidence));
        let count = (runs.len() * PAIRS) as f64;
        let covered = intervals.filter(|one| one.contains(0.0)).count() as f64 / count;
        let standard_error = (achieved * (1.0 - achieved) / count).sqrt();
        let found = format!("{world:?}, {blocks} blocks, {family}: {covered} for {achieved}");
        assert!((covered - achieved).abs() < 4.0 * standard_error, "{found}");
        if family == 1 {
            assert!((0.94..=0.97).contains(&covered), "{found}");
        }
    }
}

/// Checks that no look of a run errs more often than Holm's level allows, and no look of any pair
/// in a family does.
fn check_families(world: World, runs: &[Vec<Vec<f64>>]) {
    let looks: Vec<usize> = (1..=FEW.last).filter(|n| FEW.is_look(*n)).collect();
    let smallest_p = |logs: &Vec<f64>| {
        let at = |blocks: &usize| {
            stopped_decision_p(&logs[..*blocks], Region::Below(0.0), FEW.at(*blocks))
        };
        looks.iter().map(at).fold(1.0, f64::min)
    };
    let ps: Vec<Vec<f64>> = runs
        .iter()
        .map(|run| run.iter().map(smallest_p).collect())
        .collect();
    for family in FAMILIES {
        let level = 0.05 / family as f64;
        let errs = |p: &f64| *p <= level;
        let count = (runs.len() * PAIRS) as f64;
        let alone = ps.iter().flatten().filter(|p| errs(p)).count() as f64 / count;
        let any = ps.iter().filter(|ps| ps[..family].iter().any(errs));
        let any = any.count() as f64 / runs.len() as f64;
        let found = format!("{world:?}, {family}: {alone} for {level}, any {any}");
        let standard_error = (level / count).sqrt();
        assert!(alone < level + 3.0 * standard_error, "{found}");
        // In a large family, no claim can be decided at the first look, which has half of the
        // error.
        assert!(alone > 0.1 * level, "{found}");
        // The standard error is 0.7 %.
        assert!(any <= 0.06, "{found}");
    }
}

#[test]
fn in_wide_blocks_intervals_cover_at_holms_levels_and_families_err_as_rarely_as_one_claim() {
    std::thread::scope(|scope| {
        for world in WORLDS {
            scope.spawn(move || {
                let runs: Vec<_> = (0..RUNS_WIDE).map(|seed| wide_run(world, seed)).collect();
                check_levels(world, &runs);
                check_families(world, &runs);
            });
        }
    });
}

#[test]
fn intervals_cover_in_every_world() {
    std::thread::scope(|scope| {
        for world in WORLDS {
            scope.spawn(move || check(world));
        }
    });
}

#[test]
fn every_world_disturbs_as_it_says() {
    for world in WORLDS {
        let mut disturbances = Disturbances::new(world, 1);
        let drawn: Vec<f64> = (0..3000).map(|_| disturbances.draw()).collect();
        let deviation = toll_stats::standard_deviation(&drawn);
        // The median absolute deviation, scaled to the standard deviation of normal values.
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
