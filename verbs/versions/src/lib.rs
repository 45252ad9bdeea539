//! Versions of programs and kernels: `toll ci`, `toll bisect` and `toll history`.

pub mod bisect;
pub mod ci;
pub mod history;
pub mod notes;
pub mod repository;
pub mod search;
pub mod series;
