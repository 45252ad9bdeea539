//! Claims and derived quantities.

use super::{joined, number, selector};
use crate::spec::level::Scalar;
use crate::spec::quantity::parse_share;
use crate::spec::raw::{RawClaim, RawDerived, RawDerivedKind};
use crate::spec::{Claim, ClaimDirection, Contrast, Derived, DerivedKind, Test};

/// Relative tolerance of a knee where none is given: 10 %.
const KNEE_TOLERANCE: f64 = 0.10;

/// Relative rise of a step where none is given: 100 %. Levels of a cache differ
/// about threefold; the rounding of a step may look like one of half its height.
const STEP_RISE: f64 = 1.0;

pub(super) fn claim_of(
    raw: &RawClaim,
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
        margin: raw.margin.as_deref().map(parse_share).transpose()?,
    })
}

fn direction_of(raw: &RawClaim, test: &Test) -> Result<(ClaimDirection, f64, Option<f64>), String> {
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

pub(super) fn derived_of(raw: &RawDerived, metric: &str) -> Result<Derived, String> {
    let wrong = |why: &str| format!("cannot use derived quantity {}: {why}", raw.id);
    let kind = match raw.kind {
        RawDerivedKind::Knee => DerivedKind::Knee {
            tolerance: match &raw.tolerance {
                Some(text) => parse_share(text)?,
                None => KNEE_TOLERANCE,
            },
        },
        RawDerivedKind::Acceleration => match (&raw.of, &raw.to, &raw.level) {
            (Some(of), Some(to), Some(level)) => DerivedKind::Acceleration {
                of: joined(of, &raw.at),
                to: joined(to, &raw.at),
                level: level.level(),
            },
            _ => return Err(wrong("an acceleration needs of, to and a level")),
        },
        RawDerivedKind::Crossing => match (&raw.of, &raw.to) {
            (Some(of), Some(to)) => DerivedKind::Crossing {
                of: joined(of, &raw.at),
                to: joined(to, &raw.at),
                value: raw.value,
            },
            _ => return Err(wrong("a crossing needs of and to")),
        },
        RawDerivedKind::CostPerCall => DerivedKind::CostPerCall,
        RawDerivedKind::CostPerByte => DerivedKind::CostPerByte,
        RawDerivedKind::CallShare => DerivedKind::CallShare {
            level: raw
                .level
                .as_ref()
                .map(Scalar::level)
                .ok_or_else(|| wrong("a call share needs a level"))?,
        },
        RawDerivedKind::Spread => DerivedKind::Spread,
        RawDerivedKind::Quotient => match (&raw.per, &raw.level) {
            (Some(per), Some(level)) => DerivedKind::Quotient {
                per: per.clone(),
                level: level.level(),
            },
            _ => return Err(wrong("a quotient needs per, a metric, and a level")),
        },
        RawDerivedKind::Step => DerivedKind::Step {
            number: raw
                .step
                .filter(|number| *number > 0)
                .ok_or_else(|| wrong("a step needs step, a number from 1"))?,
            rise: match &raw.rise {
                Some(text) => parse_share(text)?,
                None => STEP_RISE,
            },
        },
    };
    Ok(Derived {
        id: raw.id.clone(),
        text: raw.text.clone(),
        kind,
        factor: raw.factor.clone(),
        among: raw.among.iter().map(Scalar::level).collect(),
        metric: raw.metric.clone().unwrap_or_else(|| metric.to_owned()),
        at: selector(&raw.at),
    })
}
