//! Tests of the conversions between `fuser`'s types and the source's.

use std::time::{Duration, UNIX_EPOCH};

use crate::source::Timespec;

use super::{system_time, time};

#[test]
fn times_before_1970_and_nanoseconds_come_through() {
    let at = |tv_sec, tv_nsec| Timespec { tv_sec, tv_nsec };
    for there in [at(0, 0), at(1, 999_999_999), at(-5, 0), at(1 << 33, 7)] {
        assert_eq!(time(system_time(there)), there);
    }
    let half_before = UNIX_EPOCH - Duration::from_millis(500);
    assert_eq!(system_time(at(-1, 500_000_000)), half_before);
    // How `fuser` converts one second before 1970 plus a nanosecond.
    assert_eq!(time(UNIX_EPOCH - Duration::new(1, 1)), at(-1, 1));
}
