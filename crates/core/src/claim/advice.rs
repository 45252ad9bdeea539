//! What to do on this machine.

use toll_stats::{Interval, hodges_lehmann, median, median_interval};

use super::context::AnalysisContext;
use super::model::{Advice, Better};
use super::{ALPHA, CONFIDENCE, MARGIN_MIN, derived};
use crate::format;
use crate::spec::{AdviceKind, AdviceSpec, Derived, DerivedKind, Level, Selector};

/// What a larger buffer must gain, relative, to be worth its memory.
const WORTHWHILE: f64 = 0.05;

/// Draws all advice that an experiment asks for and its data allow.
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

    /// Treatments along the factor that have data, best first.
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

    /// How many times worse a candidate is than another: above 1 is worse,
    /// whichever side of the metric is better.
    fn times_worse(&self, of: &Candidate, than: &Candidate, confidence: f64) -> Option<Interval> {
        let higher = self.context.metric(&self.spec.metric).better == Better::Higher;
        let (of, than) = if higher { (than, of) } else { (of, than) };
        let logs = self
            .context
            .log_ratios(&self.spec.metric, of.index, than.index)
            .ok()?;
        let interval = hodges_lehmann(&logs, confidence);
        interval.reaches(confidence).then(|| interval.map(f64::exp))
    }

    /// How many times worse, in words.
    fn worse(&self, interval: &Interval) -> String {
        let metric = self.context.metric(&self.spec.metric);
        let ratio = super::summary::estimate(interval);
        match metric.better {
            Better::Higher => format::change(&format::inverse(&ratio), &metric),
            _ => format::change(&ratio, &metric),
        }
    }

    fn value(&self, candidate: &Candidate) -> String {
        let unit = self.context.metric(&self.spec.metric).unit;
        let values = self.context.values(&self.spec.metric, candidate.index);
        let interval = super::summary::estimate(&median_interval(&values, CONFIDENCE));
        format!(
            "{}: {}",
            candidate.label,
            format::interval(&interval, &unit)
        )
    }

    /// Comparisons with the best, which all hold together at 95 %.
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

    fn saturation(&self) -> Option<Advice> {
        let mut candidates = self.candidates();
        if candidates.len() < 2 {
            return None;
        }
        let best_index = candidates[0].index;
        candidates.sort_by_key(|candidate| candidate.index);
        let best = candidates
            .iter()
            .find(|candidate| candidate.index == best_index)?;
        let confidence = 1.0 - ALPHA / (candidates.len() - 1) as f64;
        let mut evidence = vec![self.value(best)];
        let mut found = best;
        let mut undecided = Vec::new();
        for candidate in candidates
            .iter()
            .filter(|candidate| candidate.index < best_index)
        {
            let Some(interval) = self.times_worse(candidate, best, confidence) else {
                continue;
            };
            let worse = self.worse(&interval);
            if interval.high < 1.0 + WORTHWHILE {
                evidence.push(format!("{} will do: {worse}", candidate.label));
                found = candidate;
                break;
            }
            if interval.low <= 1.0 + WORTHWHILE {
                undecided.push(candidate.label.as_str());
                evidence.push(format!("{} may do: {worse}", candidate.label));
            }
        }
        let is_last = candidates
            .last()
            .is_some_and(|last| last.index == found.index);
        let mut text = match is_last {
            true => format!(
                "use {}, the largest tried: the data do not show where more stops gaining",
                found.label
            ),
            false => format!("use {}: more gains less than 5 %", found.label),
        };
        if let [first, ..] = undecided.as_slice() {
            text.push_str(&format!(
                "; whether {first} would do, the data do not decide"
            ));
        }
        let smaller = candidates.iter().filter(|one| one.index < found.index);
        Some(Advice {
            topic: self.topic(),
            text,
            decided: !is_last && undecided.is_empty(),
            evidence,
            gain: gain(found.median, smaller.map(|one| one.median)),
        })
    }

    /// What each level costs per call and per byte.
    fn cost(&self, over: &str) -> Option<Advice> {
        let factor = self.context.experiment.factor(&self.spec.factor)?;
        let mut evidence = Vec::new();
        let mut cheapest: Option<(String, f64, f64)> = None;
        let mut decided = true;
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
            if let (Some(value), Some(low), Some(high)) =
                (per_call.value, per_call.low, per_call.high)
            {
                match &mut cheapest {
                    Some((name, best, best_high)) if value < *best => {
                        decided = high < *best;
                        (*name, *best, *best_high) = (self.label(level), value, high);
                    }
                    Some((_, _, best_high)) => decided &= low > *best_high,
                    None => cheapest = Some((self.label(level), value, high)),
                }
            }
        }
        let (name, ..) = cheapest?;
        if evidence.len() < 2 {
            return None;
        }
        let text = match decided {
            true => format!("{name} costs least per call; what each kind costs:"),
            false => {
                "what each kind costs; the data do not tell which costs least per call:".into()
            }
        };
        Some(Advice {
            topic: self.topic(),
            text,
            decided,
            evidence,
            // Kinds that promise less cost less.
            gain: None,
        })
    }
}

/// How many times worse the median of the others is; absent without another.
fn gain(advised: f64, others: impl Iterator<Item = f64>) -> Option<f64> {
    let others: Vec<f64> = others.collect();
    let ratio = (!others.is_empty()).then(|| median(&others) / advised)?;
    // Less of what is better when more of it is there.
    let gain = ratio.max(1.0 / ratio);
    gain.is_finite().then_some(gain)
}

/// Most figures shown behind a piece of advice that they decide.
const EVIDENCE_MAX: usize = 4;
