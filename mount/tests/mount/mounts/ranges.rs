//! Ranges of bytes of a file, compared with a set of single bytes.

use proptest::prelude::*;
use toll_mount::ranges::Ranges;

proptest! {
    #[test]
    fn ranges_hold_what_a_set_of_single_bytes_would(
        steps in prop::collection::vec((0_u64..65, 0_u64..65, 0..3), 0..100),
    ) {
        let (mut ranges, mut bytes) = (Ranges::default(), [false; 64]);
        for (a, b, change) in steps {
            let range = a.min(b)..a.max(b);
            let inside = range.start as usize..range.end as usize;
            match change {
                0 => ranges.insert(range.clone()),
                1 => ranges.remove(range.clone()),
                _ => {}
            }
            if change < 2 {
                bytes[inside.clone()].fill(change == 0);
            }
            let missing = ranges.missing(range.clone()).into_iter();
            let missing: u64 = missing.map(|range| range.end - range.start).sum();
            let count = |bytes: &[bool], wanted| bytes.iter().filter(|byte| **byte == wanted).count() as u64;
            prop_assert_eq!(missing, count(&bytes[inside.clone()], false));
            prop_assert_eq!(ranges.overlaps(&range), bytes[inside].contains(&true));
            prop_assert_eq!(ranges.bytes(), count(&bytes, true));
        }
    }
}

#[test]
fn ranges_that_touch_become_one_and_what_makes_a_file_longer_is_written_first() {
    let mut ranges = Ranges::default();
    for range in [0..4, 8..12, 4..8] {
        ranges.insert(range);
    }
    assert_eq!(
        (ranges.iter().next(), ranges.iter().count()),
        (Some(0..12), 1)
    );
    ranges.remove(4..8);
    ranges.insert(12..16);
    assert_eq!(ranges.tail_first(10), [10..16, 0..4, 8..10]);
    assert_eq!(ranges.tail_first(0), [0..4, 8..16]);
    assert_eq!(ranges.tail_first(99), [0..4, 8..16]);
}
