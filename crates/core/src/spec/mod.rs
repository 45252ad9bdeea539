//! Experiment files: question, factors, metrics and claims.
//!
//! Architecture invariant: this module does no I/O. It turns text into an
//! [`Experiment`], a plain value that is stored with each run, so that a run
//! can be resumed and judged again after its file was changed or removed.

pub mod adhoc;
pub mod builtin;
mod claims;
pub(crate) mod constraints;
mod derived;
mod error;
mod experiment;
pub mod expression;
mod facts;
mod file;
pub mod guest;
mod kernel_name;
mod kernels;
mod left_out;
pub mod level;
mod near;
mod overrides;
mod parsed_metric;
mod parts;
mod platform;
mod problem;
mod published;
pub mod quoting;
mod reader;
mod references;
mod row;
mod selector;
mod settings;
mod shell;
mod shown;
pub mod trees;
mod validate;
mod workload;

pub use claims::{Claim, ClaimDirection, Contrast, Test};
pub use derived::{BYTES_MOVED, CALLS, Derived, DerivedKind};
pub use error::SpecError;
pub use experiment::Experiment;
pub use facts::{FACTS, KERNEL};
pub use file::{located, parse};
pub use guest::{GuestSettings, Knob};
pub use kernel_name::KernelName;
pub use level::{Factor, Level};
pub use near::{nearest, suggestion};
pub use overrides::{LevelOverride, apply_levels, parse_override};
pub use parsed_metric::{OutputStream, ParsedMetric};
pub use parts::ReportPart;
pub use platform::Platform;
pub use problem::Problem;
pub use row::{ROW, Row};
pub use selector::Selector;
pub use settings::{
    BLOCKS_MAX, ComparisonGoal, GUEST_TRIAL_TIMEOUT_S, RunSettings, TRIAL_TIMEOUT_S,
};
pub use shell::{Shell, shell};
pub use shown::{
    AdviceKind, AdviceSpec, FigureKind, FigureSpec, GroupSpec, LineSpec, Table, TableMean,
    TableQuantity, TableRow,
};
pub use toll_wire::{Better, WorkloadKind, quantity};
pub use workload::{NOWHERE, PerCommand, WorkloadSpec};

#[cfg(test)]
mod tests;
