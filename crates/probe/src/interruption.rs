//! Detects what makes the times of a trial meaningless: the probe was stopped
//! and continued, or the machine was suspended.

use std::sync::atomic::{AtomicBool, Ordering};

use rustix::time::ClockId;
use toll_wire::Failure;

use crate::clock::read_ns;
use crate::failure;

/// Shortest suspension, in nanoseconds, that makes a trial unusable.
const SUSPENDED_NS_MIN: i64 = 10_000_000;

static WAS_CONTINUED: AtomicBool = AtomicBool::new(false);

/// Watches for a stop or a suspension from `begin` to `end`.
///
/// A suspension shows in the difference of two clocks. The probe may be preempted between reading
/// them, so the difference has an upper bound and a lower one.
pub struct Watch {
    suspended_ns_max: i64,
}

impl Watch {
    pub fn begin() -> Self {
        let handler: extern "C" fn(libc::c_int) = continued;
        // SAFETY: the handler stores to an atomic, which is async-signal-safe.
        // If it cannot be installed, a stop merely goes unnoticed.
        unsafe { libc::signal(libc::SIGCONT, handler as libc::sighandler_t) };
        Self {
            suspended_ns_max: suspended_ns_max(),
        }
    }

    pub fn end(&self) -> Result<(), Failure> {
        if WAS_CONTINUED.load(Ordering::Relaxed) {
            return Err(failure::instrument(
                "cannot use the trial: it was stopped and continued, and its times include the \
                 pause; leave its processes alone, and stop toll itself to pause a run",
            ));
        }
        check_suspension(suspended_ns_min() - self.suspended_ns_max)
    }
}

fn check_suspension(asleep_ns: i64) -> Result<(), Failure> {
    if asleep_ns < SUSPENDED_NS_MIN {
        return Ok(());
    }
    Err(failure::instrument(format!(
        "cannot use the trial: the machine was suspended for {:.1} s in the middle of it; keep it \
         awake while it measures",
        asleep_ns as f64 / 1e9
    )))
}

extern "C" fn continued(_signal: libc::c_int) {
    WAS_CONTINUED.store(true, Ordering::Relaxed);
}

/// Returns the nanoseconds that the machine has spent suspended, or more.
///
/// `CLOCK_BOOTTIME` counts them, and `CLOCK_MONOTONIC` does not (clock_gettime(2)).
fn suspended_ns_max() -> i64 {
    let awake_ns = read_ns(ClockId::Monotonic).cast_signed();
    read_ns(ClockId::Boottime).cast_signed() - awake_ns
}

/// Returns the nanoseconds that the machine has spent suspended, or fewer. They are below 0 if the
/// machine was never suspended.
fn suspended_ns_min() -> i64 {
    let since_boot_ns = read_ns(ClockId::Boottime).cast_signed();
    since_boot_ns - read_ns(ClockId::Monotonic).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If a bound reads its clocks in the wrong order, many rounds fail.
    #[test]
    fn the_lower_bound_never_exceeds_the_upper_one() {
        for _ in 0..10_000 {
            let most = suspended_ns_max();
            let least = suspended_ns_min();
            assert!(least <= most, "{least} > {most}");
        }
    }

    #[test]
    fn a_machine_that_stays_awake_interrupts_nothing() {
        assert_eq!(Watch::begin().end(), Ok(()));
    }

    #[test]
    fn time_in_suspension_is_told() {
        assert_eq!(check_suspension(SUSPENDED_NS_MIN - 1), Ok(()));
        let failure = check_suspension(2_500_000_000).unwrap_err();
        assert_eq!(failure.kind, toll_wire::FailureKind::Instrument);
        assert!(failure.message.contains("suspended for 2.5 s"));
    }
}
