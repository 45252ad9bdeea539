//! Results of claims.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::estimate::Estimate;
use super::{
    ClaimDirection, DerivedValue, EValues, ErrorRate, ExplanatoryMetrics, NoVerdict, Outcome,
};
use crate::reason::Reason;
use crate::spec::BLOCKS_MAX;

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
    /// The value that the direction refers to (1 for ratios); for [`ClaimDirection::Within`]
    /// the lower bound.
    pub threshold: f64,
    /// Upper bound of [`ClaimDirection::Within`].
    pub threshold_high: Option<f64>,
    /// The published value on the scale of `measured`, if one was given.
    pub published: Option<f64>,
    /// How the publication's own numbers contradict its conclusion.
    #[serde(default)]
    pub contradicted: Option<String>,
    /// The measured value. Its interval has the confidence at which this claim was tested together
    /// with the other claims of the run, so it always agrees with the outcome. A claim over
    /// machines is not judged by one run; its interval has 95 %.
    pub measured: Option<Estimate>,
    /// The measured value if it, or an end of its interval, lies beyond the factor's levels
    /// (for instance a crossing that is never reached); `measured` is absent then.
    pub beyond: Option<DerivedValue>,
    /// Relative difference up to which values count as the same: 0.01 for 1 %. It is 0 if
    /// the claim's border is the threshold itself.
    pub margin: f64,
    /// Blocks that were used.
    pub blocks: usize,
    /// p-value of the decision, adjusted for the family-wise error rate of the run.
    pub p_adjusted: Option<f64>,
    /// p-value of the decision, adjusted for the false-discovery rate of the run.
    #[serde(default)]
    pub p_adjusted_fdr: Option<f64>,
    /// Evidence to multiply with that of comparable runs; absent for a check, and for a
    /// claim on a quantity without a value in each block.
    #[serde(default)]
    pub e_values: Option<EValues>,
    /// Why there is no verdict, unless this machine is the cause of
    /// [`Outcome::NotTestable`].
    #[serde(default)]
    pub no_verdict: Option<NoVerdict>,
    /// Error rate that is guaranteed for a supported or refuted claim.
    #[serde(default)]
    pub error_rate: Option<ErrorRate>,
    /// Judgement of the claim.
    pub outcome: Outcome,
    /// Reason for the outcome, in a sentence.
    pub reason: String,
    /// Why this machine or this run cannot test the claim.
    #[serde(default)]
    pub cause: Option<Reason>,
    /// The ratio of emulated times, which is not judged.
    #[serde(default)]
    pub unjudged_ratio: Option<Estimate>,
    /// Other metrics in which the two sides differ, if the claim is about a ratio of times.
    #[serde(default)]
    pub explanatory_metrics: Option<ExplanatoryMetrics>,
}

impl Verdict {
    /// Returns whether the claim is supported or refuted at the family-wise error rate of the run.
    pub fn is_family_wise(&self) -> bool {
        self.error_rate == Some(ErrorRate::FamilyWise)
    }

    /// Returns how far the interval lies past the claim's bound, as a factor: 3 if it begins at
    /// three times an upper bound. `None` if the interval lies beyond every level tried, or nothing
    /// was measured.
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

    /// Returns the blocks after which the interval would no longer reach the claim's bound
    /// if the estimate stayed the same: an interval narrows with the square root of their
    /// number. `None` if the estimate is missing or on the bound, or if the number exceeds
    /// `BLOCKS_MAX`.
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
