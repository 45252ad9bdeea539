//! Claims and derived quantities.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::file::share;
use super::level::number;
use super::{Level, Selector};

/// Relative tolerance of a knee where none is given: 10 %.
const KNEE_TOLERANCE: f64 = 0.10;

/// Relative rise of a step where none is given: 100 %. Levels of a cache differ
/// about threefold; the rounding of a step may look like one of half its height.
const STEP_RISE: f64 = 1.0;

/// Something to be judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// Identifier such as `cat.align`.
    pub id: String,
    /// The claim in words.
    pub text: String,
    /// Short name of the publication, if it was published.
    pub report: Option<String>,
    /// The claim of which this is the corrected form.
    pub corrects: Option<String>,
    /// How to test it.
    pub test: Test,
    /// What it says.
    pub direction: ClaimDirection,
    /// The value it is about; lower bound for `within`.
    pub threshold: f64,
    /// Upper bound for `within`.
    pub threshold_high: Option<f64>,
    /// Published value.
    pub published: Option<f64>,
    /// Least relative margin.
    pub margin: Option<f64>,
}

/// How a claim is tested.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Test {
    /// By the ratio of a metric between two treatments of each block.
    Ratio(Contrast),
    /// By a derived quantity.
    Derived(String),
    /// Not by any run on one machine, for this reason.
    Never(String),
}

/// Two treatments, or two pairs, to be compared in each block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Contrast {
    /// Metric.
    pub metric: String,
    /// Numerator.
    pub of: Selector,
    /// Denominator.
    pub to: Selector,
    /// A second numerator and denominator by whose ratio the first is divided.
    pub per: Option<(Selector, Selector)>,
}

/// A quantity computed from several treatments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Derived {
    /// Identifier.
    pub id: String,
    /// What it is, in words.
    pub text: String,
    /// How it is computed.
    pub kind: DerivedKind,
    /// Factor over whose levels it is computed.
    pub factor: String,
    /// The levels that count; all if empty.
    pub among: Vec<Level>,
    /// Metric.
    pub metric: String,
    /// Levels of the other factors.
    pub at: Selector,
}

/// Ways to compute a derived quantity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DerivedKind {
    /// Smallest level whose metric is within `tolerance` of the best.
    Knee {
        /// Relative tolerance.
        tolerance: f64,
    },
    /// `1 - of/to`, the acceleration ratio, at one level: the share of the time
    /// that the faster side saves.
    Acceleration {
        /// The faster side.
        of: Selector,
        /// The slower side.
        to: Selector,
        /// The level.
        level: Level,
    },
    /// Level at which `1 - of/to` (the acceleration ratio) falls to `value`.
    Crossing {
        /// The faster side.
        of: Selector,
        /// The slower side.
        to: Selector,
        /// The acceleration looked for; 0 is where the gain ends.
        value: f64,
    },
    /// Cost of one call in t = calls·a + bytes·b.
    CostPerCall,
    /// Cost of one byte in t = calls·a + bytes·b.
    CostPerByte,
    /// Share of the per-call part at one level.
    CallShare {
        /// The level.
        level: Level,
    },
    /// Largest over smallest median among the factor's levels.
    Spread,
    /// One metric over another of the same trials, at one level.
    Quotient {
        /// The metric that it is divided by.
        per: String,
        /// The level.
        level: Level,
    },
    /// The level at which the metric goes up for the `number`th time.
    Step {
        /// Which of the steps, from 1.
        number: usize,
        /// Least relative rise of a step.
        rise: f64,
    },
}

/// What a claim says about its quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimDirection {
    /// Below the threshold.
    Less,
    /// Above the threshold.
    Greater,
    /// At the threshold, within the margin.
    Equal,
    /// Between two bounds.
    Within,
}

/// A claim as an experiment file has it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ClaimTable {
    id: String,
    text: String,
    /// Factors for each of whose combinations the claim is made.
    #[serde(default)]
    pub each: Vec<String>,
    report: Option<String>,
    corrects: Option<String>,
    not_testable: Option<String>,
    metric: Option<String>,
    of: Option<Selector>,
    to: Option<Selector>,
    per_of: Option<Selector>,
    per_to: Option<Selector>,
    #[serde(default)]
    at: Selector,
    derived: Option<String>,
    direction: Option<ClaimDirection>,
    threshold: Option<Level>,
    between: Option<(Level, Level)>,
    published: Option<Level>,
    #[serde(default, deserialize_with = "share")]
    margin: Option<f64>,
}

/// A derived quantity as an experiment file has it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DerivedTable {
    id: String,
    text: String,
    kind: KindName,
    factor: String,
    metric: Option<String>,
    #[serde(default)]
    at: Selector,
    #[serde(default, deserialize_with = "share")]
    tolerance: Option<f64>,
    of: Option<Selector>,
    to: Option<Selector>,
    #[serde(default)]
    value: f64,
    level: Option<Level>,
    per: Option<String>,
    step: Option<usize>,
    #[serde(default, deserialize_with = "share")]
    rise: Option<f64>,
    #[serde(default)]
    among: Vec<Level>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum KindName {
    Knee,
    Acceleration,
    Crossing,
    CostPerCall,
    CostPerByte,
    CallShare,
    Spread,
    Quotient,
    Step,
}

/// A selector with the levels that all parts of a statement share.
pub(super) fn joined(selector: &Selector, at: &Selector) -> Selector {
    let mut joined = at.clone();
    joined.extend(selector.clone());
    joined
}

