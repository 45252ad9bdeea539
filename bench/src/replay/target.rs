//! Gives the quantity of a claim a chosen value.

use std::collections::BTreeSet;

use toll_core::plan::{Treatment, find};
use toll_core::spec::{
    BYTES_MOVED, CALLS, Claim, Derived, DerivedKind, Experiment, Selector, Test,
};

use super::nodes::{Donors, Nodes, World};

/// Decrease of the acceleration per doubling of the level, on a curve that is made to cross.
const FALL_PER_DOUBLING: f64 = 0.1;
/// Largest acceleration on a curve that is made to cross.
const ACCELERATION_MAX: f64 = 0.95;
/// Ratio of each level below a knee to the next level.
const RISE_TO_KNEE: f64 = 0.64;

/// The quantity of a claim, and the nodes on which it depends.
#[derive(Debug, Clone)]
pub enum Target {
    /// A ratio, a ratio of ratios or a quotient. Its logarithm is the sum of the levels of these
    /// nodes with these signs.
    Sum(Vec<(usize, f64)>),
    Spread(Vec<usize>),
    Crossing {
        /// For each level: its number, and the nodes of the faster and the slower side.
        curve: Vec<(f64, usize, usize)>,
        value: f64,
    },
    CallShare {
        /// For each level: the nodes of time, calls and bytes.
        curve: Vec<[usize; 3]>,
        /// Index of the level whose call share is meant.
        place: usize,
    },
    Knee {
        curve: Vec<(f64, usize)>,
        tolerance: f64,
        /// Whether a larger value of the metric is better.
        is_rising: bool,
    },
    /// A quantity that is simulated as recorded. The text is the reason.
    Fixed(Vec<usize>, String),
}

/// Creates targets and the nodes that they need.
pub struct Targets<'a> {
    pub experiment: &'a Experiment,
    pub treatments: &'a [Treatment],
    pub donors: &'a Donors<'a>,
    pub nodes: &'a mut Nodes,
}

