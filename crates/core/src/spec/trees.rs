//! The work trees of two commits that an experiment compares.

use serde::{Deserialize, Serialize};

/// The factor that selects a work tree, and the placeholder for its directory in commands.
pub const TREE: &str = "tree";
pub(crate) const PLACEHOLDER: &str = "{tree}";

/// Names of the two sides, and of the directories of their work trees. The names have the same
/// length, because a longer path moves the stack, which changes a program's time.
pub const SIDES: [&str; 2] = ["base", "head"];

/// The work trees that a run compares.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trees {
    /// The directory that holds both work trees.
    pub directory: String,
    /// Hashes of the commits in the two work trees.
    pub commits: [String; 2],
}

/// The smallest regression that fails by default: small enough that a regression of 5 % is
/// reliably detected, and larger than what the layout of a build changes (1 %).
pub const REGRESSION_LIMIT: f64 = 0.03;
