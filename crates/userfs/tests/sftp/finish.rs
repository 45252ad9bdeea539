//! The end of a write-back in one call.

use std::path::Path;

use userfs::source::{Finish, SetAttributes, Source};

use crate::common::{Bench, READ_WRITE, at, pattern};

#[test]
fn a_write_back_is_finished_with_content_attributes_and_length() {
    let Some(bench) = Bench::start() else { return };
    let source = bench.connect();
    for (bytes, is_sync) in [(0, true), (5, false), (300_000, true), (5 << 20, true)] {
        let found = source.open(Path::new("f"), READ_WRITE).unwrap();
        let file = found.handle;
        assert_eq!(found.attributes, file.attributes().unwrap());
        let content = pattern(bytes, 6);
        let changes = SetAttributes {
            mode: Some(0o4711),
            mtime: at(1_400_000_000),
            ..SetAttributes::default()
        };
        let end = Finish {
            bytes: &content,
            offset: 7,
            changes: &changes,
            is_sync,
            looks_at_name: false,
        };
        let (found, _) = file.finish(&end).unwrap();
        let before = found.size_bytes - bytes as u64;
        assert!(bytes == 0 || before == 7, "{before}");
        assert_eq!((found.mode, found.mtime.seconds), (0o4711, 1_400_000_000));
        assert!(std::fs::read(bench.path("f")).unwrap()[before as usize..] == content);
        source.remove(Path::new("f"), false).unwrap();
    }
}
