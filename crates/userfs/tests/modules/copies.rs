//! The local copy of a file's content.

use crate::copy::{Copy, data_ranges};

#[test]
fn a_copy_keeps_its_content_and_holes_when_it_moves_to_disk_and_gets_a_name() {
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
