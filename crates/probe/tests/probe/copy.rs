//! The copy workload, from request to response.

use std::path::Path;

use toll_wire::{
    CacheState, CopyMethod, CopyRequest, FailureKind, Outcome, Request, Sink, SinkFile, Source,
    SourceIo, Workload, from_word, words,
};
use xxhash_rust::xxh3::xxh3_64;

use crate::common::{
    answer_request, ask, ask_on_full_file_system, completed, completed_or_skip, content, directory,
    failed, failed_or_skip, refused, sample, scratch_files, skip,
};

const SINKS: [Sink; 4] = [Sink::Null, Sink::Pipe, Sink::File, Sink::Socket];

fn methods() -> impl Iterator<Item = CopyMethod> {
    let method = |word: &&'static str| from_word(word).unwrap();
    words::<CopyMethod>().iter().map(method)
}

/// Makes a request to copy a new file of `length` bytes in `directory`.
fn copy_of(directory: &Path, length: usize) -> CopyRequest {
    let path = directory.join(format!("source-{length}"));
    let bytes = content(length);
    std::fs::write(&path, &bytes).unwrap();
    let xxh3 = xxh3_64(&bytes);
    CopyRequest {
        source: Source::File { path, xxh3 },
        size_bytes: length as u64,
        directory: directory.to_owned(),
        ..CopyRequest::default()
    }
}

fn ask_copy(copy: &CopyRequest) -> Outcome {
    ask(&Workload::Copy(copy.clone()))
}

fn refused_copy(copy: &CopyRequest, kind: FailureKind) -> String {
    refused(&Workload::Copy(copy.clone()), kind)
}

/// Checks the answer to a pair of method and sink, or skips what this machine
/// cannot run.
fn check_pair(copy: &CopyRequest) {
    let what = format!("{copy:?}");
    let outcome = ask_copy(copy);
    if let Outcome::Failed(failure) = &outcome {
        let is_excused = match (copy.method, failure.kind) {
            (CopyMethod::IoUring, FailureKind::Unsupported) => {
                failure.message.contains("cannot set up io_uring")
            }
            // A small copy may take no longer than starting the program.
            (CopyMethod::SystemCat, FailureKind::Instrument) => {
                failure.message.contains("cannot time cat")
            }
            (_, FailureKind::Unsupported) => failure.message.contains("127.0.0.1"),
            _ => false,
        };
        if is_excused {
            return skip(&failure.message);
        }
    }
    if copy.method == CopyMethod::CopyFileRange && copy.sink != Sink::File {
        let message = failed(outcome, FailureKind::Unsupported, &what);
        assert!(
            message.starts_with("cannot copy_file_range to"),
            "{message}"
        );
        return;
    }
    let data = completed(outcome, &what);
    let metrics = &data.samples[0].metrics;
    assert_eq!(metrics["bytes_copied"], copy.size_bytes as f64, "{what}");
    assert!(metrics["duration_ns"] > 0.0, "{what}");
    let is_counted = copy.method != CopyMethod::SystemCat;
    assert_eq!(metrics.contains_key("calls"), is_counted, "{what}");
    assert_eq!(metrics.contains_key("startup_ns"), !is_counted, "{what}");
    assert!(!data.notes.is_empty(), "{what}");
    assert!(scratch_files(&copy.directory).is_empty(), "{what}");
}

/// Checks methods with all sinks, one source and some buffers.
fn check_all(
    length: usize,
    buffers: &[Option<u64>],
    methods: impl IntoIterator<Item = CopyMethod>,
) {
    let directory = directory();
    let copy = copy_of(directory.path(), length);
    for method in methods {
        for sink in SINKS {
            for &buffer_bytes in buffers {
                check_pair(&CopyRequest {
                    method,
                    sink,
                    buffer_bytes,
                    ..copy.clone()
                });
            }
        }
    }
}

#[test]
fn every_method_serves_every_sink_with_files_and_buffers_of_any_size() {
    for (length, buffer) in [(200_003, None), (100_003, Some(4097)), (0, None), (1, None)] {
        check_all(length, &[buffer], methods());
    }
    // Lent pages survive several rounds, and a stream keeps its order.
    let buffers = [None, Some(4096), Some(20_000)];
    check_all(5_000_011, &buffers, [CopyMethod::Vmsplice]);
    check_all(3_000_017, &[None, Some(1000)], [CopyMethod::IoUring]);
}

#[test]
fn only_the_asked_part_of_a_longer_file_is_copied() {
    let directory = directory();
    let mut copy = copy_of(directory.path(), 100_000);
    let Source::File { xxh3, .. } = &mut copy.source else {
        unreachable!("the source is a file");
    };
    *xxh3 = xxh3_64(&content(70_001));
    copy.size_bytes = 70_001;
    copy.sink = Sink::File;
    for method in methods() {
        copy.method = method;
        match method {
            // It copies the whole file.
            CopyMethod::SystemCat => drop(refused_copy(&copy, FailureKind::Unsupported)),
            _ => check_pair(&copy),
        }
    }
}

