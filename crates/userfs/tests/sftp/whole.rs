//! Whole files, fetched and replaced in few round trips.

use std::os::unix::fs::FileExt;
use std::path::Path;

use userfs::source::{Error, Replacement, SetAttributes, Source};

use crate::common::{Bench, READ_WRITE, at, both_servers, pattern};

#[test]
fn a_write_back_is_finished_with_content_attributes_and_length() {
    let Some(bench) = Bench::start() else { return };
    let source = bench.connect();
    for (bytes, is_sync) in [(0, true), (5, false), (300_000, true), (5 << 20, true)] {
        let (file, found) = source.open_found(Path::new("f"), READ_WRITE).unwrap();
        assert_eq!(found, file.attributes().unwrap());
        let content = pattern(bytes, 6);
        let changes = SetAttributes {
            mode: Some(0o4711),
            mtime: at(1_400_000_000),
            ..SetAttributes::default()
        };
        let found = file.finish(&content, 7, &changes, is_sync).unwrap();
        let before = found.size_bytes - bytes as u64;
        assert!(bytes == 0 || before == 7, "{before}");
        assert_eq!((found.mode, found.mtime.seconds), (0o4711, 1_400_000_000));
        assert!(std::fs::read(bench.path("f")).unwrap()[before as usize..] == content);
        source.unlink(Path::new("f")).unwrap();
    }
}

#[test]
fn a_whole_file_is_fetched() {
    let Some(bench) = Bench::start() else { return };
    let source = bench.connect();
    for bytes in [0, 1, 70_000, (5 << 20) + 1] {
        let content = pattern(bytes, 3);
        std::fs::write(bench.path("f"), &content).unwrap();
        let copy = tempfile::tempfile().unwrap();
        let mut take = |offset, bytes: &[u8]| Ok(copy.write_all_at(bytes, offset)?);
        let found = source.fetch(Path::new("f"), &mut take).unwrap();
        assert_eq!(found.size_bytes, bytes as u64);
        let mut read = vec![0; bytes];
        copy.read_exact_at(&mut read, 0).unwrap();
        assert!(read == content);
        assert_eq!(copy.metadata().unwrap().len(), bytes as u64);
    }
    let mut full = |_, _: &[u8]| Err(Error::Errno(libc::ENOSPC));
    let fetched = source.fetch(Path::new("f"), &mut full);
    assert_eq!(fetched, Err(Error::Errno(libc::ENOSPC)));
}

#[test]
fn a_whole_file_is_replaced_at_once_with_its_attributes() {
    for settings in both_servers() {
        let Some(bench) = Bench::with(&settings) else {
            return;
        };
        let source = bench.connect();
        for (bytes, is_durable) in [
            (0, false),
            (1, true),
            (70_000, false),
            ((5 << 20) + 1, true),
        ] {
            let content = pattern(bytes, 4);
            let new = Replacement {
                temporary: Path::new(".t"),
                size_bytes: bytes as u64,
                changes: SetAttributes {
                    mode: Some(0o640),
                    atime: at(5),
                    mtime: at(1_500_000_000),
                    ..SetAttributes::default()
                },
                is_durable,
            };
            let mut give = |offset: u64, buffer: &mut [u8]| {
                let at = usize::try_from(offset).unwrap();
                buffer.copy_from_slice(&content[at..at + buffer.len()]);
                Ok(())
            };
            let found = source.replace(Path::new("f"), &new, &mut give).unwrap();
            assert_eq!((found.size_bytes, found.mode), (bytes as u64, 0o640));
            assert_eq!(found.mtime.seconds, 1_500_000_000);
            assert!(std::fs::read(bench.path("f")).unwrap() == content);
            assert!(!bench.path(".t").exists());
        }
        let mut broken = |_, _: &mut [u8]| Err(Error::Errno(libc::EIO));
        let new = Replacement {
            temporary: Path::new(".t"),
            size_bytes: 5,
            changes: SetAttributes::default(),
            is_durable: false,
        };
        let refused = source.replace(Path::new("f"), &new, &mut broken);
        assert_eq!(refused, Err(Error::Errno(libc::EIO)));
        assert!(!bench.path(".t").exists());
        assert_eq!(
            std::fs::metadata(bench.path("f")).unwrap().len(),
            (5 << 20) + 1
        );
    }
}
