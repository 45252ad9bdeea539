//! Files to be copied or mapped.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::Xxh3;

/// A file to be copied, with what a right copy hashes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    /// The file.
    pub path: PathBuf,
    /// XXH3-64 of its content.
    pub xxh3: u64,
}

const CHUNK_BYTES: usize = 1 << 20;

impl SourceFile {
    /// Makes a file of pseudo-random bytes and brings it to the device.
    /// Random, because file systems that compress or detect zeros would
    /// otherwise move less than the size says.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn create(path: &Path, size_bytes: u64) -> io::Result<Self> {
        let mut file = File::create(path)?;
        let mut hash = Xxh3::new();
        let mut rng = toll_stats::Rng::new(size_bytes);
        let mut chunk = vec![0_u8; CHUNK_BYTES];
        let mut left = size_bytes;
        while left > 0 {
            for word in chunk.as_chunks_mut::<8>().0 {
                *word = rng.next_u64().to_le_bytes();
            }
            let length = usize::try_from(left).unwrap_or(usize::MAX).min(CHUNK_BYTES);
            let part = &chunk[..length];
            file.write_all(part)?;
            hash.update(part);
            left -= length as u64;
        }
        file.sync_all()?;
        Ok(Self {
            path: path.to_owned(),
            xxh3: hash.digest(),
        })
    }
}

/// Makes a file of zeros whose blocks are all there, unlike those of a hole, and
/// brings it to the device.
///
/// # Errors
/// If the file cannot be written.
pub fn lay_zeros(path: &Path, size_bytes: u64) -> io::Result<()> {
    let mut file = File::create(path)?;
    io::copy(&mut io::repeat(0).take(size_bytes), &mut file)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_has_its_size_and_hash() {
        let directory = tempfile::tempdir().unwrap();
        for size in [0, 1, 12_345, CHUNK_BYTES as u64 + 1] {
            let source = SourceFile::create(&directory.path().join("s"), size).unwrap();
            let content = std::fs::read(&source.path).unwrap();
            assert_eq!(content.len() as u64, size);
            assert_eq!(xxhash_rust::xxh3::xxh3_64(&content), source.xxh3);
        }
    }
}