#[test]
fn zeros_are_copied_by_the_methods_that_read() {
    let directory = directory();
    let mut copy = copy_of(directory.path(), 300_001);
    copy.source = Source::Zero;
    copy.sink = Sink::Pipe;
    for method in methods() {
        copy.method = method;
        match method {
            CopyMethod::Mmap | CopyMethod::CopyFileRange | CopyMethod::SystemCat => {
                refused_copy(&copy, FailureKind::Unsupported);
            }
            _ => check_pair(&copy),
        }
    }
}

#[test]
fn changed_content_is_noticed_wherever_it_arrives() {
    let directory = directory();
    let mut copy = copy_of(directory.path(), 100_000);
    if let Source::File { xxh3, .. } = &mut copy.source {
        *xxh3 ^= 1;
    }
    for sink in [Sink::Pipe, Sink::File, Sink::Socket] {
        for cache in [CacheState::Warm, CacheState::Cold] {
            (copy.sink, copy.cache) = (sink, cache);
            let outcome = ask_copy(&copy);
            if let Some(message) = failed_or_skip(outcome, FailureKind::Failed, "a wrong hash") {
                assert!(message.starts_with("cannot trust the copy"), "{message}");
            }
        }
    }
    assert!(scratch_files(directory.path()).is_empty());
}

#[test]
fn a_cold_copy_reads_from_storage_and_a_warm_one_does_not() {
    let directory = directory();
    let mut copy = copy_of(directory.path(), 1_000_001);
    copy.cache = CacheState::Cold;
    let mut request = Request::new(Workload::Copy(copy.clone()));
    request.iterations = 3;
    let Some(data) = completed_or_skip(answer_request(&request), "cold") else {
        return;
    };
    for sample in data.samples {
        match sample.metrics.get("block_input_bytes") {
            Some(bytes) => assert!(*bytes >= 1_000_001.0, "{bytes} bytes were read"),
            None => skip("this kernel has no I/O accounting"),
        }
    }
    copy.cache = CacheState::Warm;
    let metrics = sample(&Workload::Copy(copy)).metrics;
    assert_eq!(*metrics.get("block_input_bytes").unwrap_or(&0.0), 0.0);
}

/// Returns the bytes read from storage in a copy. Prints the reason and returns
/// `None` where that is not known.
fn input_bytes(copy: &CopyRequest, what: &str) -> Option<f64> {
    let data = completed_or_skip(ask_copy(copy), what)?;
    let bytes = data.samples[0].metrics.get("block_input_bytes").copied();
    if bytes.is_none() {
        skip("this kernel has no I/O accounting");
    }
    bytes
}

#[test]
fn direct_io_reads_a_warm_file_from_storage_whatever_its_length() {
    let directory = directory();
    for length in [1 << 20, 1_000_001] {
        let mut copy = copy_of(directory.path(), length);
        (copy.method, copy.sink) = (CopyMethod::PageAligned, Sink::Pipe);
        assert_eq!(input_bytes(&copy, "buffered").unwrap_or(0.0), 0.0);
        copy.io = SourceIo::Direct;
        let Some(bytes) = input_bytes(&copy, "direct") else {
            return;
        };
        assert!(bytes >= length as f64, "{bytes} of {length} bytes");
    }
}

#[test]
fn direct_io_takes_an_unaligned_buffer_or_says_that_it_does_not() {
    let directory = directory();
    let mut copy = copy_of(directory.path(), 1 << 20);
    (copy.method, copy.io) = (CopyMethod::Page, SourceIo::Direct);
    if let Outcome::Failed(failure) = ask_copy(&copy) {
        assert_eq!(failure.kind, FailureKind::Unsupported, "{failure:?}");
        let (refused, missing) = ("by direct I/O: invalid argument", "no direct I/O");
        let message = failure.message;
        assert!(
            message.contains(refused) || message.contains(missing),
            "{message}"
        );
    }
    for (method, source) in [
        (CopyMethod::Splice, copy.source.clone()),
        (CopyMethod::SystemCat, copy.source.clone()),
        (CopyMethod::PageAligned, Source::Zero),
    ] {
        (copy.method, copy.source) = (method, source);
        let message = refused_copy(&copy, FailureKind::Unsupported);
        assert!(message.starts_with("cannot use direct I/O"), "{message}");
    }
}

