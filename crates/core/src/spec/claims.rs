//! Claims: statements to judge.

mod finished;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::facts::{KERNEL, is_fact, no_fact};
use super::level::share;
use super::{Selector, published};

/// A statement to judge.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Identifier such as `cat.align`.
    pub id: String,
    /// The claim in words.
    pub text: String,
    /// Short name of the publication, if the claim was published.
    pub report: Option<String>,
    /// The claim that this one corrects.
    pub corrects: Option<String>,
    /// Whether the claim is a check of the machine and the instrument, judged on its own, outside
    /// the family of claims.
    #[serde(default, rename = "check", skip_serializing_if = "std::ops::Not::not")]
    pub is_check: bool,
    /// Factors; the file makes the claim for each combination of their levels.
    #[serde(default, skip_serializing)]
    each: Vec<String>,
    /// Levels that a file gives for all of the claim's selectors.
    #[serde(default, skip_serializing)]
    at: Selector,
    #[serde(default)]
    pub(crate) metric: String,
    of: Option<Selector>,
    to: Option<Selector>,
    per_of: Option<Selector>,
    per_to: Option<Selector>,
    derived: Option<String>,
    not_testable: Option<String>,
    /// Fact by which machines are said to differ in the measured quantity. One run has no other
    /// machine to compare with, so it measures the quantity without a judgement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub differ_by: Option<String>,
    direction: Option<ClaimDirection>,
    #[serde(default, deserialize_with = "published::value")]
    threshold: Option<f64>,
    #[serde(default, deserialize_with = "published::pair")]
    between: Option<(f64, f64)>,
    /// Published value.
    #[serde(default, deserialize_with = "published::value")]
    pub published: Option<f64>,
    /// How the report's own numbers contradict the report's conclusion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contradicted: Option<String>,
    /// Smallest relative margin.
    #[serde(default, deserialize_with = "share")]
    pub margin: Option<f64>,
    /// Why the experiment's plan is not expected to decide the claim even if the published value is
    /// true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub underpowered: Option<String>,
}

/// How a claim is tested.
#[derive(Debug, Clone, Copy)]
pub enum Test<'a> {
    /// Tested by the ratio of a metric between two treatments in each block.
    Ratio(Contrast<'a>),
    /// Tested by a derived quantity.
    Derived(&'a str),
    /// Not tested by any run on one machine, for this reason.
    Never(&'a str),
}

/// Two treatments, or two pairs, to be compared in each block.
#[derive(Debug, Clone, Copy)]
pub struct Contrast<'a> {
    pub metric: &'a str,
    /// Numerator of the ratio.
    pub of: &'a Selector,
    /// Denominator of the ratio.
    pub to: &'a Selector,
    /// A second numerator and denominator, whose ratio divides the first ratio.
    pub per: Option<(&'a Selector, &'a Selector)>,
}

impl<'a> Contrast<'a> {
    pub fn sides(self) -> impl Iterator<Item = &'a Selector> {
        let per = self.per.into_iter().flat_map(|(of, to)| [of, to]);
        [self.of, self.to].into_iter().chain(per)
    }
}

/// What a claim says about its quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimDirection {
    /// The quantity is below the threshold.
    Less,
    /// The quantity is above the threshold.
    Greater,
    /// The quantity is at the threshold, within the margin.
    Equal,
    /// The quantity is between two bounds.
    Within,
}

