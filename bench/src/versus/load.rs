//! What goes on beside a comparison.

use std::path::Path;
use std::process::{Child, Stdio};

use super::Condition;
use crate::process::command;

/// A load that ends when it is dropped.
pub(super) struct Load(Option<Child>);

impl Load {
    /// Starts what a condition asks for; a drift goes over `seconds`.
    ///
    /// # Errors
    /// If it cannot be started.
    pub(super) fn start(
        work: &Path,
        condition: Condition,
        seconds: f64,
        seed: u64,
    ) -> Result<Load, String> {
        let arguments = match condition {
            Condition::Quiet => return Ok(Load(None)),
            Condition::Neighbour => ["burst".to_owned(), seed.to_string()],
            Condition::Drift => ["grow".to_owned(), format!("{:.0}", seconds.max(1.0))],
        };
        let child = command(work)
            .args(arguments)
            .stdin(Stdio::null())
            .spawn()
            .map_err(|error| format!("cannot start a load: {error}"))?;
        Ok(Load(Some(child)))
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            // One that ended already is what is wanted.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