#[test]
fn half_a_block_of_a_cold_file_is_read_before_it_is_overwritten_and_a_whole_one_is_not() {
    let directory = directory();
    let length = 64 << 12;
    let mut copy = copy_of(directory.path(), length);
    (copy.sink, copy.sink_file) = (Sink::File, SinkFile::Cold);
    for (buffer_bytes, expected) in [(2048, length as f64), (4096, 0.0)] {
        copy.buffer_bytes = Some(buffer_bytes);
        let Some(bytes) = input_bytes(&copy, "over a cold file") else {
            return;
        };
        // The location of a block may be read, too.
        let reach = expected..=expected + 65_536.0;
        assert!(reach.contains(&bytes), "{buffer_bytes}: {bytes}");
    }
    assert!(scratch_files(directory.path()).is_empty());
}

/// Packets that wait to be freed would hold pages of the file.
#[test]
fn a_file_that_went_into_a_socket_can_be_made_cold_again() {
    let directory = directory();
    let mut copy = copy_of(directory.path(), 32 << 20);
    for _ in 0..12 {
        (copy.method, copy.sink) = (CopyMethod::Sendfile, Sink::Socket);
        copy.cache = CacheState::Warm;
        completed(ask_copy(&copy), "warm, into a socket");
        (copy.method, copy.sink) = (CopyMethod::Page, Sink::Null);
        copy.cache = CacheState::Cold;
        if completed_or_skip(ask_copy(&copy), "cold after that").is_none() {
            return;
        }
    }
}

#[test]
fn a_source_in_memory_cannot_be_cold() {
    let Ok(directory) = tempfile::tempdir_in("/dev/shm") else {
        return skip("/dev/shm does not accept files");
    };
    let mut copy = copy_of(directory.path(), 10_000);
    copy.cache = CacheState::Cold;
    match ask_copy(&copy) {
        Outcome::Failed(failure) => {
            assert_eq!(failure.kind, FailureKind::Unsupported);
            let why = "lives in the page cache";
            assert!(failure.message.contains(why), "{failure:?}");
        }
        Outcome::Completed(_) => skip("/dev/shm is not a tmpfs"),
    }
}

#[test]
fn iterations_and_counters_are_those_of_the_request() {
    let directory = directory();
    let mut request = Request::new(Workload::Copy(copy_of(directory.path(), 50_000)));
    request.iterations = 4;
    request.warmup_iterations = 2;
    let counters = ["page-faults", "instructions", "bogus"];
    request.counters = counters.map(str::to_owned).to_vec();
    let data = completed(answer_request(&request), "counted");
    assert_eq!(data.samples.len(), 4);
    assert!(data.counters_missing["bogus"].contains("unknown counter"));
    for name in ["page-faults", "instructions"] {
        let mut samples = data.samples.iter();
        let is_counted = samples.all(|sample| sample.counters.contains_key(name));
        let is_missing = data.counters_missing.contains_key(name);
        assert_ne!(is_counted, is_missing, "{name}");
    }
}

#[test]
fn a_source_that_is_missing_or_too_short_fails() {
    let directory = directory();
    let mut copy = copy_of(directory.path(), 1_000);
    copy.size_bytes = 1_001;
    let message = refused_copy(&copy, FailureKind::Failed);
    assert!(message.contains("it has only 1000"), "{message}");
    let path = directory.path().join("absent");
    copy.source = Source::File { path, xxh3: 0 };
    let message = refused_copy(&copy, FailureKind::Failed);
    assert!(message.contains("no such file or directory"), "{message}");
}

#[test]
fn a_buffer_that_cannot_be_is_an_instrument_failure() {
    let directory = directory();
    let mut copy = copy_of(directory.path(), 100);
    for buffer_bytes in [0, 1 << 40] {
        for method in [CopyMethod::Swept, CopyMethod::Mmap, CopyMethod::Splice] {
            (copy.method, copy.buffer_bytes) = (method, Some(buffer_bytes));
            refused_copy(&copy, FailureKind::Instrument);
        }
    }
}

#[test]
fn a_full_file_system_fails_the_copy_and_leaves_no_file() {
    let directory = directory();
    let mount = directory.path().join("small");
    std::fs::create_dir(&mount).unwrap();
    let mut copy = copy_of(directory.path(), 4 << 20);
    copy.sink = Sink::File;
    copy.directory = mount.clone();
    for method in methods() {
        copy.method = method;
        let what = format!("{method:?}");
        let workload = Workload::Copy(copy.clone());
        let Some(outcome) = ask_on_full_file_system(&workload, &mount) else {
            return;
        };
        if method == CopyMethod::CopyFileRange {
            // It does not copy to another file system, not even of its own kind.
            failed(outcome, FailureKind::Unsupported, &what);
            continue;
        }
        let message = failed(outcome, FailureKind::Failed, &what);
        // The system's own cat prints its reason on standard error.
        let is_named = message.contains("no space left on device");
        let is_told = is_named || method == CopyMethod::SystemCat;
        assert!(is_told, "{what}: {message}");
    }
}