impl Claim {
    pub fn test(&self) -> Test<'_> {
        match (&self.of, &self.to, &self.derived) {
            (Some(of), Some(to), _) => Test::Ratio(Contrast {
                metric: &self.metric,
                of,
                to,
                per: self.per_of.as_ref().zip(self.per_to.as_ref()),
            }),
            (.., Some(id)) => Test::Derived(id),
            _ => Test::Never(self.not_testable.as_deref().unwrap_or_default()),
        }
    }

    pub fn direction(&self) -> ClaimDirection {
        match (self.between, self.direction) {
            (Some(_), _) => ClaimDirection::Within,
            (None, Some(direction)) => direction,
            // The claim says that machines of one level have greater values than those of another.
            (None, None) if self.differ_by.is_some() => ClaimDirection::Greater,
            (None, None) => ClaimDirection::Equal,
        }
    }

    /// Returns the value that the claim is about; the lower bound of [`ClaimDirection::Within`].
    pub fn threshold(&self) -> f64 {
        let lower = self.between.map(|(low, _)| low);
        lower.or(self.threshold).unwrap_or(1.0)
    }

    /// Returns the upper bound of [`ClaimDirection::Within`].
    pub fn threshold_high(&self) -> Option<f64> {
        self.between.map(|(_, high)| high)
    }

    /// Checks what does not depend on other parts of the experiment.
    pub(super) fn check(&self) -> Result<(), String> {
        let is_ratio = self.of.is_some();
        let is_testable = self.not_testable.is_none();
        let tests = [is_ratio, self.derived.is_some(), !is_testable];
        let has_range = self.between.is_some();
        let is_range = self.between.is_some_and(|(low, high)| low < high);
        let is_within = self.direction == Some(ClaimDirection::Within);
        let bounds = [
            Some(self.threshold()),
            self.threshold_high(),
            self.published,
        ];
        let problems = [
            (
                is_ratio != self.to.is_some() || tests.iter().filter(|one| **one).count() != 1,
                "it needs either `of` and `to`, or `derived`, or `not_testable`",
            ),
            (
                self.is_check && !is_testable,
                "a check is always measured; remove not_testable",
            ),
            (
                self.per_of.is_some() != self.per_to.is_some(),
                "give both per_of and per_to, or neither",
            ),
            (
                has_range && !(is_range && (is_within || self.direction.is_none())),
                "`between` needs a lower and an upper bound; remove any other direction",
            ),
            (
                is_within && !has_range,
                "the direction `within` needs `between`, which gives its bounds",
            ),
            (
                is_testable && !has_range && self.direction.is_none() && self.differ_by.is_none(),
                "direction is missing: less, greater or equal",
            ),
            (
                self.derived.is_some() && !has_range && self.threshold.is_none(),
                "a derived quantity needs a threshold",
            ),
            (
                // Claims are judged on a logarithmic scale, which does not contain 0.
                is_testable && !bounds.into_iter().flatten().all(|bound| bound > 0.0),
                "its bounds and its published value must be above 0; instead of `between` with a \
                 lower bound of 0, use direction = \"less\" and a threshold",
            ),
        ];
        match problems.iter().find(|(is_wrong, _)| *is_wrong) {
            Some((_, why)) => Err(self.wrong(why)),
            None => self.check_differ_by(),
        }
    }

    fn check_differ_by(&self) -> Result<(), String> {
        let Some(fact) = &self.differ_by else {
            return Ok(());
        };
        if !is_fact(fact) {
            return Err(self.wrong(&no_fact(fact)));
        }
        let is_one_sided = matches!(
            self.direction,
            Some(ClaimDirection::Less | ClaimDirection::Greater)
        );
        let problems = [
            (
                self.is_check || self.not_testable.is_some() || self.between.is_some(),
                "differ_by cannot be combined with check, not_testable or between",
            ),
            (
                self.threshold() <= 1.0,
                "differ_by needs a threshold above 1: the factor by which machines differ",
            ),
            (
                fact == KERNEL && !is_one_sided,
                "direction is missing: older kernels have `less` or `greater` values",
            ),
            (
                fact != KERNEL && self.direction.is_some(),
                "`direction` needs differ_by = \"kernel\", since other facts have no order; leave it out",
            ),
        ];
        match problems.iter().find(|(is_wrong, _)| *is_wrong) {
            Some((_, why)) => Err(self.wrong(why)),
            None => Ok(()),
        }
    }

    fn wrong(&self, why: &str) -> String {
        format!("cannot use claim {}: {why}", self.id)
    }
}
