//! The result of grading submitted runs, in the form in which it is shown and exported.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toll_core::claim::model::Verdict;
use toll_core::claim::work::Difference;
use toll_core::run::RunRecord;

/// The grades of some files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GradeReport {
    /// The graded files, in the order in which they were named.
    pub files: Vec<GradedFile>,
}

/// One file that was submitted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GradedFile {
    /// Name of the file.
    pub file: String,
    /// Result of grading the file.
    pub result: GradeResult,
    /// Reason of the result, in a sentence.
    pub reason: String,
    /// The grade of the file's run; absent if the file cannot be graded.
    pub grade: Option<Grade>,
}

/// Result of grading a submission.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum GradeResult {
    /// Every claim holds in the submitted data, and none is refuted here.
    Holds,
    /// No claim is refuted, and at least one is undecided or not testable.
    Undecided,
    /// A claim is refuted, by the submitted data or here.
    Refuted,
    /// The submitted experiment is not the grader's own.
    Changed,
    /// The submitted data were not measured as the file says.
    Contradicted,
    /// The file cannot be graded.
    Ungraded,
}

/// A submission, checked and judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Grade {
    /// The submitted run, as the file describes it.
    pub run: RunRecord,
    /// Number of blocks in the run.
    pub blocks: usize,
    /// Checks of the submitted data.
    pub checks: Vec<DataCheck>,
    /// How the submitted experiment differs from the grader's own copy, whose value comes
    /// first. Also empty if no copy was given.
    pub experiment_differences: Vec<Difference>,
    /// The run on this machine; absent if there is none.
    pub here: Option<RunHere>,
    /// Why there is no run on this machine.
    pub why_not_here: Option<String>,
    /// The graded claims, in the order of the experiment; empty if the submission varied something
    /// else.
    pub claims: Vec<GradedClaim>,
}

/// A check that every honest run passes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DataCheck {
    /// Name of the check.
    pub id: String,
    /// What is true of every honest run.
    pub reason: String,
    /// How the data contradict the reason, each in a sentence; empty if the data pass the check.
    pub contradictions: Vec<String>,
    /// Why the check was not made, or not for all trials.
    pub not_made: Option<String>,
}

/// The run on this machine that a submission is compared with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunHere {
    /// The record of the run.
    pub run: RunRecord,
    /// Number of blocks in the run.
    pub blocks: usize,
    /// What the two runs did differently; the value here comes first.
    pub work_differences: Vec<Difference>,
    /// How the two machines differ, likely causes first; the value here comes first.
    pub machine_differences: Vec<Difference>,
}

/// A claim, judged by the submitted data and here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GradedClaim {
    /// Result of the claim.
    pub result: ClaimResult,
    /// Reason of the result, in a sentence or two.
    pub explanation: String,
    /// The verdict by the submitted data.
    pub submitted: Verdict,
    /// The verdict by the run on this machine, if there is one.
    pub here: Option<Verdict>,
}

/// Result of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimResult {
    /// The submitted data support the claim, the run is complete, and no run here refutes the
    /// claim.
    Holds,
    /// The submitted data refute the claim.
    RefutedBySubmission,
    /// A run here refutes the claim, and the submitted data do not.
    RefutedHere,
    /// The submitted data decide nothing, or are from an unfinished run.
    Undecided,
}
