//! Simulates searches for the version that introduced a change: how often they find it, and how
//! many trials they need.

mod fixed;
mod laboratory;
mod search;
mod table;

pub use crate::simulation::{WORLDS, World};
pub use fixed::{Fixed, fixed};
pub use laboratory::{Answer, History, Noise, Searched};
pub use search::search;
pub use table::{Effort, Tally, table, tally};
