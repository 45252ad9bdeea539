//! Sinks that have content already.

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

#[test]
fn a_file_is_written_from_where_it_stands_and_kept_around_it() {
    let files = Files::new();
    let (old, new) = (vec![b'-'; 300_000], content(100_000));
    files.file("in", &new);
    for way in WAYS {
        files.file("out", &old);
        let mut sink = writable(files.path("out"));
        sink.seek(SeekFrom::Start(50_001)).unwrap();
        fill(&files, way, &sink);
        let expected = [&old[..50_001], &new, &old[150_001..]].concat();
        assert_same(&files.content("out"), &expected, "the sink");
        assert_eq!(sink.stream_position().unwrap(), 150_001);
    }
}

#[test]
fn writing_beyond_the_end_leaves_zeros_before() {
    let files = Files::new();
    files.file("in", b"new");
    for way in WAYS {
        let mut sink = files.sink("out");
        sink.seek(SeekFrom::Start(5)).unwrap();
        fill(&files, way, &sink);
        assert_eq!(files.content("out"), b"\0\0\0\0\0new");
    }
}

#[test]
fn appending_goes_to_the_end_wherever_the_file_stands() {
    let files = Files::new();
    let new = content(100_000);
    files.file("in", &new);
    for way in WAYS {
        files.file("out", b"old");
        let mut sink = appendable(files.path("out"));
        sink.rewind().unwrap();
        fill(&files, way, &sink);
        fill(&files, way, &sink);
        let expected = [b"old", &new[..], &new].concat();
        assert_same(&files.content("out"), &expected, "the sink");
    }
}

#[test]
fn several_runs_share_one_sink() {
    let files = Files::new();
    let bytes = content(70_000);
    files.file("in", &bytes);
    for way in WAYS {
        let sink = files.sink("out");
        for _ in 0..3 {
            fill(&files, way, &sink);
        }
        assert_same(&files.content("out"), &bytes.repeat(3), "the sink");
    }
}

#[test]
fn an_empty_input_leaves_the_sink_as_it_is() {
    let files = Files::new();
    files.file("in", b"");
    for way in WAYS {
        files.file("out", b"old");
        let sink = writable(files.path("out"));
        fill(&files, way, &sink);
        assert_eq!(files.content("out"), b"old");
    }
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