pub(super) fn claim_of(
    raw: &ClaimTable,
    metric: &str,
    report: Option<&str>,
) -> Result<Claim, String> {
    let wrong = |why: &str| format!("cannot use claim {}: {why}", raw.id);
    let metric = raw.metric.clone().unwrap_or_else(|| metric.to_owned());
    let test = match (&raw.not_testable, &raw.derived, &raw.of, &raw.to) {
        (Some(reason), None, None, None) => Test::Never(reason.clone()),
        (None, Some(id), None, None) => Test::Derived(id.clone()),
        (None, None, Some(of), Some(to)) => Test::Ratio(Contrast {
            metric,
            of: joined(of, &raw.at),
            to: joined(to, &raw.at),
            per: match (&raw.per_of, &raw.per_to) {
                (None, None) => None,
                (Some(of), Some(to)) => Some((joined(of, &raw.at), joined(to, &raw.at))),
                _ => return Err(wrong("per_of and per_to come together")),
            },
        }),
        _ => {
            return Err(wrong(
                "it needs either of and to, or derived, or not_testable",
            ));
        }
    };
    let (direction, threshold, threshold_high) = direction_of(raw, &test)?;
    let published = raw.published.as_ref().map(number).transpose()?;
    Ok(Claim {
        id: raw.id.clone(),
        text: raw.text.clone(),
        report: raw
            .report
            .clone()
            .or_else(|| match raw.corrects {
                None => report.map(str::to_owned),
                Some(_) => None,
            })
            .filter(|report| !report.is_empty()),
        corrects: raw.corrects.clone(),
        test,
        direction,
        threshold,
        threshold_high,
        published,
        margin: raw.margin,
    })
}

fn direction_of(
    raw: &ClaimTable,
    test: &Test,
) -> Result<(ClaimDirection, f64, Option<f64>), String> {
    let wrong = |why: &str| format!("cannot use claim {}: {why}", raw.id);
    if let Some((low, high)) = &raw.between {
        let (low, high) = (number(low)?, number(high)?);
        return match raw.direction {
            None | Some(ClaimDirection::Within) if low < high => {
                Ok((ClaimDirection::Within, low, Some(high)))
            }
            _ => Err(wrong(
                "between needs a lower and an upper bound, and no other direction",
            )),
        };
    }
    let threshold = raw.threshold.as_ref().map(number).transpose()?;
    match (test, raw.direction) {
        (Test::Never(_), direction) => Ok((
            direction.unwrap_or(ClaimDirection::Equal),
            threshold.unwrap_or(1.0),
            None,
        )),
        (_, None) => Err(wrong("direction is missing: less, greater or equal")),
        (_, Some(ClaimDirection::Within)) => Err(wrong("direction within needs between")),
        (Test::Derived(_), Some(_)) if threshold.is_none() => {
            Err(wrong("a derived quantity needs a threshold"))
        }
        (Test::Ratio(_), Some(_)) if threshold.is_some_and(|value| value <= 0.0) => {
            Err(wrong("the threshold of a ratio is above 0"))
        }
        (_, Some(direction)) => Ok((direction, threshold.unwrap_or(1.0), None)),
    }
}

pub(super) fn derived_of(raw: &DerivedTable, metric: &str) -> Result<Derived, String> {
    let wrong = |why: &str| format!("cannot use derived quantity {}: {why}", raw.id);
    let kind = match raw.kind {
        KindName::Knee => DerivedKind::Knee {
            tolerance: raw.tolerance.unwrap_or(KNEE_TOLERANCE),
        },
        KindName::Acceleration => match (&raw.of, &raw.to, &raw.level) {
            (Some(of), Some(to), Some(level)) => DerivedKind::Acceleration {
                of: joined(of, &raw.at),
                to: joined(to, &raw.at),
                level: level.clone(),
            },
            _ => return Err(wrong("an acceleration needs of, to and a level")),
        },
        KindName::Crossing => match (&raw.of, &raw.to) {
            (Some(of), Some(to)) => DerivedKind::Crossing {
                of: joined(of, &raw.at),
                to: joined(to, &raw.at),
                value: raw.value,
            },
            _ => return Err(wrong("a crossing needs of and to")),
        },
        KindName::CostPerCall => DerivedKind::CostPerCall,
        KindName::CostPerByte => DerivedKind::CostPerByte,
        KindName::CallShare => DerivedKind::CallShare {
            level: raw
                .level
                .clone()
                .ok_or_else(|| wrong("a call share needs a level"))?,
        },
        KindName::Spread => DerivedKind::Spread,
        KindName::Quotient => match (&raw.per, &raw.level) {
            (Some(per), Some(level)) => DerivedKind::Quotient {
                per: per.clone(),
                level: level.clone(),
            },
            _ => return Err(wrong("a quotient needs per, a metric, and a level")),
        },
        KindName::Step => DerivedKind::Step {
            number: raw
                .step
                .filter(|number| *number > 0)
                .ok_or_else(|| wrong("a step needs step, a number from 1"))?,
            rise: raw.rise.unwrap_or(STEP_RISE),
        },
    };
    Ok(Derived {
        id: raw.id.clone(),
        text: raw.text.clone(),
        kind,
        factor: raw.factor.clone(),
        among: raw.among.clone(),
        metric: raw.metric.clone().unwrap_or_else(|| metric.to_owned()),
        at: raw.at.clone(),
    })
}
