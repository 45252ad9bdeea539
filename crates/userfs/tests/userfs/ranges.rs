//! A set of bytes of a file against a set of single bytes.

use userfs::ranges::Ranges;

/// A small generator of numbers (Marsaglia, "Xorshift RNGs", 2003).
fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

#[test]
fn ranges_hold_what_a_set_of_single_bytes_would() {
    let mut state = 88_172_645_463_325_252;
    let mut ranges = Ranges::default();
    let mut bytes = [false; 64];
    for _ in 0..20_000 {
        let (a, b) = (next(&mut state) % 65, next(&mut state) % 65);
        let range = a.min(b)..a.max(b);
        let inside = range.start as usize..range.end as usize;
        match next(&mut state) % 3 {
            0 => {
                ranges.insert(range.clone());
                bytes[inside.clone()].fill(true);
            }
            1 => {
                ranges.remove(range.clone());
                bytes[inside.clone()].fill(false);
            }
            _ => {}
        }
        let missing: u64 = ranges
            .missing(range.clone())
            .iter()
            .map(|r| r.end - r.start)
            .sum();
        let expected = bytes[inside.clone()].iter().filter(|byte| !**byte).count();
        assert_eq!(missing, expected as u64, "{range:?} of {ranges:?}");
        assert_eq!(ranges.overlaps(&range), bytes[inside].contains(&true));
        assert_eq!(
            ranges.bytes(),
            bytes.iter().filter(|byte| **byte).count() as u64
        );
    }
}

#[test]
fn ranges_that_touch_become_one() {
    let mut ranges = Ranges::default();
    ranges.insert(0..4);
    ranges.insert(8..12);
    ranges.insert(4..8);
    assert_eq!(ranges.iter().count(), 1);
    assert!(ranges.missing(0..12).is_empty() && ranges.bytes() == 12);
}

#[test]
fn what_makes_a_file_longer_is_written_first() {
    let mut ranges = Ranges::default();
    ranges.insert(0..4);
    ranges.insert(8..16);
    assert_eq!(ranges.tail_first(10), [10..16, 0..4, 8..10]);
    assert_eq!(ranges.tail_first(0), [0..4, 8..16]);
    assert_eq!(ranges.tail_first(99), [0..4, 8..16]);
}
