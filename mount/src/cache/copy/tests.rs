//! Tests of the local copy of a file's content.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Copy, data_ranges};

/// Held by each test, because all copies of this program share one memory limit.
static MEMORY: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    MEMORY.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn a_copy_keeps_its_content_and_holes_when_it_moves_to_disk_and_gets_a_name() {
    let _alone = alone();
    let directory = std::env::temp_dir();
    let mut copy = Copy::new(&directory).unwrap();
    copy.write_at(b"begin", 0).unwrap();
    copy.write_at(b"end", 8 << 20).unwrap();
    assert!(!copy.is_on_disk);
    let name = directory.join(format!("toll-copy-{}", std::process::id()));
    copy.keep(&name).unwrap();
    let kept = std::fs::read(&name).unwrap();
    assert_eq!(kept.len(), (8 << 20) + 3);
    assert!(kept.starts_with(b"begin") && kept.ends_with(b"end"));
    let data: u64 = data_ranges(&copy.file(), 0..kept.len() as u64)
        .iter()
        .map(|range| range.end - range.start)
        .sum();
    assert!(data < 1 << 20, "{data} bytes of data");
    assert_eq!(copy.take_name(), Some(name.clone()));
    std::fs::remove_file(name).unwrap();
}

#[test]
fn copies_of_any_length_take_no_more_memory_together_than_they_may() {
    let _alone = alone();
    const ALL_MAX: usize = 64 << 20;
    for length in [1 << 20, 100_000] {
        let mut copies = Vec::new();
        for _ in 0..=ALL_MAX / length {
            let mut copy = Copy::new(&std::env::temp_dir()).unwrap();
            copy.set_len(length as u64).unwrap();
            copies.push(copy);
        }
        assert!(copies.last().unwrap().is_on_disk, "{length}");
        // Dropping or truncating a copy makes room again.
        copies[0].set_len(0).unwrap();
        drop(copies.pop());
        let mut next = Copy::new(&std::env::temp_dir()).unwrap();
        next.set_len(length as u64 / 2).unwrap();
        assert!(!next.is_on_disk, "{length}");
    }
}
