//! Pure statistics for experiments in randomised complete blocks.
//!
//! The unit is one value per block, usually a log-ratio of two treatments in that block.
//! [`hodges_lehmann`] estimates the centre with an exact interval. [`decide`] turns the interval
//! into a [`Decision`] on a claim. [`decision_p`] gives the same decision as a p-value, so that
//! [`holm()`] can guard a family of claims. [`Looks`] determines when a run may end;
//! [`stopped_interval`] and [`stopped_decision_p`] are for a run that ended at a look.
//! [`ln_e_value`] is evidence that is valid at any stopping time and multiplies across runs.
//! [`shift`] compares two samples that were not drawn together, [`Welch`] two samples of few
//! values. [`RandomEffects`] pools the values of many machines, and [`Moderator`] tests whether a
//! fact explains how they differ.
//!
//! Architecture invariant: every function here depends on its arguments alone.
//! The crate reads no file, no clock and no environment, and has no
//! dependency; randomness comes from an explicit seed ([`Rng`]).
//!
//! An argument that no measurement can produce (no values, mismatched lengths, a confidence that
//! is not strictly between 0 and 1, NaN) is a programming error, and every function panics on it.
//! What a measurement can produce (too few values, a singular fit, an undefined statistic) is part
//! of the return type.

mod biweight;
mod change_points;
mod chi_squared;
mod cost_model;
mod crossing;
mod decision;
mod e_value;
mod false_discovery;
mod fixed_sequence;
mod holm;
mod interval;
mod knee;
mod looks;
mod moderator;
mod normal;
mod null;
mod order;
mod pool;
mod proportion;
mod quantile;
mod random_effects;
mod rng;
mod session_shift;
mod signed_rank;
mod spread;
mod staircase;
mod step;
mod stopped;
mod student;
mod tarone;
mod test_step;
mod two_sample;
mod walsh;
mod welch;

pub use change_points::change_points;
pub use cost_model::{CostModel, fit_cost_model};
pub use crossing::zero_crossing;
pub use decision::{Decision, Region, decide, decision_p};
pub use e_value::{ln_e_value, ln_sum};
pub use false_discovery::benjamini_hochberg;
pub use fixed_sequence::fixed_sequence;
pub use holm::holm;
pub use interval::Interval;
pub use knee::Knee;
pub use looks::{Look, Looks};
pub use moderator::Moderator;
pub use normal::{normal_cdf, normal_quantile};
pub use order::median_interval;
pub use proportion::clopper_pearson;
pub use quantile::{mean, median, outliers, quantile, standard_deviation};
pub use random_effects::RandomEffects;
pub use rng::Rng;
pub use session_shift::session_shift;
pub use signed_rank::{hodges_lehmann, signed_rank_p};
pub use spread::Spread;
pub use staircase::{Staircase, step};
pub use step::StepModel;
pub use stopped::{stopped_decision_p, stopped_interval, values_needed};
pub use tarone::{can_reject, tarone_holm};
pub use test_step::TestStep;
pub use two_sample::shift;
pub use welch::Welch;
