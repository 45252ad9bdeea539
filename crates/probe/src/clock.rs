//! The clock of every timed region.

use rustix::time::{ClockId, clock_gettime};

/// Returns the nanoseconds of `CLOCK_MONOTONIC_RAW`, whose rate NTP does not adjust
/// (clock_gettime(2)). Since Linux 5.3 the vDSO serves it without a system call where the clock
/// source allows.
pub fn now_ns() -> u64 {
    read_ns(ClockId::MonotonicRaw)
}

pub fn read_ns(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    // Time since boot is never negative.
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}

/// Returns the nanoseconds of gettimeofday(2), whose unit is the microsecond and which NTP steps
/// and adjusts. Measurements by the published method use this clock.
pub fn gettimeofday_ns() -> u64 {
    let mut time = libc::timeval {
        tv_sec: 0,
        tv_usec: 0,
    };
    // SAFETY: `time` is a writable timeval for the duration of the call.
    unsafe { libc::gettimeofday(&raw mut time, std::ptr::null_mut()) };
    // The time is after 1970, so neither field is negative.
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_usec.cast_unsigned() * 1000
}

/// Returns the nanoseconds of times(2), which counts whole ticks of 10 ms on Linux. Measurements by
/// the published method use this clock.
pub fn times_ns() -> u64 {
    // SAFETY: every field is an integer, for which 0 is a valid value.
    let mut used: libc::tms = unsafe { std::mem::zeroed() };
    // SAFETY: `used` is a writable tms for the duration of the call.
    let ticks = unsafe { libc::times(&raw mut used) };
    // SAFETY: sysconf(3) takes a plain integer.
    let ticks_per_s = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    // The kernel starts to count near its boot, so neither value is negative.
    ticks.cast_unsigned() * (1_000_000_000 / ticks_per_s.cast_unsigned())
}

#[cfg(test)]
mod tests {
    #[test]
    fn gettimeofday_counts_whole_microseconds() {
        let now = super::gettimeofday_ns();
        assert!(now > 1_500_000_000 * 1_000_000_000 && now.is_multiple_of(1000));
    }

    #[test]
    fn times_counts_whole_ticks() {
        let now = super::times_ns();
        assert!(now > 0 && now.is_multiple_of(10_000_000), "{now}");
    }

    #[test]
    fn the_clock_never_goes_back() {
        let first = super::now_ns();
        assert!(super::now_ns() >= first && first > 0);
    }
}
