//! Runs the trials of a plan. Each trial is a new probe process.
//!
//! Architecture invariant: only this module and [`crate::environment`] start processes.

mod answer;
mod call_counts;
mod event;
mod expansion;
mod files;
mod forecast;
mod guests;
mod hooks;
mod lock;
mod machines;
mod planned;
mod prestarted;
mod probe;
mod profile;
mod request;
mod run_time;
mod session;
mod side_by_side;
mod skips;
mod stopping;

pub use event::{Event, Observer, SessionEnd, SessionError};
pub use expansion::{command_files, missing_program, unquotable};
pub use forecast::Forecast;
pub use guests::{Guests, missing_kernels};
pub use lock::{LockAttempt, RunLock, chosen_lock};
pub use prestarted::PrestartedProbe;
pub use probe::Probe;
pub use profile::ProfileEnd;
pub use request::{memory_shortage, workspace_request};
pub use run_time::RunTime;
pub use session::{Session, TimeLimit};
pub use stopping::{COMPARISON, comparison_time};
