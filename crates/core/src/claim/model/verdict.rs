//! What comes of a claim.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ClaimDirection, DerivedValue, EValues, Estimate, ExplanatoryMetrics};
use crate::reason::Reason;
use crate::spec::BLOCKS_MAX;

/// How a claim fares here.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The data show what the claim says.
    Supported,
    /// The data show otherwise.
    Refuted,
    /// No verdict at the error rates of the run; [`NoVerdict`] says how far it is.
    Undecided,
    /// This machine, kernel or run cannot test it.
    NotTestable,
}

/// Why a claim is neither supported nor refuted, where no cause on this machine is in the way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum NoVerdict {
    /// Alone it would be decided at 5 %; beside the other claims it is not.
    Leans {
        /// Supported or refuted.
        to: Outcome,
        /// Blocks on that side of the border; absent of a quantity without a value in each.
        on_side: Option<usize>,
        /// Blocks that entered.
        made: usize,
        /// About how many more decide it.
        blocks_more: usize,
        /// Seconds that these take.
        seconds_more: f64,
    },
    /// More blocks would probably decide it.
    Open {
        /// About how many.
        blocks_more: usize,
        /// Seconds that these take.
        seconds_more: f64,
    },
    /// The value lies so near the border that more blocks hardly decide it.
    AtBorder,
    /// No values of so few blocks can decide it.
    TooFewBlocks {
        /// Fewest that can.
        decide: usize,
        /// Blocks that entered.
        made: usize,
    },
    /// Its levels belong to another profile.
    LeftTo {
        /// The first profile that has them.
        profile: String,
    },
    /// The run was interrupted before its trials.
    NotMeasured,
}

/// What is promised of a verdict.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorRate {
    /// On average at most 5 % of a run's verdicts are wrong.
    FalseDiscovery,
    /// With all but a chance of 5 %, no verdict of this kind is wrong in a run.
    FamilyWise,
}

/// One claim, judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// Identifier such as `cat.align`.
    pub id: String,
    /// The claim in words.
    pub text: String,
    /// Short name of the publication, if the claim was published.
    pub report: Option<String>,
    /// The claim of which this is the corrected form.
    pub corrects: Option<String>,
    /// What was compared, in words: `method=swept / method=page at sink=null`.
    pub contrast: String,
    /// Metric, or name of the derived quantity.
    pub quantity: String,
    /// Unit of `measured` and `published`; empty for a ratio.
    pub unit: String,
    /// What the claim says.
    pub direction: ClaimDirection,
    /// The value that the direction is about (1 for ratios); for
    /// [`ClaimDirection::Within`] the lower bound.
    pub threshold: f64,
    /// Upper bound of [`ClaimDirection::Within`].
    pub threshold_high: Option<f64>,
    /// The published value on the same scale, where one was given.
    pub published: Option<f64>,
    /// How the publication's own numbers contradict what it concludes.
    #[serde(default)]
    pub contradicted: Option<String>,
    /// The measured value; the interval's confidence is the one at which this claim was
    /// tested beside the others of the run, so that it always agrees with the outcome. Of a
    /// claim over machines, which one run does not judge, it is 95 %.
    pub measured: Option<Estimate>,
    /// The measured value where it, or an end of its interval, lies beyond
    /// what the factor's levels span (a crossing that never comes, for
    /// instance); `measured` is absent then.
    pub beyond: Option<DerivedValue>,
    /// Up to here, relative, values count as the same: 0.01 for 1 %. It is 0 where
    /// the claim's border is the threshold itself.
    pub margin: f64,
    /// Blocks that entered.
    pub blocks: usize,
    /// p-value of the decision, adjusted for the family-wise error rate of the run.
    pub p_adjusted: Option<f64>,
    /// The same for the false-discovery rate.
    #[serde(default)]
    pub p_adjusted_fdr: Option<f64>,
    /// Evidence that is multiplied with that of comparable runs; absent of a claim on a quantity
    /// without a value in each block, and of a check.
    #[serde(default)]
    pub e_values: Option<EValues>,
    /// Why there is no verdict, unless [`Outcome::NotTestable`] has a cause of this machine.
    #[serde(default)]
    pub no_verdict: Option<NoVerdict>,
    /// What is promised of a supported or refuted claim.
    #[serde(default)]
    pub error_rate: Option<ErrorRate>,
    /// The judgement.
    pub outcome: Outcome,
    /// Why, in a sentence.
    pub reason: String,
    /// Why this machine or this run cannot test it.
    #[serde(default)]
    pub cause: Option<Reason>,
    /// The ratio of emulated times, which is not judged.
    #[serde(default)]
    pub unjudged_ratio: Option<Estimate>,
    /// What else the two sides differ in, if the claim is about a ratio of
    /// times.
    #[serde(default)]
    pub explanatory_metrics: Option<ExplanatoryMetrics>,
}

impl Verdict {
    /// Whether it is supported or refuted with an error for the whole run.
    pub fn is_family_wise(&self) -> bool {
        self.error_rate == Some(ErrorRate::FamilyWise)
    }

    /// How far the interval lies past the claim's bound, as a factor: 3 if it
    /// begins at three times an upper bound. `None` where it lies beyond every
    /// level tried, or was not measured.
    pub fn factor_past_bound(&self) -> Option<f64> {
        let ends = self.measured.map(|measured| (measured.low, measured.high));
        let (low, high) = ends.or_else(|| {
            let beyond = self.beyond?;
            Some((beyond.low?, beyond.high.unwrap_or(f64::INFINITY)))
        })?;
        let above = low / self.threshold_high.unwrap_or(self.threshold);
        let below = self.threshold / high;
        let factor = match self.direction {
            ClaimDirection::Less => above,
            ClaimDirection::Greater => below,
            ClaimDirection::Equal | ClaimDirection::Within => above.max(below),
        };
        factor.is_finite().then_some(factor)
    }

    /// Blocks after which the interval would no longer reach the claim's bound, if the
    /// estimate stayed what it is: an interval narrows with the square root of their
    /// number. `None` where the estimate lies on the bound, or there is none.
    pub fn blocks_expected(&self) -> Option<usize> {
        let measured = self.measured.as_ref()?;
        let log = |of: f64, to: f64| (of / to).ln().abs();
        let half_width = log(measured.high, measured.value).max(log(measured.value, measured.low));
        let (below, above) = (
            self.threshold / (1.0 + self.margin),
            self.threshold * (1.0 + self.margin),
        );
        let bounds = match self.direction {
            ClaimDirection::Less => [below; 2],
            ClaimDirection::Greater => [above; 2],
            ClaimDirection::Equal => [below, above],
            ClaimDirection::Within => [self.threshold, self.threshold_high?],
        };
        let distance = bounds.map(|bound| log(measured.value, bound));
        let distance = distance.into_iter().fold(f64::INFINITY, f64::min);
        let blocks = (self.blocks as f64 * (half_width / distance).powi(2)).ceil();
        (blocks <= f64::from(BLOCKS_MAX)).then_some(blocks as usize)
    }
}
