//! Simulated coverage of derived quantities from fixed seeds: at the levels that Holm's procedure
//! uses, with as many blocks as runs have, and with different noise.

use crate::size;
use toll_stats::{
    Interval, Knee, Rng, Spread, fit_cost_model, hodges_lehmann, median_interval, step,
    zero_crossing,
};

const CONFIDENCES: [f64; 4] = [0.95, 0.99, 0.995, 0.9975];
const BLOCKS: [usize; 3] = [8, 12, 20];

/// Logarithms of factors on single trials, all with median 0.
#[derive(Debug, Clone, Copy)]
enum Noise {
    /// Normal, 5 %.
    Normal,
    /// Never more than 3 % less, and 20 % more in one trial of fifty.
    Skewed,
    /// Cauchy with a scale of 1 %: one trial in thirty is off by more than 10 %.
    Heavy,
}

const NOISES: [Noise; 3] = [Noise::Normal, Noise::Skewed, Noise::Heavy];

impl Noise {
    fn draw(self, rng: &mut Rng) -> f64 {
        match self {
            Self::Normal => 0.05 * rng.normal(),
            Self::Skewed => 0.05 * (-(1.0 - rng.uniform()).ln() - std::f64::consts::LN_2),
            Self::Heavy => {
                let cauchy = (std::f64::consts::PI * (rng.uniform() - 0.5)).tan();
                (0.01 * cauchy).clamp(-5.0, 5.0)
            }
        }
    }
}

/// Returns one series per level with one value per block in it: the curve, the block's own speed,
/// and noise.
fn logs(curve: &[f64], blocks: usize, noise: Noise, rng: &mut Rng) -> Vec<Vec<f64>> {
    let speeds: Vec<f64> = (0..blocks).map(|_| 0.1 * rng.normal()).collect();
    let mut level = |at: &f64| {
        let values = speeds.iter();
        values.map(|speed| at + speed + noise.draw(rng)).collect()
    };
    curve.iter().map(&mut level).collect()
}

fn sizes(count: usize) -> Vec<f64> {
    (0..count).map(|i| 2f64.powi(i as i32)).collect()
}

/// Makes `runs` runs of `draw` (at full length) with each noise and each number of blocks. The
/// intervals that `interval` computes from them may not miss the truth more often than they
/// promise, beyond what chance does in this many runs.
fn assert_covers<D>(
    truth: f64,
    runs: usize,
    draw: impl Fn(usize, Noise, &mut Rng) -> D,
    interval: impl Fn(&D, f64) -> Interval,
) {
    let mut rng = Rng::new(20_261_123);
    let runs = size::runs(runs);
    for (noise, blocks) in NOISES
        .map(|noise| BLOCKS.map(|blocks| (noise, blocks)))
        .concat()
    {
        let mut misses = [0; CONFIDENCES.len()];
        let mut errors = [0.0; CONFIDENCES.len()];
        for _ in 0..runs {
            let data = draw(blocks, noise, &mut rng);
            for (level, confidence) in CONFIDENCES.into_iter().enumerate() {
                let interval = interval(&data, confidence);
                // With too few blocks, the interval reports a lower confidence.
                errors[level] = 1.0 - interval.confidence.min(confidence);
                misses[level] += u32::from(!interval.contains(truth));
            }
        }
        for (level, confidence) in CONFIDENCES.into_iter().enumerate() {
            let expected = runs as f64 * errors[level];
            let most = expected + 3.0 * expected.sqrt() + 1.0;
            let missed = f64::from(misses[level]);
            assert!(
                missed <= most,
                "{noise:?}, {blocks} blocks, {confidence}: {missed} of {runs}"
            );
        }
    }
}

#[test]
fn a_median_over_blocks_is_held() {
    let draw = |blocks, noise: Noise, rng: &mut Rng| (0..blocks).map(|_| noise.draw(rng)).collect();
    let quotient = |logs: &Vec<f64>, confidence| median_interval(logs, confidence).map(f64::exp);
    assert_covers(1.0, 4000, draw, quotient);
}

/// Log-ratios of two sides along a curve.
fn ratios(curve: &[f64], blocks: usize, noise: Noise, rng: &mut Rng) -> Vec<Vec<f64>> {
    let curve: Vec<f64> = curve
        .iter()
        .copied()
        .chain(curve.iter().map(|_| 0.0))
        .collect();
    let sides = logs(&curve, blocks, noise, rng);
    let (of, to) = sides.split_at(sides.len() / 2);
    let ratio = |(of, to): (&Vec<f64>, &Vec<f64>)| {
        let blocks = of.iter().zip(to);
        blocks.map(|(of, to)| of - to).collect()
    };
    of.iter().zip(to).map(ratio).collect()
}

#[test]
fn an_acceleration_is_held() {
    let draw = |blocks, noise, rng: &mut Rng| ratios(&[-0.3], blocks, noise, rng).remove(0);
    let ratio = |logs: &Vec<f64>, confidence| hodges_lehmann(logs, confidence);
    assert_covers(-0.3, 4000, draw, ratio);
}

fn assert_covers_knee<const LEVELS: usize>(truth: f64, curve: [f64; LEVELS]) {
    let levels = sizes(LEVELS);
    let draw = |blocks, noise, rng: &mut Rng| logs(&curve, blocks, noise, rng);
    let knee =
        |logs: &Vec<Vec<f64>>, confidence| Knee::new(&levels, logs, 0.1).interval(confidence);
    assert_covers(truth, 500, draw, knee);
}

#[test]
fn a_knee_that_is_hardly_good_enough_beside_any_other_is_held() {
    let edge = 0.9f64.ln() + 1e-9;
    assert_covers_knee(2.0, [-1.0, edge, 0.0, 0.0, 0.0, 0.0, 0.0]);
}

