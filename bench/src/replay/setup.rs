//! Prepares a built-in experiment in a profile for simulation.

use std::collections::{BTreeMap, BTreeSet};

use toll_core::claim::analyse;
use toll_core::claim::model::{ClaimDirection, Outcome};
use toll_core::plan::{Plan, Treatment, of_claim};
use toll_core::run::{RunRecord, RunStatus, StoredRun, TrialRecord};
use toll_core::spec::{Claim, Experiment, Test, builtin, parse};
use toll_stats::Rng;

use super::nodes::{Donors, Nodes, Origin, World};
use super::noise::Noise;
use super::target::{Target, Targets};

/// Number of blocks of a run without noise, which is enough for any verdict on a single claim.
const BLOCKS_WITHOUT_NOISE: u32 = 16;
/// Number of iterations to find the cost model whose noisy blocks have a given call share.
const SHARE_STEPS: usize = 3;

/// A built-in experiment in a profile, ready to be simulated.
pub struct Setup {
    pub name: String,
    pub profile: String,
    /// The run without trials, reduced to the treatments that claims need.
    pub run: StoredRun,
    pub plan: Plan,
    pub nodes: Nodes,
    pub claims: Vec<Studied>,
    /// Claims that are not simulated, each with the reason.
    pub left_out: Vec<(String, String)>,
    /// The world with as many published values as can hold together. Other values are as
    /// recorded.
    pub world: World,
    /// The levels from which trials are drawn. With them, estimators find the values of `world`.
    pub drawn_world: World,
    /// Time of a block in seconds, if it was recorded.
    pub block_s: Option<f64>,
}

/// A claim that is simulated.
pub struct Studied {
    pub claim: Claim,
    pub target: Target,
    /// The least reliable origin of noise among the claim's nodes.
    pub origin: Origin,
    /// Whether the claim has its published value in the setup's world.
    pub is_published_in_world: bool,
    /// The experiment reduced to this claim.
    alone: Experiment,
}

impl Studied {
    /// Returns whether the claim is about the quotient of two metrics of the same trial.
    fn is_quotient(&self) -> bool {
        matches!(
            (&self.target, self.claim.test()),
            (Target::Sum(_), Test::Derived(_))
        )
    }
}

impl Setup {
    /// Prepares a built-in experiment in a profile for simulation.
    pub fn new(name: &str, profile: &str, noise: &Noise) -> Result<Self, String> {
        let builtin = builtin::find(name).ok_or(format!(
            "cannot replay {name}: there is no built-in experiment of that name; run toll list"
        ))?;
        let experiment = parse(builtin.toml, name, profile).map_err(|error| error.to_string())?;
        let tables = experiment.tables.clone();
        let experiment = without_figures(experiment);
        let plan = Plan::new(&experiment, 0)?;
        let treatments = plan.treatments.clone();
        let donors = Donors::new(
            noise.representative(name, profile),
            &treatments,
            &needed(&experiment, &treatments),
            &tables,
        );
        let mut nodes = Nodes::new(&donors);
        let mut targets = Targets {
            experiment: &experiment,
            treatments: &treatments,
            donors: &donors,
            nodes: &mut nodes,
        };
        let (mut claims, mut left_out) = (Vec::new(), Vec::new());
        for claim in &experiment.claims {
            match targets.target(claim) {
                Ok(target) => claims.push(Studied {
                    claim: claim.clone(),
                    target,
                    origin: Origin::Measured,
                    is_published_in_world: false,
                    alone: alone(&experiment, claim),
                }),
                Err(why) => left_out.push((claim.id.clone(), why)),
            }
        }
        add_twins(&mut nodes, &treatments, &donors);
        for studied in &mut claims {
            let origins = studied.target.nodes().into_iter();
            let origins = origins.map(|node| nodes.all[node].origin);
            studied.origin = origins.max().unwrap_or(Origin::Assumed);
        }
        let world = published_world(nodes.recorded_levels(), &mut claims, |_| 0.0);
        let centre = |studied: &Studied| match &studied.target {
            Target::Sum(terms) => nodes.centre(terms, studied.is_quotient()),
            _ => 0.0,
        };
        let drawn_world = published_world(nodes.recorded_levels(), &mut claims, centre);
        Ok(Self {
            name: name.to_owned(),
            profile: profile.to_owned(),
            run: StoredRun {
                run: RunRecord {
                    status: RunStatus::Complete,
                    ..RunRecord::from_experiment(&experiment)
                },
                experiment,
                treatments,
                trials: Vec::new(),
                boots: Vec::new(),
                profiles: Vec::new(),
            },
            plan,
            nodes,
            claims,
            left_out,
            world,
            drawn_world,
            block_s: noise.block_s(name, profile),
        })
    }

