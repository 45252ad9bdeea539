//! Real mounts of local directories, used as any program uses files.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "tests start the process that serves them, and say what they skip"
)]

mod ahead;
mod basics;
mod both_sides;
mod coherence;
mod common;
mod device;
mod durability;
mod faults;
mod kept;
mod large;
mod last_close;
mod later;
mod limits;
mod links;
#[path = "../../../toll/tests/toll/namespaces.rs"]
mod namespaces;
mod other_users;
mod posix;
mod random;
mod ranges;
mod recorder;
mod recording;
mod refusals;
mod regressions;
mod remote;
mod requests;
mod script;
mod server;
mod slow;
mod stress;
mod users;
mod watched;
