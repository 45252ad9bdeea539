//! Takes the measuring lock.

use std::time::Duration;

use anyhow::bail;
use toll_host::trial::{LockAttempt, RunLock};
use toll_system::{Failure, output};

use crate::listen;

/// Interval between checks whether another run has ended. The interval is long, since that run is
/// measuring.
const POLL: Duration = Duration::from_millis(500);

/// Takes the measuring lock, or fails if another run holds it.
pub fn take() -> anyhow::Result<RunLock> {
    take_with("wait for it")
}

/// Takes the measuring lock. While another run measures, waits if `waits`, else fails with
/// `remedy`.
pub fn take_or_wait(waits: bool, remedy: &str) -> anyhow::Result<RunLock> {
    if !waits {
        return take_with(remedy);
    }
    let interrupt = listen()?;
    let mut shown = String::new();
    loop {
        match RunLock::try_take().map_err(anyhow::Error::msg)? {
            LockAttempt::Taken(lock) => return Ok(lock),
            LockAttempt::Held(holder) if holder != shown => {
                output::note(&format!("waiting for {holder} to end"));
                shown = holder;
            }
            LockAttempt::Held(_) => {}
        }
        if let Some(signal) = interrupt.signal() {
            bail!(Failure::Interrupted(signal));
        }
        std::thread::sleep(POLL);
    }
}

fn take_with(remedy: &str) -> anyhow::Result<RunLock> {
    match RunLock::try_take().map_err(anyhow::Error::msg)? {
        LockAttempt::Taken(lock) => Ok(lock),
        LockAttempt::Held(holder) => bail!(
            "cannot measure: another run ({holder}) is measuring, and two runs would disturb \
             each other; {remedy}"
        ),
    }
}