    /// Studies only claims whose id begins with `start`. Other claims are still judged.
    pub fn study(&mut self, start: &str) {
        self.claims.retain(|one| one.claim.id.starts_with(start));
        self.left_out.retain(|(id, _)| id.starts_with(start));
    }

    /// Returns the trials of one block, from the level and deviation of each node. Treatments
    /// that no claim needs have no trial.
    pub fn block(&self, block: u32, world: &World, deviations: &[f64]) -> Vec<TrialRecord> {
        let mut samples: BTreeMap<usize, BTreeMap<String, Vec<f64>>> = BTreeMap::new();
        for (place, node) in self.nodes.all.iter().enumerate() {
            let level = world[node.twin_of.unwrap_or(place)];
            let value = (level + deviations[place]).exp();
            let of_trial = samples.entry(node.treatment).or_default();
            of_trial.insert(node.metric.clone(), vec![value]);
        }
        let trials = samples.into_iter();
        trials
            .map(|(treatment, samples)| TrialRecord {
                block,
                treatment,
                samples,
                ..TrialRecord::default()
            })
            .collect()
    }

    /// Returns the verdict on a single claim in a world without noise, and the measured value.
    pub fn truth(&self, studied: &Studied, world: &World) -> (Outcome, Option<f64>) {
        let deviations = vec![0.0; self.nodes.all.len()];
        let blocks = 0..BLOCKS_WITHOUT_NOISE;
        let trials = blocks.flat_map(|block| self.block(block, world, &deviations));
        let involved = self.involved(studied);
        let trials = trials.filter(|trial| involved.contains(&trial.treatment));
        let analysis = analyse(&self.alone(studied, trials.collect()));
        let verdict = analysis.verdicts.first().or(analysis.checks.first());
        let measured = verdict.and_then(|one| Some(one.measured?.value));
        (
            verdict.map_or(Outcome::NotTestable, |one| one.outcome),
            measured,
        )
    }

    /// Returns the treatments that a claim needs, and their twins.
    pub fn involved(&self, studied: &Studied) -> BTreeSet<usize> {
        let nodes = studied.target.nodes().into_iter();
        let mut involved: BTreeSet<usize> =
            nodes.map(|node| self.nodes.all[node].treatment).collect();
        let twins = self.run.treatments.iter();
        for (twin, of) in twins.filter_map(|one| Some((one.index, one.twin_of?))) {
            involved.extend([twin, of]);
        }
        involved
    }

    /// Returns a run whose experiment has only this claim.
    pub fn alone(&self, studied: &Studied, trials: Vec<TrialRecord>) -> StoredRun {
        StoredRun {
            run: self.run.run.clone(),
            experiment: studied.alone.clone(),
            treatments: self.run.treatments.clone(),
            trials,
            boots: Vec::new(),
            profiles: Vec::new(),
        }
    }

    /// Returns the levels from which trials are drawn to give a claim's quantity a value. Each
    /// ratio of the quantity is moved by the centre of its noise, so that the estimator finds the
    /// value.
    pub fn moved(&self, studied: &Studied, value: f64) -> Result<World, String> {
        let mut world = self.world.clone();
        studied.target.put(value, &mut world)?;
        for terms in studied.target.ratios(value) {
            let (node, sign) = terms[0];
            world[node] -= sign * self.nodes.centre(&terms, studied.is_quotient());
        }
        if let Target::CallShare { curve, place } = &studied.target {
            let mut put = value;
            for _ in 0..SHARE_STEPS {
                put *= value / self.nodes.median_call_share(curve, *place, &world);
                studied.target.put(put, &mut world)?;
            }
        }
        Ok(world)
    }

