//! Advice for this machine.

use toll_stats::{Interval, median, median_interval, stopped_interval};

use super::context::AnalysisContext;
use super::model::{Advice, Better, DerivedValue, Estimate};
use super::{ALPHA, CONFIDENCE, MARGIN_MIN, derived};
use crate::format;
use crate::spec::{AdviceKind, AdviceSpec, Derived, DerivedKind, Level, Selector};

/// Gain, as a share, from which a larger buffer is worth its memory.
const WORTHWHILE: f64 = 0.05;

/// Returns all advice that an experiment asks for and the run's data allow.
pub(super) fn advise(context: &AnalysisContext) -> Vec<Advice> {
    let mut advice = Vec::new();
    for spec in &context.experiment.advice {
        for at in context.experiment.combinations(&spec.each, &spec.at) {
            let topic = Topic { spec, at, context };
            match &spec.kind {
                AdviceKind::Best => advice.extend(topic.best()),
                AdviceKind::Saturation => advice.extend(topic.saturation()),
                AdviceKind::Cost => {
                    advice.extend(spec.over.iter().flat_map(|over| topic.cost(over)))
                }
            }
        }
    }
    advice
}

struct Topic<'a> {
    spec: &'a AdviceSpec,
    at: Selector,
    context: &'a AnalysisContext<'a>,
}

struct Candidate {
    label: String,
    index: usize,
    median: f64,
}

