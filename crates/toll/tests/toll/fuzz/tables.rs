//! Tables of runs that were exported elsewhere.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use toll::claim::Run;
use toll::fleet;
use toll::store::exchange::RunDocument;
use toll_stats::Rng;

use crate::fuzz::corpus;
use crate::fuzz::drive::{self, Case};

/// The tables of a run, as files by their paths.
fn files() -> (TempDir, Vec<PathBuf>) {
    let directory = tempfile::tempdir().expect("there is a place for temporary files");
    let stored = RunDocument::parse(&corpus::documents()[0]).expect("it is one of ours");
    let mut paths = Vec::new();
    fleet::write(directory.path(), &Run::from(stored), None, |path, bytes| {
        paths.push(path.to_owned());
        Ok(fs::write(path, bytes)?)
    })
    .expect("it can be written");
    let is_read = |path: &Path| {
        let read = ["runs", "verdicts", "machines"];
        read.iter()
            .any(|table| path.starts_with(directory.path().join(table)))
    };
    paths.retain(|path| is_read(path));
    (directory, paths)
}

/// Changes some bytes of a file, its length too.
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
    assert!(fleet::read(directory.path()).is_ok());
    // The input is the number from which the changes are drawn.
    let make = |rng: &mut Rng| rng.next_u64().to_string();
    let check = |drawn: &str, _: &mut Case| {
        let mut rng = Rng::new(drawn.parse().unwrap_or_default());
        let one = rng.below(paths.len());
        fs::write(&paths[one], mutated(good[one].clone(), &mut rng)).expect("it is ours");
        let _ = fleet::read(directory.path());
        fs::write(&paths[one], &good[one]).expect("it is ours");
    };
    drive::fuzz("tables", 400, make, check);
}
