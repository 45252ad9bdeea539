//! Worlds to simulate: disturbances of the durations of successive trials, independent of the
//! treatments.

use toll_stats::Rng;

/// A kind of disturbance. It multiplies durations; the logarithm of the factor is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum World {
    /// Independent normal noise of 2 %.
    Plain,
    /// Like [`World::Plain`], but everything gets slower by 0.2 % per trial: by a quarter over 10
    /// blocks of 11 trials, or over 37 blocks of 3.
    Drift,
    /// Like [`World::Plain`], but one trial in ten takes 1.2 to 4.2 times as long.
    Outliers,
    /// Persistent noise of 5 %, with a correlation of 0.95 from trial to trial (AR(1)), and 0.5 %
    /// of noise of each trial's own.
    Autocorrelation,
    /// Cauchy noise with a scale of 1 %, which has neither mean nor variance.
    HeavyTails,
    /// Three trials in ten take 8 % longer, with 0.4 % around either mode.
    Bimodal,
    /// Exponential noise: no trial is faster than the work, and trials are slower by 3 % on
    /// average.
    Skewed,
    /// Like [`World::Plain`], but with spells in which everything takes 15 % longer. Spells, and
    /// the gaps between them, last 20 trials on average.
    Bursts,
}

/// All worlds.
pub const WORLDS: [World; 8] = [
    World::Plain,
    World::Drift,
    World::Outliers,
    World::Autocorrelation,
    World::HeavyTails,
    World::Bimodal,
    World::Skewed,
    World::Bursts,
];

/// The disturbances of one run in a world, in the order of its trials.
pub struct Disturbances {
    world: World,
    rng: Rng,
    trials: u32,
    lasting: f64,
}

impl Disturbances {
    /// Starts one run; equal seeds give equal runs.
    pub fn new(world: World, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let lasting = 0.05 * rng.normal();
        Self {
            world,
            rng,
            trials: 0,
            lasting,
        }
    }

    /// Returns the logarithm of the factor on the next trial.
    pub fn draw(&mut self) -> f64 {
        const CORRELATION: f64 = 0.95;
        let (normal, uniform) = (self.rng.normal(), self.rng.uniform());
        self.trials += 1;
        match self.world {
            World::Plain => 0.02 * normal,
            World::Drift => 0.02 * normal + 0.002 * f64::from(self.trials),
            World::Outliers if uniform < 0.1 => 0.02 * normal + (1.2 + 30.0 * uniform).ln(),
            World::Outliers => 0.02 * normal,
            World::Autocorrelation => {
                let fresh = (1.0 - CORRELATION * CORRELATION).sqrt();
                self.lasting = CORRELATION * self.lasting + 0.05 * fresh * normal;
                self.lasting + 0.005 * self.rng.normal()
            }
            // Bounded so that a duration stays a finite number above 0.
            World::HeavyTails => {
                (0.01 * (std::f64::consts::PI * (uniform - 0.5)).tan()).clamp(-20.0, 20.0)
            }
            World::Bimodal if uniform < 0.3 => 0.004 * normal + 0.08,
            World::Bimodal => 0.004 * normal,
            World::Skewed => -0.03 * (1.0 - uniform).ln(),
            World::Bursts => {
                if uniform < 0.05 {
                    self.lasting = if self.lasting > 0.0 { -0.15 } else { 0.15 };
                }
                self.lasting.clamp(0.0, 0.15) + 0.02 * normal
            }
        }
    }
}