#[test]
fn a_knee_after_levels_that_are_hardly_worse_is_held() {
    let edge = 0.9f64.ln() - 1e-9;
    assert_covers_knee(16.0, [edge, edge, edge, edge, 0.0]);
}

#[test]
fn equal_systems_have_no_spread() {
    let draw = |blocks, noise, rng: &mut Rng| logs(&[1.0; 3], blocks, noise, rng);
    assert_covers(1.0, 1000, draw, |logs, confidence| {
        Spread::new(logs).interval(confidence)
    });
}

#[test]
fn a_small_spread_is_held() {
    let draw = |blocks, noise, rng: &mut Rng| logs(&[0.0, 0.1, 0.05], blocks, noise, rng);
    let spread = |logs: &Vec<Vec<f64>>, confidence| Spread::new(logs).interval(confidence);
    assert_covers(0.1f64.exp(), 1000, draw, spread);
}

#[test]
fn a_crossing_is_held_after_a_curve_that_hardly_keeps_off_it() {
    let curve = [0.3, 1e-9, 1e-9, 1e-9, -1e-9, 0.01];
    let levels = sizes(curve.len());
    let draw = |blocks, noise, rng: &mut Rng| ratios(&curve, blocks, noise, rng);
    let crossing = |logs: &Vec<Vec<f64>>, confidence| zero_crossing(&levels, logs, confidence);
    assert_covers(128f64.sqrt(), 1000, draw, crossing);
}

/// Checks runs of a staircase with levels between its plateaus, or with steps that hardly count.
fn assert_covers_step<const LEVELS: usize>(number: usize, curve: [f64; LEVELS]) {
    let levels = sizes(LEVELS);
    let step =
        |logs: &[Vec<f64>], confidence| step(&levels, logs, number, 2f64.ln(), 3, confidence);
    let exact: Vec<Vec<f64>> = curve.iter().map(|at| vec![*at; 8]).collect();
    let truth = step(&exact, 0.9).unwrap().estimate;
    // A run that finds fewer steps has no interval, and so none that misses.
    let everywhere = Interval {
        estimate: truth,
        low: 0.0,
        high: f64::INFINITY,
        confidence: 1.0,
    };
    let draw = |blocks, noise, rng: &mut Rng| logs(&curve, blocks, noise, rng);
    assert_covers(truth, 300, draw, |logs, confidence| {
        step(logs, confidence).unwrap_or(everywhere)
    });
}

#[test]
fn a_step_with_a_level_nearly_half_way_up_is_held() {
    let curve = [
        0.0, 0.01, 0.0, 0.02, 0.55, 1.1, 1.12, 1.1, 1.12, 1.72, 2.3, 2.32, 2.34, 2.3,
    ];
    assert_covers_step(1, curve);
    assert_covers_step(2, curve);
}

#[test]
fn a_step_that_hardly_counts_is_not_mistaken_for_the_next_one() {
    let [low, middle, high] = [[0.0; 4], [0.7; 4], [2.2; 4]];
    let curve: [f64; 12] = [low, middle, high].concat().try_into().unwrap();
    assert_covers_step(1, curve);
    assert_covers_step(2, curve);
}

#[test]
fn the_cost_of_a_call_is_held() {
    let (calls, bytes) = ([1024.0, 256.0, 64.0, 16.0], [4e6; 4]);
    let curve = calls.map(|calls: f64| (calls * 400.0 + 4e6 * 0.1).ln());
    let draw = |blocks, noise, rng: &mut Rng| {
        let logs = logs(&curve, blocks, noise, rng);
        let fit = |block: usize| {
            let time: Vec<f64> = logs.iter().map(|values| values[block].exp()).collect();
            fit_cost_model(&calls, &bytes, &time).unwrap().per_call
        };
        (0..blocks).map(fit).collect()
    };
    let cost = |costs: &Vec<f64>, confidence| median_interval(costs, confidence);
    assert_covers(400.0, 2000, draw, cost);
}

#[test]
fn what_is_clear_is_found() {
    let mut rng = Rng::new(5);
    let stairs = [0.0, 0.0, 0.0, 1.1, 1.1, 1.1, 2.2, 2.2, 2.2, 3.3, 3.3, 3.3];
    let levels = sizes(stairs.len());
    for (noise, blocks, confidence) in [
        (Noise::Normal, 12, 0.99),
        (Noise::Skewed, 12, 0.99),
        (Noise::Normal, 20, 0.9975),
        (Noise::Skewed, 20, 0.9975),
    ] {
        let mut found = [0; 3];
        for _ in 0..100 {
            let stairs = logs(&stairs, blocks, noise, &mut rng);
            let is_between_two = |number: usize| {
                let step = step(&levels, &stairs, number, 2f64.ln(), 3, confidence);
                let middle = (levels[3 * number - 1] * levels[3 * number]).sqrt();
                let is_certain = |at: Interval| (at.low, at.high) == (middle, middle);
                step.is_some_and(|at| at.reaches(confidence) && is_certain(at))
            };
            found[0] += u32::from((1..=3).all(is_between_two));
            let apart = logs(&[0.0, 1.5f64.ln(), 0.2], blocks, noise, &mut rng);
            let apart = Spread::new(&apart).interval(confidence);
            found[1] += u32::from(apart.reaches(confidence) && apart.low > 1.2);
            let curve = logs(&[-1.0, -0.3, 0.03, 0.0], blocks, noise, &mut rng);
            let knee = Knee::new(&levels[..4], &curve, 0.1).interval(confidence);
            found[2] += u32::from(knee.reaches(confidence) && knee.high == 4.0);
        }
        assert!(found.iter().all(|found| *found >= 90), "{found:?}");
    }
}
