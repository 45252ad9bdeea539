//! Confidence, error rates and the smallest margin of all conclusions.

/// Default confidence of an interval. Claims and comparisons are judged at confidences of their
/// own.
pub const CONFIDENCE: f64 = 0.95;
/// Two-sided error rate over all claims of an experiment.
pub const ALPHA: f64 = 0.05;
/// Two-sided error rate of each check.
pub const CHECK_ALPHA: f64 = 0.01;
/// Smallest margin of a verdict, relative. Two builds or layouts of the same program can
/// differ by up to 1 % (Mytkowicz 2009).
pub const MARGIN_MIN: f64 = 0.01;