    /// Returns the world in which a ratio has the value that its estimator finds in drawn trials.
    /// If two metrics vary together, the median of their quotients is not the quotient of their
    /// medians.
    pub fn as_estimated(&self, studied: &Studied) -> World {
        let Target::Sum(terms) = &studied.target else {
            return self.world.clone();
        };
        let mut world = self.drawn_world.clone();
        let (node, sign) = terms[0];
        world[node] += sign * self.nodes.centre(terms, studied.is_quotient());
        world
    }

    /// Returns whether a claim is about a quantity whose interval takes a hundred times as long
    /// to compute as others.
    #[must_use]
    pub fn is_slow(&self) -> bool {
        let is_slow = |target: &Target| {
            matches!(
                target,
                Target::Knee { .. } | Target::Crossing { .. } | Target::CallShare { .. }
            )
        };
        self.claims.iter().any(|one| is_slow(&one.target))
    }

    /// Refuses a quantity that has no noise in half of the blocks. Even on a border, its measured
    /// value would be on one side.
    pub fn require_noise(&self, studied: &Studied) -> Result<(), String> {
        const LEAST: f64 = 1e-4;
        let Target::Sum(terms) = &studied.target else {
            return Ok(());
        };
        let mut rng = Rng::new(1);
        let draws = (0..1001).map(|_| self.nodes.draw_sum(terms, &mut rng).abs());
        if toll_stats::median(&draws.collect::<Vec<_>>()) > LEAST {
            Ok(())
        } else {
            Err("it has no noise, so there is nothing to decide".into())
        }
    }
}

/// Removes the parts that are only shown, because they take time and judge nothing.
fn without_figures(mut experiment: Experiment) -> Experiment {
    experiment.tables.clear();
    experiment.figures.clear();
    experiment.advice.clear();
    let claims = &experiment.claims;
    let is_judged = |id: &str| {
        let mut tests = claims.iter().map(Claim::test);
        tests.any(|test| matches!(test, Test::Derived(one) if one == id))
    };
    experiment.derived.retain(|one| is_judged(&one.id));
    experiment
}

fn alone(experiment: &Experiment, claim: &Claim) -> Experiment {
    let mut alone = experiment.clone();
    alone.claims.retain(|one| one.id == claim.id);
    without_figures(alone)
}

/// Returns the treatments that claims compare, and the twins with their originals.
fn needed(experiment: &Experiment, treatments: &[Treatment]) -> BTreeSet<usize> {
    let claims = experiment.claims.iter();
    let claimed = claims.flat_map(|claim| of_claim(experiment, &claim.test(), treatments));
    let twins = treatments
        .iter()
        .filter_map(|one| Some([one.index, one.twin_of?]));
    claimed.chain(twins.flatten()).collect()
}

/// Adds nodes for each twin: one for each metric of its original in a claim.
fn add_twins(nodes: &mut Nodes, treatments: &[Treatment], donors: &Donors) {
    let metrics = nodes.metrics();
    for treatment in treatments {
        let Some(original) = treatment.twin_of else {
            continue;
        };
        for metric in &metrics {
            let of = nodes.at(original, metric, donors);
            let twin = nodes.at(treatment.index, metric, donors);
            nodes.all[twin].twin_of = Some(of);
        }
    }
}

