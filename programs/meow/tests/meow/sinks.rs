//! Sinks that already have content.

use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::process::Stdio;

use crate::common::{Files, WAYS, appendable, assert_same, content, writable};

/// Runs meow on `in` with an open sink.
#[track_caller]
fn fill(files: &Files, way: &[&str], sink: &File) {
    let sink = sink.try_clone().unwrap();
    let arguments = [way, &["in"]].concat();
    files
        .run_between(Stdio::null(), &arguments, sink)
        .succeeded();
}

/// Runs meow `runs` times on a sink with old content, from the offset `at` or in append
/// mode.
#[track_caller]
fn check(old: &[u8], at: Option<usize>, new: &[u8], runs: usize) {
    let files = Files::new();
    files.file("in", new);
    let start = at.unwrap_or(old.len());
    let end = start + new.len() * runs;
    let mut expected = old.to_vec();
    expected.resize(old.len().max(end), 0);
    expected[start..end].copy_from_slice(&new.repeat(runs));
    for way in WAYS {
        let path = files.file("out", old);
        let mut sink = match at {
            Some(_) => writable(path),
            None => appendable(path),
        };
        sink.seek(SeekFrom::Start(at.unwrap_or(0) as u64)).unwrap();
        for _ in 0..runs {
            fill(&files, way, &sink);
        }
        assert_same(&files.content("out"), &expected, "the sink");
        assert_eq!(sink.stream_position().unwrap(), end as u64);
    }
}

#[test]
fn a_file_is_written_from_where_it_stands_or_appended_to_and_kept_around_it() {
    check(&[b'-'; 300_000], Some(50_001), &content(100_000), 1);
    // A start beyond the end leaves zeros before it.
    check(b"", Some(5), b"new", 1);
    check(b"old", Some(0), b"", 1);
    check(b"old", None, &content(100_000), 2);
    // Several runs share one sink.
    check(b"", Some(0), &content(70_000), 3);
}

#[test]
fn the_null_device_takes_everything() {
    let files = Files::new();
    files.file("in", &content(1 << 20));
    for way in WAYS {
        fill(&files, way, &writable("/dev/null"));
    }
}

#[test]
fn a_written_file_shares_nothing_with_its_source() {
    let files = Files::new();
    let bytes = content(1 << 20);
    for way in WAYS {
        files.file("in", &bytes);
        fill(&files, way, &files.sink("out"));
        files.file("in", &vec![0; 1 << 20]);
        assert_same(&files.content("out"), &bytes, "the sink");
    }
}
