//! Running the trials of a plan, each a fresh probe process.
//!
//! Architecture invariant: only this module and [`crate::environment`] start
//! processes.

mod answer;
mod event;
mod files;
mod guests;
mod interrupt;
mod lock;
mod machines;
mod probe;
mod request;
mod session;
mod side;
mod skips;
mod waiting;

pub use event::{Event, Observer, SessionEnd, SessionError};
pub use guests::Guests;
pub use interrupt::Interrupt;
pub use lock::RunLock;
pub use probe::Probe;
pub use request::{TrialRequest, workspace_request};
pub use session::Session;
pub use waiting::Waiting;