/// Moves levels so that as many published values as possible hold together, when the `centre` of
/// its noise is added to each. Levels that one value ties together are later moved together.
fn published_world(
    mut world: World,
    claims: &mut [Studied],
    centre: impl Fn(&Studied) -> f64,
) -> World {
    let mut tied: Vec<usize> = (0..world.len()).collect();
    for studied in claims {
        let (Target::Sum(terms), Some(published)) = (&studied.target, studied.claim.published)
        else {
            continue;
        };
        let sum: f64 = terms.iter().map(|(node, sign)| sign * world[*node]).sum();
        let missing = published.ln() - centre(studied) - sum;
        let is_free = |(place, (node, _)): &(usize, &(usize, f64))| {
            let mut others = terms.iter().enumerate().filter(|(other, _)| other != place);
            world[*node].is_finite() && others.all(|(_, (other, _))| tied[*other] != tied[*node])
        };
        let free = terms
            .iter()
            .enumerate()
            .find(is_free)
            .map(|(_, term)| *term);
        match free {
            Some((node, sign)) if missing.is_finite() => {
                let group = tied[node];
                for (place, level) in world.iter_mut().enumerate() {
                    if tied[place] == group {
                        *level += sign * missing;
                    }
                }
            }
            _ if missing.abs() < 1e-9 => {}
            _ => continue,
        }
        let groups: BTreeSet<usize> = terms.iter().map(|(node, _)| tied[*node]).collect();
        let first = groups.first().copied().unwrap_or_default();
        for group in &mut tied {
            if groups.contains(group) {
                *group = first;
            }
        }
        studied.is_published_in_world = true;
    }
    world
}

/// A value at which the verdict changes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Border {
    /// The verdict that begins at the border.
    pub begins: Outcome,
    pub value: f64,
}

impl Setup {
    /// Finds the values at which "supported" and "refuted" of a claim begin, by runs without
    /// noise.
    pub fn borders(&self, studied: &Studied) -> Result<Vec<Border>, String> {
        let claim = &studied.claim;
        let threshold = claim.threshold().ln();
        let middle = match claim.threshold_high() {
            Some(high) => f64::midpoint(threshold, high.ln()),
            None => threshold,
        };
        // These are the directions out of the region where the claim holds, on a logarithmic
        // scale.
        let ways: &[f64] = match claim.direction() {
            ClaimDirection::Less => &[1.0],
            ClaimDirection::Greater => &[-1.0],
            ClaimDirection::Equal | ClaimDirection::Within => &[-1.0, 1.0],
        };
        let outcome = |log: f64| -> Result<Outcome, String> {
            let mut world = self.world.clone();
            studied.target.put(log.exp(), &mut world)?;
            Ok(self.truth(studied, &world).0)
        };
        let mut borders = Vec::new();
        for way in ways {
            let inside = search(middle, -way, Outcome::Supported, &outcome)?;
            let outside = search(middle, *way, Outcome::Refuted, &outcome)?;
            let is_supported = |log| Ok(outcome(log)? == Outcome::Supported);
            let (inside, beyond) = bisect((inside, outside), is_supported)?;
            let begins = Outcome::Supported;
            let value = f64::midpoint(inside, beyond).exp();
            borders.push(Border { begins, value });
            let value = match outcome(beyond)? {
                Outcome::Refuted => value,
                _ => {
                    let is_open = |log| Ok(outcome(log)? != Outcome::Refuted);
                    let (inside, beyond) = bisect((beyond, outside), is_open)?;
                    f64::midpoint(inside, beyond).exp()
                }
            };
            let begins = Outcome::Refuted;
            borders.push(Border { begins, value });
        }
        Ok(borders)
    }
}

/// Returns the first value with an outcome, searching from a middle value in one direction.
fn search(
    middle: f64,
    way: f64,
    wanted: Outcome,
    outcome: &impl Fn(f64) -> Result<Outcome, String>,
) -> Result<f64, String> {
    const WAY_MAX: f64 = 16.0;
    let mut distance = 0.0;
    loop {
        let log = middle + way * distance;
        if outcome(log)? == wanted {
            return Ok(log);
        }
        distance = if distance == 0.0 {
            1e-3
        } else {
            2.0 * distance
        };
        if distance > WAY_MAX {
            let name = match wanted {
                Outcome::Supported => "supports",
                _ => "refutes",
            };
            return Err(format!("no value {name} it"));
        }
    }
}

/// Returns the last value between two values for which `holds` is true, and the first for which
/// it is false.
fn bisect(
    (mut inside, mut outside): (f64, f64),
    holds: impl Fn(f64) -> Result<bool, String>,
) -> Result<(f64, f64), String> {
    const PRECISION: f64 = 2e-6;
    while (outside - inside).abs() > PRECISION {
        let middle = f64::midpoint(inside, outside);
        if holds(middle)? {
            inside = middle
        } else {
            outside = middle
        }
    }
    Ok((inside, outside))
}
