//! How long a run has taken.

use std::time::{Duration, Instant};

use crate::store::TrialRecord;

/// Time that a run has taken over its sessions, without pauses. The time of a session after
/// its last trial is lost.
pub struct RunTime {
    begin: Instant,
    earlier: Duration,
    paused: Duration,
}

impl RunTime {
    /// Begins a session after the trials of earlier ones.
    pub fn after(trials: &[TrialRecord]) -> Self {
        let earlier_ns = trials.iter().map(|trial| trial.run_ns).max();
        Self {
            begin: Instant::now(),
            earlier: Duration::from_nanos(earlier_ns.unwrap_or_default()),
            paused: Duration::ZERO,
        }
    }

    /// Excludes a pause that has just ended.
    pub(super) fn leave_out(&mut self, pause: Duration) {
        self.paused += pause;
    }

    pub(super) fn elapsed(&self) -> Duration {
        let here = self.begin.elapsed().saturating_sub(self.paused);
        here.saturating_add(self.earlier)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_goes_on_behind_the_last_trial_of_earlier_ones() {
        let trial = |run_s: u64| TrialRecord {
            run_ns: run_s * 1_000_000_000,
            ..TrialRecord::default()
        };
        let mut time = RunTime::after(&[trial(5), trial(18), trial(12)]);
        assert!(time.elapsed() >= Duration::from_secs(18));
        time.leave_out(Duration::from_hours(1));
        assert_eq!(time.elapsed(), Duration::from_secs(18));
    }
}