impl Targets<'_> {
    /// Returns the quantity that a claim is about. The error says why it cannot be simulated.
    pub fn target(&mut self, claim: &Claim) -> Result<Target, String> {
        if let Some(fact) = &claim.differ_by {
            return Err(format!(
                "no single run can test it: the claim is about machines that differ by {fact}"
            ));
        }
        match claim.test() {
            Test::Never(reason) => Err(format!("no run can test it: {reason}")),
            Test::Ratio(contrast) => {
                let per = contrast.per.into_iter();
                let per = per.flat_map(|(of, to)| [(of, -1.0), (to, 1.0)]);
                let sides = [(contrast.of, 1.0), (contrast.to, -1.0)];
                let terms = sides.into_iter().chain(per);
                let terms = terms.map(|(side, sign)| Ok((self.at(contrast.metric, side)?, sign)));
                Ok(Target::Sum(terms.collect::<Result<_, String>>()?))
            }
            Test::Derived(id) => {
                let found = self.experiment.derived.iter().find(|one| one.id == id);
                self.of_derived(found.ok_or("its derived quantity is missing")?)
            }
        }
    }

    fn of_derived(&mut self, derived: &Derived) -> Result<Target, String> {
        let metric = derived.metric.as_str();
        match &derived.kind {
            DerivedKind::Quotient { per, level } => {
                let mut at = derived.at.clone();
                at.insert(derived.factor.clone(), level.clone());
                let terms = vec![(self.at(metric, &at)?, 1.0), (self.at(per, &at)?, -1.0)];
                Ok(Target::Sum(terms))
            }
            DerivedKind::Spread {} => {
                let curve = self.curve(derived, &derived.at, metric)?;
                Ok(Target::Spread(curve.into_iter().map(|one| one.1).collect()))
            }
            DerivedKind::Crossing { of, to, value } => {
                let of = self.curve(derived, of, metric)?;
                let to = self.curve(derived, to, metric)?;
                let both = of.iter().filter_map(|(level, of)| {
                    let (_, to) = to.iter().find(|(other, _)| other == level)?;
                    Some((*level, *of, *to))
                });
                Ok(Target::Crossing {
                    curve: both.collect(),
                    value: *value,
                })
            }
            DerivedKind::CallShare { level } => {
                let curve = self.curve(derived, &derived.at, metric)?;
                let is_it = |(number, _): &(f64, usize)| Some(*number) == level.number;
                let place = curve.iter().position(is_it).ok_or("its level is missing")?;
                let with_amounts = curve.iter().map(|(_, time)| self.amounts(*time));
                Ok(Target::CallShare {
                    curve: with_amounts.collect::<Result<_, _>>()?,
                    place,
                })
            }
            DerivedKind::Knee { tolerance } => Ok(Target::Knee {
                curve: self.curve(derived, &derived.at, metric)?,
                tolerance: *tolerance,
                is_rising: metric.contains("throughput"),
            }),
            DerivedKind::Step { .. } => {
                let curve = self.curve(derived, &derived.at, metric)?;
                let nodes = curve.into_iter().map(|one| one.1).collect();
                let why = "a step lies between two levels, so its position moves in jumps";
                Ok(Target::Fixed(nodes, why.into()))
            }
            DerivedKind::Acceleration { .. }
            | DerivedKind::CostPerCall {}
            | DerivedKind::CostPerByte {} => Err("there is no curve for this kind".into()),
        }
    }

    fn at(&mut self, metric: &str, selector: &Selector) -> Result<usize, String> {
        let treatment = find(self.treatments, selector, &self.experiment.factors)
            .map_err(|reason| reason.to_string())?;
        Ok(self.nodes.at(treatment, metric, self.donors))
    }

    /// Returns the nodes along a quantity's factor, with the number of each level, in ascending
    /// order.
    fn curve(
        &mut self,
        derived: &Derived,
        at: &Selector,
        metric: &str,
    ) -> Result<Vec<(f64, usize)>, String> {
        let factor = self.experiment.factor(&derived.factor);
        let factor = factor.ok_or("its factor is missing")?;
        let mut curve = Vec::new();
        let mut reason = format!("this run has no level of {}", factor.name);
        for (place, level) in factor.levels.iter().enumerate() {
            if !derived.among.is_empty() && !derived.among.iter().any(|one| one.same(level)) {
                continue;
            }
            let mut selector = at.clone();
            selector.insert(factor.name.clone(), level.clone());
            match self.at(metric, &selector) {
                Ok(node) => curve.push((level.number.unwrap_or(place as f64), node)),
                Err(why) => reason = why,
            }
        }
        curve.sort_by(|a, b| a.0.total_cmp(&b.0));
        match curve.len() {
            0 | 1 => Err(reason),
            _ => Ok(curve),
        }
    }

    /// Returns the nodes of time, calls and bytes of a treatment. It is an error if they are not
    /// recorded.
    fn amounts(&mut self, time: usize) -> Result<[usize; 3], String> {
        let treatment = self.nodes.all[time].treatment;
        let mut recorded = |metric: &str| {
            let node = self.nodes.at(treatment, metric, self.donors);
            self.nodes.all[node].median.map(|_| node)
        };
        let calls = recorded(CALLS).ok_or("no run recorded its calls")?;
        let bytes = BYTES_MOVED.iter().find_map(|metric| recorded(metric));
        Ok([time, calls, bytes.ok_or("no run recorded its bytes")?])
    }
}

impl Target {
    /// Returns the nodes on which the quantity depends.
    pub fn nodes(&self) -> BTreeSet<usize> {
        match self {
            Self::Sum(terms) => terms.iter().map(|(node, _)| *node).collect(),
            Self::Spread(nodes) | Self::Fixed(nodes, _) => nodes.iter().copied().collect(),
            Self::Crossing { curve, .. } => {
                curve.iter().flat_map(|(_, of, to)| [*of, *to]).collect()
            }
            Self::CallShare { curve, .. } => curve.iter().flatten().copied().collect(),
            Self::Knee { curve, .. } => curve.iter().map(|(_, node)| *node).collect(),
        }
    }

