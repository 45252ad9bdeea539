//! The result of grading submitted runs, as it is shown and exported.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toll_core::claim::model::Verdict;
use toll_core::claim::work::Difference;
use toll_core::run::RunRecord;

/// The grades of some files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GradeReport {
    /// In the order in which the files were named.
    pub files: Vec<GradedFile>,
}

/// One file that was submitted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GradedFile {
    /// Its name.
    pub file: String,
    /// Result of grading it.
    pub result: GradeResult,
    /// Why, in a sentence.
    pub reason: String,
    /// The grade of its run; absent if it cannot be graded.
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
    /// Blocks in it.
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
    /// In the order of the experiment; empty if the submission varied something else.
    pub claims: Vec<GradedClaim>,
}

/// A check that an honest run passes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DataCheck {
    /// Its name.
    pub id: String,
    /// What is true of every honest run.
    pub reason: String,
    /// How the data contradict it, each in a sentence; empty if they pass the check.
    pub contradictions: Vec<String>,
    /// Why it was not made, or not for all trials.
    pub not_made: Option<String>,
}

/// The run on this machine that a submission is compared with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunHere {
    /// The run.
    pub run: RunRecord,
    /// Blocks in it.
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
    /// Its result.
    pub result: ClaimResult,
    /// Why, in a sentence or two.
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
    /// The submitted data support it, the run is complete, and no run here refutes it.
    Holds,
    /// The submitted data refute it.
    RefutedBySubmission,
    /// A run here refutes it, and the submitted data do not.
    RefutedHere,
    /// The submitted data decide nothing, or are from an unfinished run.
    Undecided,
}
