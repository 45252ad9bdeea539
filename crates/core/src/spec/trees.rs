//! The work trees of two commits that an experiment compares.

use serde::{Deserialize, Serialize};

/// The factor that selects a work tree, and the placeholder for its directory in commands.
pub const TREE: &str = "tree";
pub(crate) const PLACEHOLDER: &str = "{tree}";

/// Names of the two sides, and of their directories below the one that holds both. They
/// have the same length: a longer path moves the stack, which changes a program's time.
pub const SIDES: [&str; 2] = ["base", "head"];

/// The work trees that a run compares.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trees {
    /// The directory that holds both.
    pub directory: String,
    /// Hashes of the commits that were laid out in them.
    pub commits: [String; 2],
}

/// The smallest regression that fails by default: small enough that a regression of 5 % is
/// reliably detected, and larger than what the layout of a build changes (1 %).
pub const REGRESSION_LIMIT: f64 = 0.03;