    /// Returns the ratios on which the quantity depends at a value, as signed sums of nodes. The
    /// first node of each sum is in no other sum.
    pub fn ratios(&self, value: f64) -> Vec<Vec<(usize, f64)>> {
        let over = |of: usize, to: usize| vec![(of, 1.0), (to, -1.0)];
        match self {
            Self::Sum(terms) => vec![terms.clone()],
            Self::Spread(nodes) => nodes[1..].iter().map(|of| over(*of, nodes[0])).collect(),
            Self::Crossing { curve, .. } => {
                curve.iter().map(|(_, of, to)| over(*of, *to)).collect()
            }
            Self::Knee { curve, .. } => {
                // The ratio of the last level that is good enough, or of the first that is not,
                // decides.
                let edge = (knee_position(curve, value) - 0.5).round();
                let edge = curve[edge.clamp(0.0, (curve.len() - 1) as f64) as usize].1;
                let others = curve.iter().filter(|(_, node)| *node != edge);
                others.map(|(_, of)| over(*of, edge)).collect()
            }
            Self::CallShare { .. } | Self::Fixed(..) => Vec::new(),
        }
    }

    /// Moves levels so that the quantity has a value. The error says why that is impossible.
    pub fn put(&self, value: f64, world: &mut World) -> Result<(), String> {
        match self {
            Self::Sum(terms) => put_sum(terms, value, world)?,
            Self::Spread(nodes) => {
                let last = (nodes.len() - 1) as f64;
                for (place, node) in nodes.iter().enumerate() {
                    world[*node] = world[nodes[0]] + value.ln() * place as f64 / last;
                }
            }
            Self::Crossing {
                curve,
                value: level,
            } => {
                for (number, of, to) in curve {
                    let rise = FALL_PER_DOUBLING * (number / value).log2();
                    let log_ratio = (1.0 - level).ln() + rise;
                    world[*of] = world[*to] + log_ratio.max((1.0 - ACCELERATION_MAX).ln());
                }
            }
            Self::CallShare { curve, place } => {
                if value >= 1.0 {
                    return Err("a share must be below 1".into());
                }
                let [time, calls, bytes] = curve[*place].map(|node| world[node].exp());
                let per_call = value * time / calls;
                let per_byte = (1.0 - value) * time / bytes;
                for [time, calls, bytes] in curve {
                    let parts = world[*calls].exp() * per_call + world[*bytes].exp() * per_byte;
                    world[*time] = parts.ln();
                }
            }
            Self::Knee {
                curve,
                tolerance,
                is_rising,
            } => put_knee(curve, value, (*tolerance, *is_rising), world),
            Self::Fixed(_, why) => return Err(why.clone()),
        }
        Ok(())
    }
}

fn put_sum(terms: &[(usize, f64)], value: f64, world: &mut World) -> Result<(), String> {
    let (first, others) = terms.split_first().ok_or("it compares nothing")?;
    let rest: f64 = others.iter().map(|(node, sign)| sign * world[*node]).sum();
    if rest.is_finite() {
        world[first.0] = (value.ln() - rest) / first.1
    } else {
        return Err("the recorded divisor is 0".into());
    }
    Ok(())
}

/// Returns the position of a value among the levels on a logarithmic scale. The first level has
/// position 0.
fn knee_position(curve: &[(f64, usize)], value: f64) -> f64 {
    let beyond = curve.iter().position(|(number, _)| *number >= value);
    let to = beyond.unwrap_or(curve.len() - 1).max(1);
    let (below, above) = (curve[to - 1].0, curve[to].0);
    (to - 1) as f64 + (value / below).ln() / (above / below).ln()
}

/// Moves levels so that the curve has its knee at a value. The level at the knee loses half of
/// the tolerance, and the later levels nothing. If the value is half way between two levels, the
/// lower one loses exactly the tolerance. So the knee can move between levels without a jump of
/// the curve.
fn put_knee(
    curve: &[(f64, usize)],
    knee: f64,
    (tolerance, is_rising): (f64, bool),
    world: &mut World,
) {
    let best = world[curve[curve.len() - 1].1];
    let sign = if is_rising { 1.0 } else { -1.0 };
    let tolerated = (-tolerance).ln_1p();
    let position = knee_position(curve, knee);
    for (place, (_, node)) in curve.iter().enumerate() {
        // Number of levels past the one that loses exactly the tolerance.
        let past = place as f64 - position + 0.5;
        let reached = if past < 0.0 {
            tolerated - past * RISE_TO_KNEE.ln()
        } else {
            tolerated * (1.0 - past).max(0.0)
        };
        world[*node] = best + sign * reached;
    }
}
