//! The rate of a guest's time-stamp counter.

use super::spec::Accelerator;

/// Returns the rate of a guest's counter in kHz, if the host knows the rate better than the guest
/// could measure it. QEMU's translator gives the guest the host's counter. With a clock that counts
/// instructions, the counter is that clock in nanoseconds (`cpu_get_ticks` in QEMU's
/// softmmu/cpu-timers.c). Under KVM the guest has a clock from its host.
pub(super) fn khz(accelerator: Accelerator) -> Option<u64> {
    match accelerator {
        Accelerator::Kvm => None,
        Accelerator::Tcg => host_khz(),
        Accelerator::Icount => Some(1_000_000),
    }
}

/// Time between the two readings of the counter and the clock.
#[cfg(target_arch = "x86_64")]
const MEASURED: std::time::Duration = std::time::Duration::from_millis(20);

/// The rate of this machine's counter in kHz.
#[cfg(target_arch = "x86_64")]
fn host_khz() -> Option<u64> {
    let (begin_ticks, begin_ns) = look();
    std::thread::sleep(MEASURED);
    let (end_ticks, end_ns) = look();
    let ticks = u128::from(end_ticks.checked_sub(begin_ticks)?);
    let ns = u128::from(end_ns.checked_sub(begin_ns)?);
    u64::try_from((ticks * 1_000_000).checked_div(ns)?)
        .ok()
        .filter(|khz| *khz > 0)
}

/// Reads the counter and the clock, in nanoseconds. Of several readings, takes the one in which the
/// clock was read fastest.
#[cfg(target_arch = "x86_64")]
fn look() -> (u64, u64) {
    use rustix::time::{ClockId, clock_gettime};
    let once = || {
        let before = ticks();
        let time = clock_gettime(ClockId::MonotonicRaw);
        let after = ticks();
        let ns = time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned();
        (after.wrapping_sub(before), before, ns)
    };
    let (gap, before, ns) = (0..50).map(|_| once()).min().expect("there are several");
    (before + gap / 2, ns)
}

#[cfg(target_arch = "x86_64")]
fn ticks() -> u64 {
    // SAFETY: every x86-64 CPU has this instruction, which touches no memory.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// On other hosts, QEMU's counter for a guest does not come from an x86 CPU, so its rate is not
/// known.
#[cfg(not(target_arch = "x86_64"))]
fn host_khz() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_of_instructions_has_one_tick_a_nanosecond() {
        assert_eq!(khz(Accelerator::Icount), Some(1_000_000));
        assert_eq!(khz(Accelerator::Kvm), None);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn the_rate_of_the_counter_repeats() {
        let (first, second) = (host_khz().unwrap(), host_khz().unwrap());
        assert!(first.abs_diff(second) < first / 100, "{first} {second}");
    }
}