impl Topic<'_> {
    fn topic(&self) -> String {
        let mut topic = self.spec.topic.clone();
        for name in &self.spec.each {
            let label = self.at.get(name).map_or("", |level| level.text.as_str());
            topic = topic.replace(&format!("{{{name}}}"), label);
        }
        topic
    }

    fn label(&self, level: &Level) -> String {
        let factor = self.context.experiment.factor(&self.spec.factor);
        factor.map_or_else(|| level.text.clone(), |factor| factor.label(level))
    }

    /// Returns the treatments along the factor that have data, the best first.
    fn candidates(&self) -> Vec<Candidate> {
        let Some(factor) = self.context.experiment.factor(&self.spec.factor) else {
            return Vec::new();
        };
        let better = self.context.metric(&self.spec.metric).better;
        let mut candidates: Vec<Candidate> = factor
            .levels
            .iter()
            .filter(|level| !self.spec.except.iter().any(|except| except.same(level)))
            .filter_map(|level| {
                let mut selector = self.at.clone();
                selector.insert(factor.name.clone(), level.clone());
                let index = self.context.pick(&selector).ok()?;
                if !self.context.is_comparable(&self.spec.metric, &[index]) {
                    return None;
                }
                let values = self.context.values(&self.spec.metric, index);
                (!values.is_empty()).then(|| Candidate {
                    label: self.label(level),
                    index,
                    median: median(&values),
                })
            })
            .collect();
        candidates.sort_by(|a, b| match better {
            Better::Higher => b.median.total_cmp(&a.median),
            _ => a.median.total_cmp(&b.median),
        });
        candidates
    }

    /// Returns by what factor the candidate `of` is worse than `than`; below 1, it is better.
    /// `None` without a ratio, or with too few blocks for a verdict.
    fn times_worse(&self, of: &Candidate, than: &Candidate, confidence: f64) -> Option<Interval> {
        let higher = self.context.metric(&self.spec.metric).better == Better::Higher;
        let (of, than) = if higher { (than, of) } else { (of, than) };
        let logs = self
            .context
            .log_ratios(&self.spec.metric, of.index, than.index)
            .ok()?;
        let look = self.context.look_at(&[of.index, than.index]);
        let interval = stopped_interval(&logs, confidence, look);
        interval.reaches(confidence).then(|| interval.map(f64::exp))
    }

    /// Puts the interval of `times_worse` into words.
    fn worse(&self, interval: &Interval) -> String {
        let metric = self.context.metric(&self.spec.metric);
        let ratio = Estimate::from(interval);
        match metric.better {
            Better::Higher => format::change(&format::inverse(&ratio), &metric),
            _ => format::change(&ratio, &metric),
        }
    }

    fn value(&self, candidate: &Candidate) -> String {
        let unit = self.context.metric(&self.spec.metric).unit;
        let values = self.context.values(&self.spec.metric, candidate.index);
        let interval = Estimate::from(&median_interval(&values, CONFIDENCE));
        format!(
            "{}: {}",
            candidate.label,
            format::interval(&interval, &unit)
        )
    }

    /// Compares every other level with the best one. The intervals hold simultaneously at 95 %.
    fn best(&self) -> Option<Advice> {
        let candidates = self.candidates();
        let (best, others) = candidates.split_first()?;
        if others.is_empty() {
            return None;
        }
        let confidence = 1.0 - ALPHA / others.len() as f64;
        let mut rivals = Vec::new();
        let mut evidence = vec![self.value(best)];
        for other in others {
            let interval = self.times_worse(other, best, confidence);
            match interval {
                Some(interval) if interval.low > 1.0 + MARGIN_MIN => {
                    if evidence.len() < EVIDENCE_MAX {
                        let worse = self.worse(&interval);
                        evidence.push(format!("{}: {worse}", other.label));
                    }
                }
                _ => rivals.push(other),
            }
        }
        let text = match rivals.as_slice() {
            // A bare level may read as a command: "use none".
            [] => format!("use {}={}", self.spec.factor, best.label),
            rivals => {
                evidence.extend(rivals.iter().map(|rival| self.value(rival)));
                let names: Vec<_> = std::iter::once(best)
                    .chain(rivals.iter().copied())
                    .map(|c| c.label.as_str())
                    .collect();
                format!(
                    "any {} of {}: the data do not tell them apart",
                    self.spec.factor,
                    names.join(", ")
                )
            }
        };
        Some(Advice {
            topic: self.topic(),
            text,
            decided: rivals.is_empty(),
            evidence,
            gain: gain(best.median, others.iter().map(|other| other.median)),
        })
    }

    /// Finds the smallest level that is worse than the best one by less than [`WORTHWHILE`], and
    /// whether a larger level gains that much. All comparisons are with the best level, and hold
    /// simultaneously.
    fn saturation(&self) -> Option<Advice> {
        let mut candidates = self.candidates();
        if candidates.len() < 2 {
            return None;
        }
        let best_index = candidates[0].index;
        candidates.sort_by_key(|candidate| candidate.index);
        let place = candidates.iter().position(|one| one.index == best_index)?;
        let (best, larger) = (&candidates[place], &candidates[place + 1..]);
        let confidence = 1.0 - ALPHA / (candidates.len() - 1) as f64;
        let mut evidence = vec![self.value(best)];
        let mut found = best;
        let mut open = Vec::new();
        for candidate in &candidates[..place] {
            let loss = self.times_worse(candidate, best, confidence);
            let worse = loss.map(|loss| self.worse(&loss));
            let worse = worse.unwrap_or_else(|| "too few blocks".into());
            match loss {
                Some(loss) if loss.high < 1.0 + WORTHWHILE => {
                    evidence.push(format!("{} is enough: {worse}", candidate.label));
                    found = candidate;
                    break;
                }
                Some(loss) if loss.low > 1.0 + WORTHWHILE => {}
                _ => {
                    open.push(format!("whether {} is enough", candidate.label));
                    evidence.push(format!("{} may be enough: {worse}", candidate.label));
                }
            }
        }
        let may_gain = |one: &&Candidate| {
            let gain = self.times_worse(best, one, confidence);
            gain.is_none_or(|gain| gain.high >= 1.0 + WORTHWHILE)
        };
        let is_last = larger.is_empty() && found.index == best_index;
        let may_gain = larger.iter().find(may_gain);
        let gained = may_gain.map(|one| format!("whether {} gains 5 %", one.label));
        let mut text = match (is_last, &gained) {
            (true, _) => format!(
                "use {}, the largest tried: the data do not show where the gain ends",
                found.label
            ),
            (false, None) => format!("use {}: a larger one gains less than 5 %", found.label),
            (false, Some(_)) => format!("use {}", found.label),
        };
        let first_open = open.into_iter().next().or(gained);
        if let Some(first) = &first_open {
            text.push_str(&format!("; the data do not decide {first}"));
        }
        let smaller = candidates.iter().filter(|one| one.index < found.index);
        Some(Advice {
            topic: self.topic(),
            text,
            decided: !is_last && first_open.is_none(),
            evidence,
            gain: gain(found.median, smaller.map(|one| one.median)),
        })
    }

    /// Lists what each level costs per call and per byte.
    fn cost(&self, over: &str) -> Option<Advice> {
        let factor = self.context.experiment.factor(&self.spec.factor)?;
        let mut evidence = Vec::new();
        let mut costs: Vec<(String, f64, DerivedValue)> = Vec::new();
        for level in &factor.levels {
            let mut at = self.at.clone();
            at.insert(factor.name.clone(), level.clone());
            let estimate = |kind: DerivedKind| {
                let spec = Derived {
                    id: String::new(),
                    text: String::new(),
                    group: None,
                    kind,
                    factor: over.to_owned(),
                    among: Vec::new(),
                    metric: self.spec.metric.clone(),
                    at: at.clone(),
                };
                derived::estimate(&spec, self.context)
            };
            let call = estimate(DerivedKind::CostPerCall {});
            let Some(per_call) = call.estimate else {
                continue;
            };
            let per_byte = estimate(DerivedKind::CostPerByte {}).estimate?;
            let residual = call
                .details
                .get("relative_residual_rms")
                .copied()
                .unwrap_or_default();
            evidence.push(format!(
                "{}: {} per call and {} per byte (fit off by {:.0} % on average)",
                self.label(level),
                format::derived(&per_call, "ns"),
                format::derived(&per_byte, "ns/byte"),
                residual * 100.0
            ));
            if let Some(value) = per_call.value {
                costs.push((self.label(level), value, per_call));
            }
        }
        costs.sort_by(|(_, a, _), (_, b, _)| a.total_cmp(b));
        let ((name, _, cheapest), others) = costs.split_first()?;
        // An interval from too few blocks has a lower confidence, so its ends are no bounds.
        let reaches = |one: &DerivedValue| one.confidence >= CONFIDENCE;
        let costs_more = |one: &DerivedValue| {
            let ends = cheapest.high.zip(one.low);
            reaches(one) && ends.is_some_and(|(high, low)| low > high)
        };
        let decided = reaches(cheapest) && others.iter().all(|(.., one)| costs_more(one));
        if evidence.len() < 2 {
            return None;
        }
        let text = if decided {
            format!("{name} costs least per call; costs of each kind:")
        } else {
            "costs of each kind; the data do not show which kind costs least per call:".into()
        };
        Some(Advice {
            topic: self.topic(),
            text,
            decided,
            evidence,
            // No gain is given, since a cheaper kind of call may also promise less.
            gain: None,
        })
    }
}

/// Returns by what factor the median of the other choices is worse than the advised one; `None`
/// without other choices.
fn gain(advised: f64, others: impl Iterator<Item = f64>) -> Option<f64> {
    let others: Vec<f64> = others.collect();
    let ratio = (!others.is_empty()).then(|| median(&others) / advised)?;
    // For metrics where more is better, the ratio is inverted.
    let gain = ratio.max(1.0 / ratio);
    gain.is_finite().then_some(gain)
}

/// Maximum number of figures shown as evidence for decided advice.
const EVIDENCE_MAX: usize = 4;
