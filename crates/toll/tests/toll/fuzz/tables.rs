//! Mutated tables of runs that were exported on another machine.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use toll_core::claim::Run;
use toll_host::store::exchange::RunDocument;
use toll_stats::Rng;

use crate::fuzz::corpus;
use crate::fuzz::drive::{self, Case};

/// Writes the tables of a run. Returns their directory and the paths of the files that a reader
/// opens.
fn files() -> (TempDir, Vec<PathBuf>) {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let stored = RunDocument::parse(&corpus::documents()[0]).expect("our own document is valid");
    let mut paths = Vec::new();
    toll_tables::write(directory.path(), &Run::from(stored), None, |path, bytes| {
        paths.push(path.to_owned());
        Ok(fs::write(path, bytes)?)
    })
    .expect("the tables can be written");
    let is_read = |path: &Path| {
        let read = ["runs", "verdicts", "machines"];
        read.iter()
            .any(|table| path.starts_with(directory.path().join(table)))
    };
    paths.retain(|path| is_read(path));
    (directory, paths)
}

/// Changes some bytes of a file, and sometimes its length.
fn mutated(mut bytes: Vec<u8>, rng: &mut Rng) -> Vec<u8> {
    for _ in 0..1 + rng.below(6) {
        let place = rng.below(bytes.len().max(1));
        match rng.below(4) {
            0 => bytes.truncate(place),
            1 if place < bytes.len() => bytes[place] = [0, 0x7f, 0x80, 0xff][rng.below(4)],
            2 => _ = bytes.drain(place..bytes.len().min(place + rng.below(8))),
            _ if place < bytes.len() => bytes[place] ^= 1 << rng.below(8),
            _ => {}
        }
    }
    bytes
}

#[test]
fn tables_are_refused_or_read() {
    let (directory, paths) = files();
    let good: Vec<Vec<u8>> = paths
        .iter()
        .map(|path| fs::read(path).expect("it was just written"))
        .collect();
    assert!(toll_tables::read(directory.path()).is_ok());
    // The input is the seed of the changes.
    let make = |rng: &mut Rng| rng.next_u64().to_string();
    let check = |drawn: &str, _: &mut Case| {
        let mut rng = Rng::new(drawn.parse().unwrap_or_default());
        let one = rng.below(paths.len());
        fs::write(&paths[one], mutated(good[one].clone(), &mut rng))
            .expect("our own file is writable");
        let _ = toll_tables::read(directory.path());
        fs::write(&paths[one], &good[one]).expect("our own file is writable");
    };
    drive::fuzz("tables", 400, make, check);
}
