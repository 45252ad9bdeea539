//! `toll ci`, `toll bisect` and `toll history` on repositories that the tests create.

mod bisect;
mod ci;
mod ci_trees;
mod history;
